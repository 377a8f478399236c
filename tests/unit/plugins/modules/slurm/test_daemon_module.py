"""hal_slurm_daemon starts what is down, waits until it answers, and refuses what it cannot do."""

from __future__ import annotations

import stat
from typing import Any

import pytest

from tests.unit.hal_node.slurm.machine import CONF, DOWN, NODE, NOTHING, PING, Machine, show
from tests.unit.modules import as_program


def test_a_daemon_that_is_down_is_started_and_what_it_runs_with_is_noted(slurmd: Machine) -> None:
    slurmd.unit |= DOWN
    wanted = {**NOTHING, "changed": True, "action": "start", "why": ["slurmd does not run"]}
    assert slurmd(check=True) == wanted
    assert (slurmd.ran.told, slurmd.record.exists()) == ([show("slurmd")], False)
    assert slurmd() == wanted
    assert slurmd.ran.told == [
        show("slurmd"),
        ["systemctl", "reset-failed", "slurmd.service"],
        ["systemctl", "start", "slurmd.service"],
        *(show("slurmd"), NODE, NODE),
    ]
    assert slurmd.slept == [0.5]
    assert [path.name for path in slurmd.record.iterdir()] == ["slurm.conf"]
    assert (slurmd.record / "slurm.conf").read_text() == CONF
    assert stat.S_IMODE(slurmd.record.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("unit", "runs"),
    [
        ({}, True),
        ({"ActiveState": "reloading"}, True),
        ({"ActiveState": "activating"}, False),
        ({"ActiveState": "failed"}, False),
        ({"MainPID": ""}, False),
        ({"MainPID": "0"}, False),
    ],
)
def test_a_daemon_runs_when_its_unit_is_active_and_has_a_process(
    slurmd: Machine, unit: dict[str, str], runs: bool
) -> None:
    slurmd.recorded()
    slurmd.unit |= unit
    assert slurmd(check=True)["action"] == ("nothing" if runs else "start")


def test_without_its_package_a_daemon_cannot_be_started_but_in_check_mode(slurmd: Machine) -> None:
    slurmd.unit |= {**DOWN, "LoadState": "not-found"}
    assert slurmd() == {
        "failed": True,
        "msg": "slurmd: there is no unit slurmd.service; is its package installed?",
    }
    planned = {"changed": True, "action": "start", "unit_changes": ["enabled"], "why": ["slurmd is not installed"]}
    assert slurmd(check=True) == {**NOTHING, **planned}
    for phase in ("plan", "stop_first"):
        assert slurmd(check=True, phase=phase) == NOTHING


def test_a_unit_is_made_ready_and_that_is_a_change(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.unit["UnitFileState"] = "disabled"
    assert slurmd() == {**NOTHING, "changed": True, "unit_changes": ["enabled"]}
    assert slurmd.did == ["systemctl enable slurmd.service"]


@pytest.mark.parametrize("check", [False, True])
def test_a_systemd_that_does_not_answer_is_no_dead_daemon(slurmd: Machine, check: bool) -> None:
    slurmd.answers = {"systemctl show": (1, "", "Failed to get properties: Connection timed out")}
    said = slurmd(check=check)
    assert said["msg"] == (
        "slurmd: systemd did not answer, asked 3 times (systemctl show slurmd.service: Failed to get properties:"
        " Connection timed out); the state of the unit is not known. Repeat the run when the machine is less busy"
    )
    assert slurmd.did == []


def test_a_daemon_whose_state_is_asked_twice_after_its_start_has_not_ended(slurmd: Machine) -> None:
    slurmd.unit |= DOWN
    slurmd.late = 2  # after the first answer
    assert slurmd()["action"] == "start"
    assert slurmd.ran.told.count(show("slurmd")) == 4
    slurmd.unit |= DOWN
    slurmd.late = 3
    said = slurmd()
    assert said["failed"]
    assert "ended at once" not in said["msg"]
    assert "systemd did not answer, asked 3 times" in said["msg"]


def test_a_daemon_that_ends_at_once_is_told_with_its_last_lines(slurmd: Machine) -> None:
    slurmd.unit |= DOWN
    slurmd.answers = {"systemctl start": (0, "", "")}
    said = slurmd()
    assert said == {
        "failed": True,
        "msg": "slurmd: it was started and ended at once",
        "log": [f"line {number}" for number in range(5, 20)],
    }
    words = ["--unit", "slurmd.service", "--lines", "15", "--no-pager", "--output", "cat"]
    assert slurmd.ran.told[-1] == ["journalctl", *words]
    assert not slurmd.record.exists()


@pytest.mark.parametrize(
    ("out", "err", "said"), [("", " no such \n", "no such"), ("a dependency\n", "", "a dependency")]
)
def test_what_systemd_refuses_is_told(slurmd: Machine, out: str, err: str, said: str) -> None:
    slurmd.unit |= DOWN
    slurmd.answers = {"systemctl start": (1, out, err)}
    assert slurmd()["msg"] == f"slurmd: systemctl start slurmd.service: {said}"


def test_slurmctld_is_waited_for_until_it_says_that_it_is_up(slurmctld: Machine) -> None:
    slurmctld.unit |= DOWN
    slurmctld.ups = ["Slurmctld(primary) at front is DOWN", "Slurmctld(primary) at front is DOWN", "is UP"]
    assert slurmctld()["action"] == "start"
    assert slurmctld.slept == [0.5] * 3
    assert slurmctld.ran.told.count(PING) == 3
    assert slurmctld.ran.told.count(NODE) == 0


def test_slurmctld_that_does_not_answer_is_a_failure_and_slurmd_is_not(slurmctld: Machine) -> None:
    slurmctld.unit |= DOWN
    slurmctld.answers = {"scontrol ping": (-9, "is UP", "")}
    assert slurmctld(wait_seconds=2)["msg"] == "slurmctld: it runs but does not answer after 2 s"
    slurmctld.slept = []
    slurmctld.unit |= DOWN
    slurmctld.answers = {"scontrol ping": (1, "is UP", "")}
    assert slurmctld(wait_seconds=2)["msg"] == "slurmctld: it runs but does not answer after 2 s"
    assert slurmctld.slept == [0.5] * 5
    slurmctld.name, slurmctld.slept, slurmctld.states = "slurmd", [], ["DOWN+NOT_RESPONDING"]
    slurmctld.unit |= DOWN
    assert slurmctld(wait_seconds=2)["action"] == "start"
    assert slurmctld.slept == [0.5] * 5
    assert (slurmctld.record / "slurm.conf").read_text() == CONF


def test_time_to_wait_ends_only_when_it_is_over(slurmctld: Machine) -> None:
    slurmctld.unit |= DOWN
    slurmctld.ups = ["DOWN", "DOWN", "is UP"]
    assert slurmctld(wait_seconds=1)["action"] == "start"


def test_three_quarters_of_a_minute_are_waited_when_nobody_says_otherwise(slurmctld: Machine) -> None:
    slurmctld.unit |= DOWN
    slurmctld.ups = ["DOWN"]
    assert slurmctld()["msg"] == "slurmctld: it runs but does not answer after 45 s"
    assert sum(slurmctld.slept) == 45.5


@pytest.mark.parametrize(("states", "asked"), [(["IDLE"], 2), (["UNKNOWN", "DOWN*", "IDLE"], 4), ([""], 2)])
def test_a_started_slurmd_is_waited_for_until_slurmctld_knows_it(
    slurmd: Machine, states: list[str], asked: int
) -> None:
    """Without slurmctld it waits for that one, and is as far as it can get."""
    slurmd.unit |= DOWN
    slurmd.states = states
    assert slurmd()["action"] == "start"
    assert slurmd.ran.told.count(NODE) == asked


def test_a_slurmd_that_slurmctld_has_not_heard_of_is_waited_for_a_while(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.states = ["UNKNOWN", "UNKNOWN", "UNK*", "IDLE"]
    assert slurmd() == NOTHING
    assert slurmd.slept == [0.5, 0.5]
    slurmd.slept, slurmd.states = [], ["UNKNOWN"]
    assert slurmd(wait_seconds=2) == NOTHING
    assert slurmd.slept == [0.5] * 4
    slurmd.slept = []
    assert slurmd(check=True) == NOTHING
    assert slurmd.slept == []


MISSING = "all of the following are missing"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node": None}, "name is slurmd but all of the following are missing: node"),
        ({"record_dir": None}, "name is slurmd but all of the following are missing: record_dir"),
        (
            {"name": "slurmctld", "record_dir": None},
            "name is slurmctld but all of the following are missing: record_dir",
        ),
        ({"name": "slurmstepd"}, "value of name must be one of: slurmctld, slurmd, slurmdbd, got: slurmstepd"),
        ({"files": None}, "missing required arguments: files"),
        ({"version": None}, "missing required arguments: version"),
        ({"phase": "go"}, "value of phase must be one of: apply, plan, stop_first, got: go"),
        ({"announced": "go"}, "value of announced must be one of: nothing, start, reconfigure, restart, got: go"),
    ],
)
def test_it_is_refused_without_what_it_needs(slurmd: Machine, changes: dict[str, Any], said: str) -> None:
    assert slurmd(**changes) == {"failed": True, "msg": said}
    assert slurmd.ran.told == []


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    assert as_program("hal_slurm_daemon") == {"failed": True, "msg": "missing required arguments: files, name, version"}
