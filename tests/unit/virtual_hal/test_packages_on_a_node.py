"""Every package of the repository, installed by dnf on one virtual node, is there as its recipe declares it.

The running node answers: rpm, dnf, getent, stat, systemctl, ldd.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from testbed import image, recipes, repository
from testbed.run import PODMAN

pytestmark = pytest.mark.slow  # builds image and packages when they are not cached, and starts a container

NAME = f"package-check-{os.getpid()}"  # another checkout may run this, too
EVERY = recipes.load(repository.RECIPES / "recipes.yml")
RECIPES = {name: recipe for name, recipe in EVERY.items() if "x86_64" in recipe.arches}


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
    packages = f"--volume={repository.build()}:/srv/hal-packages:ro"
    subprocess.run(
        [
            PODMAN,
            "run",
            "--detach",
            f"--name={NAME}",
            f"--label=hal.virtual={NAME}",
            "--network=none",
            "--systemd=always",
            packages,
            image.build(),
        ],
        check=True,
        capture_output=True,
    )
    try:
        answer(
            "until [ -S /run/dbus/system_bus_socket ]; do sleep 0.1; done; /usr/bin/systemctl is-system-running --wait"
        )
        answer(
            "printf '[hal]\\nname=hal\\nbaseurl=file:///srv/hal-packages\\ngpgcheck=1\\n"
            "gpgkey=file:///srv/hal-packages/RPM-GPG-KEY-hal\\n' >/etc/yum.repos.d/hal.repo"
        )
        answer(f"dnf --quiet --assumeyes install {' '.join(RECIPES)}")
        yield
    finally:
        subprocess.run([PODMAN, "rm", "--force", "--time=0", "--volumes", NAME], capture_output=True, check=True)


def test_every_package_is_installed_and_signed() -> None:
    rows = answer(f"rpm -q --qf '%{{NAME}} %{{RSAHEADER:pgpsig}}\\n' {' '.join(RECIPES)}").splitlines()
    assert {row.split(" ")[0] for row in rows if row.split(" ")[1].startswith("RSA/")} == set(RECIPES)


def test_every_file_is_as_packaged_after_the_scriptlets_ran() -> None:
    loop = f'for name in {" ".join(RECIPES)}; do rpm -V $name | sed "s|^|$name: |"; done'
    assert answer(loop) == ""


def test_users_and_groups_exist() -> None:
    entries = answer("getent passwd; echo; getent group").split("\n\n")
    users, groups = ({line.split(":")[0]: line.split(":") for line in part.splitlines()} for part in entries)
    for recipe in RECIPES.values():
        for group in recipe.groups:
            assert group.gid is None or groups[group.name][2] == str(group.gid)
        for user in recipe.users:
            _, _, uid, _, comment, home, shell = users[user.name]
            assert (comment, home, shell) == (user.comment, user.home, user.shell)
            assert uid == str(user.uid) if user.uid is not None else int(uid) < 1000


def test_folders_and_modes_are_as_declared() -> None:
    declared = {path: mode for recipe in RECIPES.values() for path, mode in {**recipe.folders, **recipe.modes}.items()}
    rows = (line.split() for line in answer(f"stat -c '%n %a %U %G' {' '.join(declared)}").splitlines())
    found = {path: (int(mode, 8), owner, group) for path, mode, owner, group in rows}
    assert found == {
        path: (int(mode.mode, 8) if mode.mode else found[path][0], mode.owner, mode.group)
        for path, mode in declared.items()
    }


def test_units_are_known_disabled_and_well_formed() -> None:
    units = sorted({unit for recipe in RECIPES.values() for unit in recipe.units})
    rows = answer(f"systemctl list-unit-files --no-legend {' '.join(units)}").splitlines()
    # A script of SysV in EL7: chkconfig says whether it runs at boot.
    states = {unit: ["static", "-"] if unit == "network.service" else ["disabled", "disabled"] for unit in units}
    assert {row.split()[0]: row.split()[1:] for row in rows} == states
    assert "active" not in on_node(f"systemctl is-active {' '.join(units)}").stdout.split()
    assert on_node(f"systemd-analyze verify --man=no {' '.join(units)}").stderr == ""


def test_every_program_finds_its_libraries() -> None:
    script = (
        f"rpm -ql {' '.join(RECIPES)} | sort -u | while read -r path; do "
        '[ -f "$path" ] && [ "$(head -c 4 "$path" | tail -c 3)" = ELF ] || continue; '
        'ldd "$path" 2>/dev/null | grep \'not found\' | sed "s|^|$path|"; done; true'
    )
    missing = answer(script).splitlines()
    # Optional plugins that nobody here loads; and libraries of a newer system, which run with the loader beside them.
    others = ("mpi_pmix", "/zsh/pcre.so", "/singularity-libraries/")
    assert [line for line in missing if not any(other in line for other in others)] == []


def test_the_daemons_run_under_their_enterprise_linux_names() -> None:
    answer("create-munge-key && systemctl start munge && munge -n | unmunge >/dev/null")
    answer("echo 'OPTIONS=\"-x\"' >/etc/sysconfig/chronyd && systemctl start chronyd && chronyc -n tracking")
    answer("systemctl start mariadb")
    assert answer("mysql --batch --skip-column-names -e 'select user()'") == "root@localhost"
    assert (
        answer(
            'python3 -c \'import pymysql; print(pymysql.connect(user="root",'
            'unix_socket="/var/lib/mysql/mysql.sock").open)\''
        )
        == "True"
    )
    answer("systemctl start puppet && systemctl is-active puppet")
    assert "stand-in" in on_node("/opt/puppetlabs/bin/puppet --version").stderr


def test_removing_a_package_stops_its_daemon() -> None:
    answer("systemctl start puppet && dnf --quiet --assumeyes remove puppet-agent")
    assert on_node("systemctl is-active --quiet puppet").returncode != 0
    assert on_node("rpm -q puppet-agent").returncode != 0
