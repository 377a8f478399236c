"""hal_slurm_daemon and what is new since a daemon was started: what it needs, who is first, what is noted."""

from __future__ import annotations

import pytest

from tests.unit.hal_node.slurm.machine import CONF, DOWN, JOBS, NODE, NOTHING, STARTED, Machine, show
from tests.unit.modules import Answer


def test_a_daemon_with_what_it_has_read_is_left_alone(slurmd: Machine) -> None:
    slurmd.recorded()
    assert slurmd() == NOTHING
    assert slurmd.ran.told == [show("slurmd"), NODE, NODE]
    assert slurmd.ran.environments[-1] == {"LC_ALL": "C", "SLURM_CONF": str(slurmd.record / "slurm.conf")}


def test_what_means_the_same_needs_nothing_but_is_noted(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld.write("# the same\n" + CONF, STARTED + 5)
    assert slurmctld() == NOTHING
    assert (slurmctld.record / "slurm.conf").read_text() == CONF, "there was no change"
    slurmctld.name = "slurmd"
    slurmctld.recorded(CONF.replace("MaxJobCount", "AccountingStorageEnforce=safe\nMaxJobCount"))
    assert slurmctld() == NOTHING
    assert (slurmctld.record / "slurm.conf").read_text() == "# the same\n" + CONF, "it concerns slurmctld alone"


def test_what_is_needed_and_not_done_is_not_noted(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld.write(CONF.replace("10000", "20000"), STARTED + 5)
    slurmctld.jobs["cluster"] = (0, "7\n7\n8\n", "")
    said = slurmctld()
    assert said["pending"] == "restart"
    assert said["blocked"] == "2 jobs run there; slurm_restart_ok=true permits it, or repeat when none runs"
    assert [line.split(" (")[0] for line in said["why"]] == ["slurm.conf MaxJobCount: 10000 -> 20000"]
    assert (said["action"], said["changed"], slurmctld.did) == ("nothing", False, [])
    assert slurmctld.ran.told == [show("slurmctld"), JOBS]
    assert (slurmctld.record / "slurm.conf").read_text() == CONF


def test_whether_jobs_run_is_not_known_without_an_answer(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld.write(CONF.replace("10000", "20000"), STARTED + 5)
    slurmctld.jobs["cluster"] = (1, "", "")
    assert slurmctld()["blocked"].startswith("whether jobs run is not known")


def test_with_permission_or_without_jobs_it_restarts_and_notes_it(slurmctld: Machine) -> None:
    changed = CONF.replace("10000", "20000")
    for jobs, permitted in (("", False), ("7\n", True)):
        slurmctld.recorded()
        slurmctld.write(changed, STARTED + 5)
        slurmctld.jobs["cluster"] = (0, jobs, "")
        said = slurmctld(check=True, restart_ok=permitted)
        assert (said["action"], said["changed"], slurmctld.did) == ("restart", True, [])
        assert (slurmctld.record / "slurm.conf").read_text() == CONF
        said = slurmctld(restart_ok=permitted)
        assert (said["action"], said["pending"], said["changed"], said["blocked"]) == ("restart", "nothing", True, "")
        assert slurmctld.did == ["systemctl reset-failed slurmctld.service", "systemctl restart slurmctld.service"]
        assert (slurmctld.record / "slurm.conf").read_text() == changed


def test_slurmctld_is_reconfigured_by_its_own_command_and_slurmd_by_its_unit(slurmctld: Machine) -> None:
    changed = CONF.replace("=120", "=300")
    for name, done in (
        ("slurmctld", "timeout 60 scontrol reconfigure"),
        ("slurmd", "systemctl reload slurmd.service"),
    ):
        slurmctld.name = name
        slurmctld.recorded()
        slurmctld.write(changed, STARTED + 5)
        said = slurmctld()
        assert (said["action"], said["changed"]) == ("reconfigure", True)
        assert slurmctld.did == [done]
        assert (slurmctld.record / "slurm.conf").read_text() == changed
    # What runs is asked where it listens, what is new is told to it by the new file.
    slurmctld.name = "slurmctld"
    slurmctld.recorded()
    slurmctld.answers = {"scontrol reconfigure": (1, "", " Zero Bytes were transmitted\n")}
    assert slurmctld()["msg"] == "slurmctld: scontrol reconfigure: Zero Bytes were transmitted"
    at = slurmctld.ran.told.index(["timeout", "60", "scontrol", "reconfigure"])
    assert slurmctld.ran.environments[at] == {"LC_ALL": "C"}
    assert slurmctld.ran.environments[at - 1]["SLURM_CONF"] == str(slurmctld.record / "slurm.conf")
    slurmctld.answers = {"scontrol reconfigure": (1, "said there", "")}
    assert slurmctld()["msg"] == "slurmctld: scontrol reconfigure: said there"


def test_without_a_record_an_older_file_is_what_the_daemon_read(slurmd: Machine) -> None:
    slurmd.write(CONF, STARTED)
    assert slurmd(phase="plan") == NOTHING
    assert slurmd(check=True) == NOTHING
    assert not slurmd.record.exists()
    assert slurmd() == NOTHING
    assert (slurmd.record / "slurm.conf").read_text() == CONF


def test_what_slurmd_read_of_a_newer_file_is_not_known_and_no_permission_restarts_it(slurmd: Machine) -> None:
    slurmd.write(CONF, STARTED + 1)
    said = slurmd(phase="plan")
    why = f"{slurmd.conf} is newer than the daemon, what it read is not recorded, and slurmd does not show it; none"
    assert said["why"] == [f"slurm.conf as the daemon read it ({why})"]
    assert (said["action"], said["changed"]) == ("restart", False), "no job is there"
    slurmd.jobs["cluster"] = (0, "7\n", "")
    for running, waiting in (("7\n", ""), ("", "8\n")):
        slurmd.jobs |= {"cluster": (0, running, ""), "waiting": (0, waiting, "")}
        said = slurmd(restart_ok=True)
        assert (said["action"], said["pending"], slurmd.did) == ("nothing", "restart", [])
        assert said["blocked"].endswith("it would lose them: repeat when there is none, no permission overrides this")
    assert not slurmd.record.exists()


def test_a_record_of_an_earlier_process_does_not_count(slurmd: Machine) -> None:
    slurmd.write(CONF.replace("=120", "=300"), STARTED - 100)
    slurmd.recorded(at=STARTED - 30)
    assert slurmd(check=True)["action"] == "reconfigure"
    slurmd.recorded(at=STARTED - 31)
    assert slurmd(check=True) == NOTHING


def test_a_new_program_or_unit_file_is_a_reason_to_restart(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write("[Service]\n", STARTED, slurmd.unit_file)
    assert slurmd(check=True) == NOTHING
    slurmd.write("[Service]\n", STARTED + 1, slurmd.unit_file)
    assert slurmd(check=True)["why"] == [f"{slurmd.unit_file} is newer than the daemon"]
    slurmd.unit_file.unlink()
    slurmd.program.write_text("")
    slurmd.ran.programs = {"slurmd": str(slurmd.program)}
    said = slurmd(check=True)
    assert said["why"] == [f"{slurmd.program} was replaced after the daemon started"]
    assert said["action"] == "restart"
    # Not newer than the daemon.
    later = slurmd.program.stat().st_ctime + 1000
    slurmd.unit["ExecMainStartTimestampMonotonic"] = str(int(later * 1e6))
    slurmd.recorded(at=later)
    assert slurmd(check=True) == NOTHING


def test_jobs_of_its_own_node_are_in_the_way_of_slurmd_and_those_of_others_are_not(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write("[Service]\n", STARTED + 1, slurmd.unit_file)
    slurmd.jobs = {"node": (0, "7\n", ""), "cluster": (0, "7\n8\n", "")}
    said = slurmd(phase="plan")
    assert (said["action"], said["pending"]) == ("nothing", "restart")
    assert said["blocked"].startswith("1 job runs there")
    assert slurmd.ran.told == [show("slurmd"), [*JOBS, "--nodelist", "hal05"], JOBS]
    slurmd.jobs["node"] = (0, "", "")
    assert slurmd(phase="plan")["action"] == "restart"
    assert slurmd.did == []


# ------------------------------------------------------------------------------------------------- who is first
SMALLER = CONF.replace("RealMemory=240000", "RealMemory=200000")


def test_slurmd_waits_until_slurmctld_has_its_new_line(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write(SMALLER, STARTED + 5)
    said = slurmd()
    assert said["blocked"] == (
        "slurmctld runs with RealMemory=240000 for this node, the file says 200000: slurmctld has to restart first"
    )
    assert (said["action"], said["pending"]) == ("nothing", "restart")
    # Before anything was done all that counts is what it needs.
    assert slurmd(phase="plan")["action"] == "restart"
    for state in ("", "IDLE RealMemory=200000"):
        slurmd.recorded()
        slurmd.states = [state]
        assert slurmd()["action"] == "restart", state


@pytest.mark.parametrize("change", ["CPUs=152", "Gres=gpu:v100:3", "RealMemory=1"])
def test_every_value_that_slurmctld_shows_is_compared(slurmd: Machine, change: str) -> None:
    key = change.split("=")[0]
    line = next(word for word in CONF.split() if word.startswith(f"{key}="))
    slurmd.recorded()
    slurmd.write(CONF.replace(line, change), STARTED + 5)
    shown = {"CPUs": "CPUTot"}.get(key, key)
    value, wanted = line.split("=")[1], change.split("=")[1]
    value += "(S:0-1)" if key == "Gres" else ""
    assert slurmd()["blocked"] == (
        f"slurmctld runs with {shown}={value} for this node, the file says {wanted}: slurmctld has to restart first"
    )


@pytest.mark.parametrize("said", [(1, "", "Node hal06 not found"), (1, "Invalid node name specified", "")])
def test_slurmctld_has_to_know_a_new_node_first(slurmd: Machine, said: Answer) -> None:
    grown = CONF + "NodeName=hal[06-07] CPUs=160\n"
    slurmd.recorded()
    slurmd.write(grown, STARTED + 5)
    slurmd.answers = {"show node hal06": said}
    assert slurmd()["blocked"] == "slurmctld does not know hal[06-07] yet: it has to restart first"
    slurmd.answers = {"show node hal06": (1, "", "Unable to contact slurm controller")}
    assert slurmd()["action"] == "restart"


def test_a_change_that_needs_no_restart_waits_for_nobody(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write(CONF.replace("=120", "=300"), STARTED + 5)
    assert slurmd()["action"] == "reconfigure"
    assert slurmd.ran.told.count(NODE) == 2, "whether it has to register, and after it"


def test_slurmd_is_down_while_slurmctld_learns_another_line_of_its_node(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write(SMALLER, STARTED + 5)
    for announced in ("restart", "start"):
        wanted = {**NOTHING, "changed": True, "action": "stop"}
        said = slurmd(check=True, phase="stop_first", announced=announced)
        assert {**said, "why": []} == wanted
        assert slurmd.did == []
        said = slurmd(phase="stop_first", announced=announced)
        assert [line.split(" (")[0] for line in said["why"]] == ["slurm.conf node hal05 realmemory: 240000 -> 200000"]
        assert slurmd.did == ["systemctl stop slurmd.service"]


def test_slurmd_goes_on_when_it_need_not_be_down(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.write(SMALLER, STARTED + 5)
    assert slurmd(phase="stop_first") == NOTHING, "slurmctld does nothing"
    assert slurmd(phase="stop_first", announced="reconfigure") == NOTHING
    slurmd.jobs["cluster"] = slurmd.jobs["node"] = (0, "7\n", "")
    slurmd.write(CONF.replace("CPUs=160", "CPUs=160 CoresPerSocket=18"), STARTED + 5)
    assert slurmd(phase="stop_first", announced="nothing") == NOTHING
    slurmd.write(CONF.replace("=120", "=300"), STARTED + 5)
    assert slurmd(phase="stop_first", announced="restart") == NOTHING
    slurmd.unit |= DOWN
    slurmd.write(SMALLER, STARTED + 5)
    assert slurmd(phase="stop_first", announced="restart") == NOTHING
    assert slurmd.did == []


# ------------------------------------------------------------------------------------------------------------- slurmdbd
def test_slurmdbd_restarts_for_a_new_file_whatever_runs(slurmdbd: Machine) -> None:
    slurmdbd.write(CONF, STARTED + 1)
    said = slurmdbd(phase="plan")
    assert said == {
        **NOTHING,
        "action": "restart",
        "why": [f"{slurmdbd.conf} is newer than the daemon, and what it read is not recorded"],
    }
    assert slurmdbd()["action"] == "restart"
    assert slurmdbd.did == ["systemctl reset-failed slurmdbd.service", "systemctl restart slurmdbd.service"]
    asked = ["timeout", "5", "sacctmgr", "--noheader", "--parsable2", "show", "cluster"]
    assert slurmdbd.ran.told[-1] == asked
    assert not slurmdbd.record.exists()


def test_slurmdbd_is_started_and_has_to_answer(slurmdbd: Machine) -> None:
    slurmdbd.unit |= DOWN
    said = slurmdbd()
    assert (said["action"], said["why"]) == ("start", ["slurmdbd does not run"])
    slurmdbd.unit |= DOWN
    slurmdbd.answers = {"sacctmgr": (1, "", "")}
    assert slurmdbd(wait_seconds=1)["msg"] == "slurmdbd: it runs but does not answer after 1 s"


def test_slurmdbd_with_its_file_is_left_alone(slurmdbd: Machine) -> None:
    assert slurmdbd() == NOTHING
    assert slurmdbd.ran.told == [show("slurmdbd")]
