"""Users load modules of real environments on two nodes, which stand on one tree. Nothing here reads expect.yml.

The tests are one story, in their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from running.ansible_run import PROJECT
from testinfra.host import Host
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
LOCKS = PROJECT / ".state/virtual/environments-wmlce"
ROOT = "/home/apps/wmlce"
LINK = f"{ROOT}/1.7.0-py3.7"
NODES = ("hal-login", "hal01")
RELEASES = {  # module: Python, TensorFlow, PyTorch
    "wmlce": "3.7.5 2.1.0 1.3.1",
    "wmlce/1.7.0-py3.7": "3.7.5 2.1.0 1.3.1",
    "wmlce/1.7.0-py3.6": "3.6.9 2.1.0 1.3.1",
    "wmlce/1.6.1-py2.7": "2.7.17 1.14.0 1.1.0",
}
ASK = (
    "import sys, tensorflow as tf, torch; "
    "print(' '.join(['%d.%d.%d' % sys.version_info[:3], tf.__version__, torch.__version__]))"
)
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def login(node: Node) -> Host:
    return node("hal-login")


def declared() -> list[dict[str, Any]]:
    found = yaml.safe_load((PROJECT / "roles/wmlce/defaults/main.yml").read_text())["wmlce_environments"]
    return list(found)


def as_alice(host: Host, command: str, shell: str = "/bin/bash") -> str:
    """What a user's login shell prints, its errors included."""
    host.check_output(f"cat >/tmp/typed <<'END'\n{command}\nEND")
    return str(host.run(f"su - alice -s {shell} </tmp/typed 2>&1").stdout)


def broken(rollout: Rollout, node: str = "hal-login") -> list[str]:
    return rollout.broken_promises("wmlce", node)


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("module", RELEASES)
def test_a_module_gives_the_declared_python_and_packages(node: Node, name: str, module: str) -> None:
    said = as_alice(node(name), f'module load {module} && python -c "{ASK}"')
    assert said.splitlines()[-1:] == [RELEASES[module]], said


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/zsh", "/bin/tcsh"])
def test_what_activation_sets_is_there_in_every_shell_and_goes_away(node: Node, shell: str) -> None:
    script = (
        "module load wmlce/1.7.0-py3.7\nprintenv TF_STAND_IN\nprintenv CONDA_PREFIX\nprintenv LD_LIBRARY_PATH\n"
        "which tensorboard\nmodule unload wmlce\nprintenv | grep -c -e ^CONDA_ -e ^TF_\n"
    )
    prefix = node("hal01").file(LINK).linked_to
    lines = as_alice(node("hal01"), script, shell).splitlines()
    assert lines[-5:] == ["of the virtual HAL", prefix, f"{prefix}/lib", f"{prefix}/bin/tensorboard", "0"], lines


def test_users_see_a_list_that_they_can_read(login: Host) -> None:
    listed = as_alice(login, "module --terse avail wmlce").split()
    assert {"wmlce/1.6.1-py2.7", "wmlce/1.7.0-py3.6", "wmlce/1.7.0-py3.7"} <= {one.split("(")[0] for one in listed}
    assert not any(one.startswith("wmlce/1.6.0") for one in listed), "an older rollout's module is withdrawn"
    assert "Python 3.7" in as_alice(login, "module whatis wmlce/1.7.0-py3.7")
    assert "venv" in as_alice(login, "module help wmlce/1.7.0-py3.7")


def test_two_at_once_are_not_loaded(login: Host) -> None:
    said = as_alice(login, f'module load wmlce/1.7.0-py3.7\nmodule load wmlce/1.6.1-py2.7\npython -c "{ASK}"')
    assert said.splitlines()[-1] == RELEASES["wmlce/1.6.1-py2.7"]
    assert "wmlce/1.7.0-py3.7 => wmlce/1.6.1-py2.7" in said, said


def test_packages_come_from_the_mirror_and_what_was_planted_is_put_right(node: Node, login: Host) -> None:
    locked = {
        package["sha256"]
        for path in LOCKS.glob("*.lock.yml")
        for package in yaml.safe_load(path.read_text())["packages"].values()
    }
    served = login.check_output("curl -fsS http://hal-mgmt1/channels/SHA256SUMS").splitlines()
    assert {line.split()[0] for line in served} == locked
    log = node("hal-mgmt1").check_output("grep -c 'GET /channels/.*tensorflow-2.1.0' /var/log/httpd/access_log || true")
    assert int(log) >= 2, "one for each Python"
    assert login.file(ROOT).mode == 0o755
    assert login.file(f"{ROOT}/mine").is_directory, "somebody's own"
    assert login.file(f"{ROOT}/1.6.1-py2.7/bin/python").exists
    assert not login.file("/home/apps/.packages/unpacked").exists


def test_all_promises_hold(rollout: Rollout) -> None:
    for name in NODES:
        assert broken(rollout, name) == []
        assert rollout.broken_promises("environments", name) == []
    assert rollout.broken_promises("mirror", "hal-mgmt1") == []


def test_every_node_sees_what_is_wrong_and_one_that_does_not_install_only_says_so(
    rollout: Rollout, node: Node, login: Host
) -> None:
    login.check_output(f"echo x >>{LINK}/lib/python3.7/site-packages/torch/cuda.py; ln -sfn gone {ROOT}/1.6.1-py2.7")
    login.check_output("systemctl start hal-environment-verify.service")
    old = login.file(LINK).linked_to
    assert "environment is the locked one [wmlce/1.6.1-py2.7]" in broken(rollout, "hal01")
    assert "environment is what was installed [wmlce/1.7.0-py3.7]" in broken(rollout)
    result = rollout.promises("wmlce", "hal-login")["environment is what was installed [wmlce/1.7.0-py3.7]"]
    assert result["observed"].startswith(
        "1 changed of pytorch 1.3.1 (lib/python3.7/site-packages/torch/cuda.py); seen "
    )
    assert result["source"].startswith("roles/wmlce/expect.yml:")
    said = as_alice(login, "module load wmlce/1.6.1-py2.7")
    assert f"wmlce/1.6.1-py2.7 is not usable on this node: {ROOT}/1.6.1-py2.7" in " ".join(said.split())

    done = rollout.converge("--limit", "hal01,localhost")
    assert done.status != 0
    assert "leads to gone, which is not there" in done.words
    assert login.file(LINK).linked_to == old, "nothing is installed from there"

    done = rollout.converge("--limit", "hal-login,localhost")
    assert done.status == 0, done.explain()
    new = login.file(LINK).linked_to
    assert new != old, "a fresh one beside it"
    assert login.file(old).is_directory, "jobs may use it"
    assert node("hal01").file(LINK).linked_to == new
    assert broken(rollout) == broken(rollout, "hal01") == []


def test_a_package_that_the_mirror_has_otherwise_is_refused_and_the_mirror_mends_itself(
    rollout: Rollout, node: Node, login: Host
) -> None:
    package = "/srv/mirror/www/channels/ibm/linux-64/tensorflow-1.14.0-py27_0.tar.bz2"
    node("hal-mgmt1").check_output(f"echo x >>{package}")
    login.check_output(f"rm -rf {ROOT}/1.6.1-py2.7* /home/apps/.packages/files")
    done = rollout.converge("--limit", "hal-login,localhost")
    assert done.status != 0
    assert "/channels/ibm/linux-64/tensorflow-1.14.0-py27_0.tar.bz2 has sha256 " in done.words
    assert "published packages of environments are the locked ones" in rollout.broken_promises("mirror", "hal-mgmt1")
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert broken(rollout) == []


def test_a_mirror_that_does_not_answer_is_named(rollout: Rollout, node: Node, login: Host) -> None:
    login.check_output(f"rm -rf {ROOT}/1.6.1-py2.7* /home/apps/.packages/files")
    node("hal-mgmt1").check_output("systemctl stop httpd")
    try:
        done = rollout.converge("--limit", "hal-login,localhost")
        assert done.status != 0
        assert "Connection refused; what came is kept, and the next run goes on" in done.words
        assert as_alice(login, f'module load wmlce && python -c "{ASK}"').splitlines()[-1] == RELEASES["wmlce"]
    finally:
        node("hal-mgmt1").check_output("systemctl start httpd")
    done = rollout.converge("--limit", "hal-login,localhost")
    assert done.status == 0, done.explain()


def test_what_cannot_be_carried_out_is_refused_before_any_node_is_touched(rollout: Rollout, login: Host) -> None:
    before = login.check_output("cat /etc/hal/environments.d/wmlce.json; ls /home/apps/wmlce")
    spoilt = LOCKS / "spoilt-1.lock.yml"
    text = (LOCKS / "wmlce-1.7.0-py3.7.lock.yml").read_text()
    spoilt.write_text(text.replace("    sha256:", "    # sha256:", 1))
    try:
        wanted = [
            *declared(),
            {"version": "9", "lock": "wmlce-9", "python": "3.9"},
            {"version": "8", "lock": "spoilt-1", "python": "3.7"},
        ]
        done = rollout.converge("--limit", "hal-login,localhost", wmlce_environments=wanted)
        assert done.status != 0
        assert (
            "wmlce-9.lock.yml is not there: where its channels can be reached, run hal-environments lock wmlce-9"
            in done.words
        )
        assert (
            "cudatoolkit: no sha256: 64 hex digits, as the channel has them; hal-environments lock spoilt-1 writes it"
            in done.words
        )
        assert f"{spoilt}:" in done.words
    finally:
        spoilt.unlink()
    done = rollout.converge("--limit", "hal-login,localhost", wmlce_licence_accepted=False)
    assert "wmlce_licence_accepted is false: read IBM" in done.words
    assert login.check_output("cat /etc/hal/environments.d/wmlce.json; ls /home/apps/wmlce") == before


def test_a_version_is_retired_and_removed_with_permission_only(rollout: Rollout, login: Host) -> None:
    retired = [{**one, "retired": "use wmlce/1.7.0-py3.7"} if "py3.6" in one["version"] else one for one in declared()]
    done = rollout.converge("--limit", "hal-login,localhost", wmlce_environments=retired)
    assert done.status == 0, done.explain()
    said = " ".join(as_alice(login, "module load wmlce/1.7.0-py3.6").split())
    assert "wmlce/1.7.0-py3.6 is retired: use wmlce/1.7.0-py3.7" in said
    assert login.file(f"{ROOT}/1.7.0-py3.6/bin/python").exists
    login.check_output(f"""echo '{{"since": 0}}' >{ROOT}/1.7.0-py3.6/.hal/surplus.json""")  # as after a day
    done = rollout.converge("--limit", "hal-login,localhost", wmlce_environments=retired, wmlce_remove_ok=True)
    assert done.status == 0, done.explain()
    assert not login.file(f"{ROOT}/1.7.0-py3.6").exists
    assert login.file(f"{ROOT}/mine").is_directory
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert (
        as_alice(login, f'module load wmlce/1.7.0-py3.6 && python -c "{ASK}"').splitlines()[-1]
        == RELEASES["wmlce/1.7.0-py3.6"]
    )
