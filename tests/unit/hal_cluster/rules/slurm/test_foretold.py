"""What check mode says of the daemons: which would do what, when, and for which line."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.slurm.foretold import foretold
from tests.unit.hal_node.slurm.machine import CONF, DOWN, NOTHING, STARTED, Machine

COUNT = CONF.replace("10000", "20000")
COUNT_LINE = (
    "slurm.conf MaxJobCount: 10000 -> 20000: restart (read by slurmctld only when it starts; slurm.conf(5) MaxJobCount)"
)
TIME_LINE = "slurm.conf SlurmctldTimeout: 120 -> 300: reconfigure (taken at a reconfigure; scontrol(1) reconfigure)"
WAITS = "has to restart and waits: 1 job runs there; slurm_restart_ok=true permits it, or repeat when none runs"


def planned(machine: Machine, text: str) -> dict[str, Any]:
    return {"planned": [{"path": str(machine.conf), "content": text, "mode": "0644"}, {"path": "/x", "content": ""}]}


def test_the_file_that_would_be_written_is_judged_line_by_line_and_nothing_is_written(slurmctld: Machine) -> None:
    slurmctld.recorded()
    said = slurmctld(check=True, **planned(slurmctld, COUNT.replace("=120", "=300")))
    assert (said["action"], said["changed"]) == ("restart", True)
    assert slurmctld.foretold == ["restarts now", COUNT_LINE, TIME_LINE]
    slurmctld.jobs["cluster"] = (0, "7\n", "")
    said = slurmctld(check=True, **planned(slurmctld, COUNT))
    assert (said["action"], said["pending"], said["changed"]) == ("nothing", "restart", False)
    assert slurmctld.foretold == [WAITS, COUNT_LINE]
    slurmctld(check=True, **planned(slurmctld, CONF.replace("=120", "=300")))
    assert slurmctld.foretold == ["is reconfigured now", TIME_LINE]
    assert slurmctld(check=True, **planned(slurmctld, "# new\n" + CONF)) == NOTHING
    assert slurmctld.foretold == ["goes on as it is"]
    assert (slurmctld.conf.read_text(), (slurmctld.record / "slurm.conf").read_text(), slurmctld.did) == (
        CONF,
        CONF,
        [],
    )


def test_without_check_mode_the_file_that_is_there_counts(slurmctld: Machine) -> None:
    slurmctld.recorded()
    assert slurmctld(**planned(slurmctld, COUNT)) == NOTHING
    assert slurmctld.foretold == []


def test_what_loses_jobs_is_said_at_its_line(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld(check=True, **planned(slurmctld, CONF + "SelectType=select/linear\n"))
    assert slurmctld.foretold[1].startswith(
        "slurm.conf SelectType: (not set) -> select/linear: restart when no job runs (all job information,"
    )


def test_a_daemon_that_does_not_run_or_is_not_installed_is_named_so(slurmd: Machine) -> None:
    slurmd.unit |= DOWN
    slurmd(check=True, **planned(slurmd, COUNT))
    assert slurmd.foretold == ["does not run: it is started"]
    slurmd.unit["LoadState"] = "not-found"
    slurmd(check=True, **planned(slurmd, COUNT))
    assert slurmd.foretold == ["is not installed: it is installed and started"]


def test_a_drop_in_that_would_be_written_is_a_reason(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write("[Service]\n", STARTED - 5, slurmd.unit_file)
    drop_in = {"path": str(slurmd.unit_file), "content": "[Service]\n"}
    assert slurmd(check=True, planned=[drop_in]) == NOTHING
    drop_in["content"] = "[Service]\nLimitNOFILE=1\n"
    assert slurmd(check=True, planned=[drop_in])["action"] == "restart"
    assert slurmd.foretold == ["restarts now", f"{slurmd.unit_file} would be written anew: restart"]


def test_of_a_secret_file_only_that_it_changes_is_told(slurmdbd: Machine) -> None:
    assert slurmdbd(check=True, planned=[]) == NOTHING
    assert slurmdbd(check=True, planned=[{"path": str(slurmdbd.conf)}])["action"] == "restart"
    assert slurmdbd.foretold == [
        "restarts now",
        f"{slurmdbd.conf} would be written anew, and what it read is not recorded: restart",
    ]


SMALLER = CONF.replace("RealMemory=240000", "RealMemory=200000")
SMALLER_LINE = (
    "slurm.conf node hal05 realmemory: 240000 -> 200000: restart (slurmctld and slurmd must agree on the node's line;"
    " slurm.conf(5) NODE CONFIGURATION)"
)
FIRST = "has to restart and waits: slurmctld runs with RealMemory=240000 for this node, the file says 200000: "


@pytest.mark.parametrize(
    ("announced", "job", "head"),
    [
        ("restart", "", "stops before slurmctld restarts, and is started after it"),
        ("start", "7\n", "stops before slurmctld restarts, and is started after it"),
        ("nothing", "", FIRST + "slurmctld has to restart first"),
        (None, "", FIRST + "slurmctld has to restart first"),
    ],
)
def test_slurmd_says_what_it_does_after_what_slurmctld_would_have_done(
    slurmd: Machine, announced: str | None, job: str, head: str
) -> None:
    slurmd.recorded()
    slurmd.jobs = {"node": (0, job, ""), "cluster": (0, job, "")}
    slurmd(check=True, announced=announced, **planned(slurmd, SMALLER))
    assert slurmd.foretold == [head, SMALLER_LINE]
    assert slurmd.did == []


def test_a_restart_of_slurmctld_gives_slurmd_no_permission_for_its_own(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.jobs = {"node": (0, "7\n", ""), "cluster": (0, "7\n", "")}
    slurmd(check=True, announced="restart", **planned(slurmd, CONF + "TaskPlugin=task/none\n"))
    assert slurmd.foretold[0] == WAITS


# ---------------------------------------------------------------------------------------------------------- the filter
def test_nodes_that_say_the_same_are_told_together() -> None:
    hosts: dict[str, dict[str, Any]] = {
        f"hal{number:02d}": {"d": {"foretold": ["restarts now", "x"]}} for number in range(1, 5)
    }
    hosts["hal03"] = {"d": {"foretold": [WAITS, "x"]}}
    hosts["hal05"] = {"d": {"foretold": ["restarts now", "x"]}}  # not in the play
    hosts["front"] = {"c": {"foretold": ["goes on as it is"]}, "d": {"skipped": True}}
    names = ["front", "hal01", "hal02", "hal03", "hal04"]
    assert foretold(hosts, names, {"slurmctld": "c", "slurmd": "d"}) == [
        "slurmctld on front goes on as it is",
        "slurmd on hal[01-02,04] restarts now",
        "  x",
        f"slurmd on hal03 {WAITS}",
        "  x",
    ]
