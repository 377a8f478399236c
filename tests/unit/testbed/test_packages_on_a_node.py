"""Every package of the repository, installed by dnf on one virtual node, is there as its recipe declares it.

The running node answers: rpm, dnf, getent, stat, systemctl, ldd.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from testbed import image, recipes, repository
from testbed.run import PODMAN

pytestmark = pytest.mark.slow  # builds image and packages when they are not cached, and starts a container

NAME = "package-check"
RECIPES = recipes.load(repository.RECIPES / "recipes.yml")


def on_node(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script on the node."""
    return subprocess.run([PODMAN, "exec", NAME, "bash", "-c", script], capture_output=True, text=True, check=False)


def answer(script: str) -> str:
    """Return what a script on the node prints; it must succeed."""
    done = on_node(script)
    assert done.returncode == 0, f"{script}: {done.stderr or done.stdout}"
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def node() -> Iterator[None]:
    """A node with all packages installed."""
    subprocess.run([PODMAN, "rm", "--force", "--time=0", NAME], capture_output=True, check=False)
    packages = f"--volume={repository.build()}:/srv/hal-packages:ro"
    subprocess.run([PODMAN, "run", "--detach", f"--name={NAME}", f"--label=hal.virtual={NAME}", "--network=none",
                    "--systemd=always", packages, image.build()], check=True, capture_output=True)
    try:
        answer("systemctl is-system-running --wait")
        answer("printf '[hal]\\nname=hal\\nbaseurl=file:///srv/hal-packages\\ngpgcheck=1\\n"
               "gpgkey=file:///srv/hal-packages/RPM-GPG-KEY-hal\\n' >/etc/yum.repos.d/hal.repo")
        answer(f"dnf --quiet --assumeyes install {' '.join(RECIPES)}")
        yield
    finally:
        subprocess.run([PODMAN, "rm", "--force", "--time=0", "--volumes", NAME], capture_output=True, check=True)


@pytest.mark.parametrize("name", RECIPES)
def test_a_package_is_installed_signed_and_unchanged(name: str) -> None:
    assert answer(f"rpm -q --qf '%{{NAME}} %{{SIGPGP:pgpsig}}' {name}").startswith(f"{name} RSA/")
    verified = on_node(f"rpm -V {name}")
    assert (verified.returncode, verified.stdout) == (0, ""), "a file is not as packaged after the scriptlets ran"


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.users or recipe.groups])
def test_users_and_groups_exist(name: str) -> None:
    for group in RECIPES[name].groups:
        number = answer(f"getent group {group.name}").split(":")[2]
        assert group.gid is None or number == str(group.gid)
    for user in RECIPES[name].users:
        _, _, uid, _, comment, home, shell = answer(f"getent passwd {user.name}").split(":")
        assert (comment, home, shell) == (user.comment, user.home, user.shell)
        assert uid == str(user.uid) if user.uid is not None else int(uid) < 1000


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.folders or recipe.modes])
def test_folders_and_modes_are_as_declared(name: str) -> None:
    recipe = RECIPES[name]
    for path, declared in {**recipe.folders, **recipe.modes}.items():
        mode, owner, group = answer(f"stat -c '%a %U %G' {path}").split()
        assert (owner, group) == (declared.owner, declared.group), path
        assert declared.mode is None or int(mode, 8) == int(declared.mode, 8), path


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.units])
def test_units_are_known_and_disabled(name: str) -> None:
    for unit in RECIPES[name].units:
        state = answer(f"systemctl list-unit-files --no-legend {unit}").split()
        assert state == [unit, "disabled", "disabled"], "a unit of Enterprise Linux is disabled by default"
        assert on_node(f"systemctl is-active --quiet {unit}").returncode != 0
        assert on_node(f"systemd-analyze verify {unit}").returncode == 0


def test_every_program_finds_its_libraries() -> None:
    script = (f"rpm -ql {' '.join(RECIPES)} | sort -u | while read -r path; do "
              "[ -f \"$path\" ] && [ \"$(head -c 4 \"$path\" | tail -c 3)\" = ELF ] || continue; "
              "ldd \"$path\" 2>/dev/null | grep 'not found' | sed \"s|^|$path|\"; done; true")
    missing = answer(script).splitlines()
    # Slurm's optional plugin for PMIx: nothing here uses PMIx.
    assert [line for line in missing if "mpi_pmix" not in line] == []


def test_the_daemons_run_under_their_enterprise_linux_names() -> None:
    answer("create-munge-key && systemctl start munge && munge -n | unmunge >/dev/null")
    answer("echo 'OPTIONS=\"-x\"' >/etc/sysconfig/chronyd && systemctl start chronyd && chronyc -n tracking")
    answer("systemctl start mariadb")
    assert answer("mysql --batch --skip-column-names -e 'select user()'") == "root@localhost"
    assert answer("python3 -c 'import pymysql; print(pymysql.connect(user=\"root\","
                  "unix_socket=\"/var/lib/mysql/mysql.sock\").open)'") == "True"
    answer("systemctl start puppet && systemctl is-active puppet")
    assert "stand-in" in on_node("/opt/puppetlabs/bin/puppet --version").stderr


def test_removing_a_package_stops_its_daemon() -> None:
    answer("systemctl start puppet && dnf --quiet --assumeyes remove puppet-agent")
    assert on_node("systemctl is-active --quiet puppet").returncode != 0
    assert on_node("rpm -q puppet-agent").returncode != 0
