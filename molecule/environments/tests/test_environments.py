"""Real interpreters are installed, broken on the way, spoilt and mended. Nothing here reads expect.yml.

The tests are one story, in their order.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT
from testinfra.host import Host
from testing.promises import Rollout

sys.path.insert(0, str(PROJECT))

from hal_cluster.environments.declared import environments

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
LOCKS = PROJECT / ".state/virtual/environments-environments"
ROOT = "/home/apps"
LINK = f"{ROOT}/wmlce/1.7.0-py3.7"
WMLCE = "1.7.0-py3.7"
Node = Callable[[str], Host]


def declared(root: str = ROOT) -> list[dict[str, Any]]:
    """One environment, as the role wmlce declares it."""
    one = {"version": WMLCE, "lock": f"wmlce-{WMLCE}", "python": "3.7", "default": True, "imports": ["tensorflow"],
           "post_link": {"run": ["powerai-license"]}}  # fmt: skip
    found = environments(
        [one], name="wmlce", root=root, directory=LOCKS, platform="linux-64", variable="wmlce_environments"
    )
    assert found["problems"] == []
    return list(found["environments"])


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def login(node: Node) -> Host:
    return node("hal-login")


def write(host: Host, path: str, content: Any) -> None:
    host.check_output(f"cat >{path} <<'END'\n{json.dumps(content)}\nEND")


def request(host: Host, wanted: list[dict[str, Any]] | None = None, **more: Any) -> None:
    """Lay a request down on the node, and what `status` compares with."""
    wanted = declared() if wanted is None else wanted
    told = {"IBM_POWERAI_LICENSE_ACCEPT": "yes"}
    write(
        host,
        "/root/request",
        {"owner": "wmlce", "environments": wanted, "remove_ok": False, "used": [], "told": told, **more},
    )
    write(host, "/etc/hal/environments.d/wmlce.json", wanted)


def apply(host: Host, settings: str = "/etc/hal/environments.json") -> dict[str, Any]:
    done = host.run(f"hal-environment --settings {settings} apply </root/request")
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.rc == (1 if "problem" in found else 0), done.stderr
    return found


def wrong(host: Host) -> str:
    found = json.loads(host.check_output("hal-environment status wmlce"))["environments"][0]
    return str(found["wrong"] or found["verified"] or found["late"])


def test_a_rollout_puts_right_what_was_planted(login: Host, node: Node) -> None:
    timer = login.service("hal-environment-verify.timer")
    assert timer.is_enabled
    assert timer.is_running
    assert "Sun *-*-* 05:00:00" in login.check_output("systemctl show -p TimersCalendar hal-environment-verify.timer")
    assert login.file("/usr/libexec/hal-environment").mode == 0o755
    assert not node("hal01").file("/etc/systemd/system/hal-environment-verify.timer").exists
    assert not node("hal01").file("/opt/rh").exists, "only one node installs"


def test_an_installation_that_is_killed_at_any_moment_is_done_again(login: Host) -> None:
    request(login)
    for folder, files in ((".packages/files", 1), ("wmlce", 20), ("wmlce", 200), ("wmlce", 500)):
        login.check_output(
            "(setsid hal-environment apply </root/request >/dev/null 2>&1 & echo $! >/root/pid); "
            f"for i in $(seq 400); do [ $(find {ROOT}/{folder} -type f 2>/dev/null | wc -l) -lt {files} ] || break; "
            "sleep 0.02; done; kill -9 -- -$(cat /root/pid) 2>/dev/null; true"
        )
        if login.file(LINK).exists:
            assert wrong(login) == "", "it was there by then"
        else:
            assert wrong(login) == f"{LINK} is not there: it is not installed"
    done = apply(login)
    assert "problem" not in done
    assert wrong(login) == ""
    prefix = login.file(LINK).linked_to
    assert login.check_output(f"ls {ROOT}/wmlce").split() == [WMLCE, Path(prefix).name]
    assert apply(login)["changed"] is False


def test_it_is_a_real_python_with_the_locked_packages(login: Host) -> None:
    program = f"{LINK}/bin/python"
    assert login.check_output(f"{program} --version") == "Python 3.7.5"
    asked = "import tensorflow, torch, numpy; print(tensorflow.__version__, torch.__version__, numpy.__version__)"
    assert login.check_output(f"runuser -u alice -- {program} -c '{asked}'") == "2.1.0 1.3.1 1.17.4", (
        "IBM's channel first"
    )
    assert login.check_output(f"{LINK}/bin/tensorboard") == "TensorBoard 2.1.0, stand-in of the virtual HAL"
    assert "stand-in for TensorFlow 2.1.0" in login.check_output(f"{LINK}/bin/saved_model_cli")
    prefix = login.file(LINK).linked_to
    assert login.file(f"{LINK}/lib/cudatoolkit-place.binary").content.startswith(b"\0\1" + f"{prefix}/lib\0".encode())
    assert login.file(f"{LINK}/share/powerai-license/status").content_string == "accepted for powerai-license 1.7.0\n"


def test_users_cannot_write_there_and_do_not_see_archives(login: Host) -> None:
    for attempt in (f"touch {LINK}/mine", f"rm -f {LINK}/bin/python", f"ls {ROOT}/.packages", f"mkdir {ROOT}/mine"):
        assert login.run(f"runuser -u alice -- {attempt}").rc != 0, attempt
    assert login.check_output(f"find {ROOT}/wmlce ! -type l -perm /022 -o ! -user root") == ""


def test_a_changed_package_is_found_by_the_weekly_verification_and_repaired_beside_it(
    login: Host, rollout: Rollout
) -> None:
    old = login.file(LINK).linked_to
    login.check_output(f"echo '# by hand' >>{LINK}/lib/python3.7/site-packages/numpy/version.py")
    login.check_output("systemctl start hal-environment-verify.service")
    words = "1 changed of numpy 1.17.4 (lib/python3.7/site-packages/numpy/version.py)"
    assert wrong(login).startswith(f"{words}; seen ")
    with_job = (
        "(CONDA_PREFIX=$(readlink -f {0}) setsid {0}/bin/python -c 'import time; time.sleep(300)' & echo $! >/root/job)"
    )
    login.check_output(with_job.format(LINK) + " >/dev/null 2>&1 </dev/null; sleep 1")
    done = apply(login)
    assert done["repaired"] == [f"wmlce/{WMLCE}: {words}"]
    assert login.file(LINK).linked_to == f"{old}.2"
    assert wrong(login) == ""
    assert login.check_output("hal-environment used") == old.removeprefix(f"{ROOT}/")
    assert login.run("kill -0 $(cat /root/job)").rc == 0, "a running job goes on"


def test_what_is_used_is_not_removed(login: Host) -> None:
    settings = "/etc/hal/environments.json"
    login.check_output(f"cp {settings} /root/settings.kept")
    login.check_output(f'sed -i -E \'s/"(keep|grace_hours)": [^,]+/"\\1": 0/\' {settings}')
    request(login, remove_ok=True)
    done = apply(login)
    assert (done["removed"], len(done["kept"])) == ([], 1)
    login.check_output("kill $(cat /root/job)")
    assert len(apply(login)["removed"]) == 1
    assert wrong(login) == ""
    login.check_output(f"cp /root/settings.kept {settings}")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (f"rm -rf $(readlink -f {LINK})", "which is not there"),
        (f"ln -sfn nothing {LINK}", "leads to nothing, which is not there"),
        (f"rm {LINK}/conda-meta/numpy-*", "packages: numpy-1.17.4-py37_0 is missing"),
        (f"ln -sfn /usr/bin/python3 {LINK}/bin/python", "is Python 3.11."),
    ],
)
def test_what_is_spoilt_is_seen_at_once_and_mended(login: Host, spoil: str, words: str) -> None:
    request(login)
    login.check_output(spoil)
    assert words in wrong(login)
    assert login.run("hal-environment list").rc == 1
    assert "problem" not in apply(login)
    assert wrong(login) == ""


def test_a_wrong_checksum_a_silent_channel_and_a_full_disk_leave_what_is_in_use(login: Host) -> None:
    good = login.file(LINK).linked_to
    package = "/srv/channels/ibm/linux-64/pytorch-1.3.1-py37_0.tar.bz2"
    login.check_output(f"rm -rf {ROOT}/.packages/files && cp -p {package} /root/ && echo x >>{package}")
    write_other(login)
    problem = apply(login)["problem"]
    assert f"file://{package} has sha256 " in problem
    assert problem.endswith(f"{Path(good).name} stays in use")
    login.check_output(f"cp -p /root/{Path(package).name} {package}; mv /srv/channels /srv/away")
    problem = apply(login)["problem"]
    assert "cannot be read" in problem
    assert "what came is kept, and the next run goes on" in problem
    assert problem.endswith(f"{Path(good).name} stays in use")
    login.check_output("mv /srv/away /srv/channels")
    assert login.file(LINK).linked_to == good
    assert login.run(f"{LINK}/bin/python -c 'import torch'").rc == 0


def write_other(host: Host) -> None:
    """Ask for the same packages under another digest, as after a change of the lock file."""
    other = [{**one, "digest": "f" * 12, "prefix": f"{one['link']}.{'f' * 12}"} for one in declared()]
    request(host, other)


def test_a_full_disk_is_said_before_and_on_the_way(login: Host) -> None:
    login.check_output("mkdir -p /mnt/small && mount -t tmpfs -o size=24m,mode=0755 small /mnt/small")
    small = json.loads(login.check_output("cat /etc/hal/environments.json"))
    small |= {"root": "/mnt/small/apps", "mount": "/mnt/small", "reserve_gb": 0}
    try:
        request(login, declared("/mnt/small/apps"))
        write(login, "/root/settings", {**small, "unpacked_factor": 50})
        problem = apply(login, "/root/settings")["problem"]
        assert f"wmlce/{WMLCE}: no room: below /mnt/small/apps " in problem
        assert login.check_output("find /mnt/small/apps -type f") == "", "nothing was fetched"

        write(login, "/root/settings", {**small, "unpacked_factor": 1})
        problem = apply(login, "/root/settings")["problem"]
        assert f"wmlce/{WMLCE}: there was no room on the way; what was half made is removed" in problem
        assert problem.endswith("; nothing is installed of it")
        assert "\n" not in problem
        assert login.check_output("ls /mnt/small/apps/wmlce") == ""
        login.check_output("mount -o remount,size=400m /mnt/small")
        assert apply(login, "/root/settings")["installed"] == [f"wmlce/{WMLCE}"]
    finally:
        login.check_output("umount /mnt/small")


def test_nothing_is_written_below_an_empty_mount_point(login: Host) -> None:
    login.check_output("mount --bind /home /mnt && umount /home")
    try:
        assert apply(login)["problem"] == "/home is not mounted: nothing is done"
        assert not login.file(ROOT).exists
        assert "/home is not mounted" in login.run("hal-environment verify").stderr
    finally:
        login.check_output("mount --bind /mnt /home && umount /mnt")


def test_all_promises_hold_and_a_second_rollout_changes_nothing(rollout: Rollout, login: Host) -> None:
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert done.changes == {}
    for name in ("hal-login", "hal01"):
        assert rollout.broken_promises("environments", name) == []
    login.check_output("systemctl disable --quiet --now hal-environment-verify.timer")
    done = rollout.converge("--limit", "hal-login,localhost")
    assert done.status == 0, done.explain()
    assert login.service("hal-environment-verify.timer").is_running


def test_what_makes_no_sense_is_refused_before_anything_is_done(rollout: Rollout) -> None:
    done = rollout.converge(environments_wheel="/nowhere/py_rattler.whl")
    assert done.status != 0
    assert "/nowhere/py_rattler.whl is not there: run hal-environments wheel --arch x86_64 --to /nowhere" in done.words
    done = rollout.converge(environments_mirror="ftp://x", environments_keep=-1)
    assert "environments_mirror is ftp://x: http://, https:// or file:///, or empty" in done.words
