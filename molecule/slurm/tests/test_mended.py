"""A node that the rollout mended takes jobs again; one that it may not give back is named. And what --check says.

Each test leaves the cluster as converge made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from running import strategy
from testinfra.host import Host
from testing.slurm_cluster import SCENARIO, Node, as_user, pid, playbook, roll_out, setting
from testing.waiting import wait_for

KEY = "/etc/munge/munge.key"
# slurmctld finds a node silent soon, and brings none back by itself.
STERN = {"SlurmdTimeout": 30, "ReturnToService": 0}


def shown(login: Host, name: str) -> tuple[str, str]:
    """State and reason of a node as slurmctld has them."""
    line = login.check_output(f"scontrol --oneliner show node {name}")
    reason = line.partition(" Reason=")[2].strip()
    return line.partition(" State=")[2].split()[0], reason


@pytest.fixture
def stern(login: Host) -> Iterator[None]:
    """A slurmctld that gives nothing back; afterwards the declared one, and nodes that take jobs."""
    done = roll_out(slurm_settings_site=STERN)
    assert done.status == 0, done.explain()
    assert (setting(login, "SlurmdTimeout"), setting(login, "ReturnToService")) == ("30 sec", "0")
    yield
    for name in ("hal01", "hal02"):
        login.run(f"scontrol update NodeName={name} State=RESUME")
    done = roll_out()
    assert done.status == 0, done.explain()


def test_a_silent_node_whose_munge_is_repaired_takes_jobs_again(node: Node, login: Host, stern: None) -> None:
    """Real silence: slurmctld understands nothing of what the node says, and sets it DOWN itself."""
    node("hal01").check_output(f"head -c 64 /dev/urandom >{KEY} && systemctl restart munge")
    silent = wait_for("silence", lambda: shown(login, "hal01"), lambda seen: seen[0].startswith("DOWN"), 600)
    assert silent[1].startswith("Not responding [slurm@"), silent

    play = SCENARIO / "tests/mended.yml"
    given: dict[str, Any] = {"slurm_settings_site": STERN}
    mended = playbook(play, mitogen=strategy.chosen(), munge_rotation_ok=True, **given)
    assert mended.status == 0, mended.explain()
    assert shown(login, "hal01") == ("IDLE", "")
    ran = as_user(login, "alice", "srun --nodelist=hal01 --time=5 hostname -s")
    assert (ran.rc, ran.stdout.strip()) == (0, "hal01"), ran.stderr
    again = playbook(play, mitogen=strategy.chosen(), **given)
    assert (again.status, again.changes) == (0, {}), again.explain()


def test_what_an_administrator_set_down_stays_down_and_the_rollout_names_it(node: Node, login: Host) -> None:
    slurmd = pid(node("hal01"), "slurmd")
    login.check_output("scontrol update NodeName=hal01 State=DOWN Reason='broken fan'")
    try:
        done = roll_out()
        assert done.status != 0
        assert done.recap["hal02"]["failed"] == 0, done.explain()
        assert "hal01 is DOWN: broken fan [root@" in done.words
        assert "resume it when that is settled: scontrol update NodeName=hal01 State=RESUME" in done.words
        state, reason = shown(login, "hal01")
        assert (state, reason.split(" [")[0]) == ("DOWN", "broken fan")
        assert pid(node("hal01"), "slurmd") == slurmd
    finally:
        login.check_output("scontrol update NodeName=hal01 State=RESUME")
    wait_for("hal01", lambda: shown(login, "hal01")[0], lambda state: state == "IDLE", 600)


def test_check_says_what_a_changed_slurm_conf_will_do(node: Node, login: Host, submit: Callable[..., str]) -> None:
    """Of a line that reconfigures, one that restarts slurmctld, and one that restarts both; nothing is changed."""
    files = ("/etc/slurm/slurm.conf", "/var/lib/hal/slurm/slurmctld/slurm.conf")
    before = [login.file(path).sha256sum for path in files]
    daemons = [("hal-login", "slurmctld"), ("hal01", "slurmd"), ("hal02", "slurmd")]
    pids = [pid(node(name), unit) for name, unit in daemons]
    line = "slurm.conf MaxJobCount: (not set) -> 10001: restart (read by slurmctld only when it starts;"

    idle = roll_out("--check", "--diff", slurm_settings_site={"MaxJobCount": 10001, "KillWait": 31})
    assert idle.status == 0, idle.explain()
    assert "slurmctld on hal-login restarts now" in idle.words
    assert line in idle.words
    assert "slurmd on hal[01-02] is reconfigured now" in idle.words
    assert "slurm.conf KillWait: 30 -> 31: reconfigure (taken at a reconfigure; scontrol(1) reconfigure)" in idle.words
    assert "slurmdbd on hal-mgmt1 goes on as it is" in idle.words

    submit("--nodelist=hal01")
    busy = roll_out("--check", slurm_settings_site={"MaxJobCount": 10001, "LaunchType": "launch/slurm"})
    assert busy.status == 0, busy.explain()
    waits = "has to restart and waits: 1 job runs there; slurm_restart_ok=true permits it, or repeat when none runs"
    assert f"slurmctld on hal-login {waits}" in busy.words
    assert line in busy.words
    assert f"slurmd on hal01 {waits}" in busy.words
    assert "slurmd on hal02 restarts now" in busy.words
    assert "slurm.conf LaunchType: (not set) -> launch/slurm: restart (plugins are loaded when" in busy.words

    assert [login.file(path).sha256sum for path in files] == before
    assert [pid(node(name), unit) for name, unit in daemons] == pids
