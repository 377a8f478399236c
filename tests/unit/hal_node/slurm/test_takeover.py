"""A Slurm that was configured otherwise: what it runs with is compared, and new files wait for its daemons."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from ansible.module_utils.hal_node.slurm.change import classify
from ansible.module_utils.hal_node.slurm.conf import parse
from ansible.module_utils.hal_node.slurm.shown import Shown, read, running

from tests.unit.hal_node.slurm.machine import CONF, DOWN, NOTHING, STARTED, Machine

# Lines of "scontrol show config" of 20.02.7 (source: slurm_conf.c, slurm_ctl_conf_2_key_pairs).
CONFIG = """\
Configuration data as of 2026-11-27T11:40:02
AuthType                = auth/munge
ClusterName             = hal
CredType                = cred/munge
ProctrackType           = proctrack/cgroup
SelectType              = select/linear
SlurmctldHost[0]        = hal-login(10.64.0.2)
SlurmctldPort           = 6817
StateSaveLocation       = /var/spool/slurm
SwitchType              = switch/none
"""
SIZES = "RealMemory=240000 Sockets=2 ThreadsPerCore=4 State=IDLE"
NODES = f"""\
NodeName=hal01 Arch=ppc64le CoresPerSocket=20 CPUTot=160 Gres=gpu:v100:4(S:0-1) {SIZES}
NodeName=hal02 Arch=ppc64le CoresPerSocket=20 CPUTot=160 Gres=(null) {SIZES}
"""
PARTITIONS = "PartitionName=gpu AllowGroups=ALL Nodes=hal[01-02]\nPartitionName=old AllowGroups=ALL Nodes=hal01\n"
SHAPE = "CPUs=160 Sockets=2 CoresPerSocket=20 ThreadsPerCore=4 RealMemory=240000"
NEW = f"""\
ClusterName=hal
SlurmctldHost=hal-login(10.64.0.2)
SelectType=select/cons_tres
StateSaveLocation=/var/spool/slurm
SlurmctldPort=6817
NodeName=hal01 {SHAPE} Gres=gpu:v100:4
NodeName=hal02 {SHAPE}
PartitionName=gpu Nodes=hal[01-02]
"""


@pytest.fixture
def shown() -> Shown:
    found = read(CONFIG, NODES, PARTITIONS)
    assert isinstance(found, Shown)
    return found


def subjects(old: str, new: str, shown: Shown | None) -> list[str]:
    return [one.subject for one in classify({"slurm.conf": old}, {"slurm.conf": new}, "20.02.7", None, shown)]


def test_what_slurmctld_shows_counts_and_not_what_was_written_since_it_started(shown: Shown) -> None:
    """The file has the new SelectType already: slurmctld has not, and a restart would lose all jobs."""
    assert subjects(NEW, NEW, None) == []
    assert subjects(NEW, NEW, shown) == ["SelectType", "partition old"]


def test_other_spellings_of_what_runs_are_no_change(shown: Shown) -> None:
    old = NEW.replace("SlurmctldHost=hal-login(10.64.0.2)", "ControlMachine=hal-login\nControlAddr=10.64.0.2")
    old = old.replace("ClusterName=hal", "ClusterName=HAL").replace(
        "CPUs=160 Sockets=2", "Procs=160 Boards=1 Sockets=2"
    )
    assert subjects(old, NEW, shown) == ["SelectType", "partition old"]


def test_a_node_has_the_sizes_that_slurmctld_has(shown: Shown) -> None:
    conf = running(parse("NodeName=hal[01-03] CPUs=1 Gres=gpu:8 Feature=x\n"), parse(NEW), shown)
    shape = {"cpus": "160", "sockets": "2", "corespersocket": "20", "threadspercore": "4", "realmemory": "240000"}
    assert conf.nodes == {
        "hal01": {"feature": "x", "gres": "gpu:v100:4", **shape},
        "hal02": {"feature": "x", **shape},
    }
    gone = NEW.replace(f"NodeName=hal02 {SHAPE}\n", "")
    assert "nodes removed" in subjects(gone, gone, shown)


@pytest.mark.parametrize("part", range(3))
def test_half_an_answer_is_none(part: int) -> None:
    said = [CONFIG, NODES, PARTITIONS]
    said[part] = "slurm_load_jobs error: Unable to contact slurm controller\n"
    assert read(*said) is None


# ---------------------------------------------------------------- the module
CHANGED = CONF.replace("10000", "20000")


def test_new_files_wait_until_the_daemon_takes_them(slurmctld: Machine) -> None:
    """A `scontrol reconfigure`, or a slurmctld that crashes, finds its own files."""
    slurmctld.recorded()
    slurmctld.stage(CHANGED)
    slurmctld.conf.chmod(0o666)
    slurmctld.jobs["cluster"] = (0, "7\n", "")
    said = slurmctld()
    assert (said["action"], said["pending"], said["placed"], said["changed"]) == ("nothing", "restart", [], False)
    assert (slurmctld.conf.read_text(), slurmctld.did) == (CONF, [])

    slurmctld.jobs["cluster"] = (0, "", "")
    assert slurmctld(check=True)["placed"] == [str(slurmctld.conf)]
    assert slurmctld.conf.read_text() == CONF
    said = slurmctld()
    assert (said["action"], said["placed"]) == ("restart", [str(slurmctld.conf)])
    assert not said["accounting"]
    slurmctld.stage(CHANGED + "AccountingStorageType=accounting_storage/slurmdbd\n")
    assert slurmctld(check=True)["accounting"] is False
    assert slurmctld()["accounting"] is True
    slurmctld.stage(CHANGED)
    slurmctld()
    assert slurmctld.conf.read_text() == (slurmctld.record / "slurm.conf").read_text() == CHANGED
    assert stat.S_IMODE(slurmctld.conf.stat().st_mode) == 0o644


def test_what_a_daemon_needs_nothing_for_comes_in_place_at_once(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld.stage("# the same\n" + CONF)
    assert slurmctld() == {**NOTHING, "changed": True, "placed": [str(slurmctld.conf)]}
    assert slurmctld() == NOTHING
    assert (slurmctld.record / "slurm.conf").read_text() == "# the same\n" + CONF


def test_a_slurmctld_that_does_not_run_and_has_jobs_starts_with_its_own_files(
    slurmctld: Machine, tmp_path: Path
) -> None:
    old = f"StateSaveLocation={tmp_path}\nSelectType=select/linear\n{CONF}"
    slurmctld.unit |= DOWN
    slurmctld.write(old)
    slurmctld.stage(old.replace("select/linear", "select/cons_tres"))
    (tmp_path / "job_state").write_text("")
    said = slurmctld(check=True)
    assert (said["action"], said["pending"], said["placed"]) == ("start", "restart", [])
    assert said["blocked"] == (
        f"{tmp_path}/job_state has jobs that slurmctld saved: it starts with the files that it had"
    )
    assert slurmctld()["action"] == "start"
    assert (slurmctld.conf.read_text(), (slurmctld.record / "slurm.conf").read_text()) == (old, old)

    slurmctld.unit |= DOWN
    (tmp_path / "job_state").unlink()
    said = slurmctld()
    assert (said["action"], said["pending"], said["placed"]) == ("start", "nothing", [str(slurmctld.conf)])


def test_a_slurmd_that_crashed_does_not_register_with_a_line_that_slurmctld_has_not(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.unit |= DOWN
    slurmd.stage(CONF.replace("RealMemory=240000", "RealMemory=200000"))
    said = slurmd()
    assert (said["action"], said["pending"], slurmd.conf.read_text()) == ("start", "restart", CONF)
    assert said["blocked"].startswith("slurmctld runs with RealMemory=240000 for this node, the file says 200000")


def test_a_first_takeover_compares_with_what_slurmctld_shows(slurmctld: Machine) -> None:
    """slurm.conf was edited after slurmctld's start, as on any machine that is in production."""
    slurmctld.write(NEW, STARTED + 5)
    slurmctld.stage(NEW)
    slurmctld.answers = {
        "show config": (0, CONFIG, ""), "show node": (0, NODES, ""), "show partition": (0, PARTITIONS, ""),
    }  # fmt: skip
    slurmctld.jobs["waiting"] = (0, "8\n9\n", "")
    for permitted in (False, True):
        said = slurmctld(restart_ok=permitted)
        assert (said["action"], said["pending"], slurmctld.did) == ("nothing", "restart", [])
        assert said["blocked"].startswith("2 jobs wait in the cluster, and it would lose them")
        assert said["why"][0].startswith("slurm.conf SelectType: select/linear -> select/cons_tres")
    assert not slurmctld.record.exists(), "it stays a first takeover until it is over"
    assert not said["accounting"], "what is in place has none: nobody is asked to keep accounts"

    slurmctld.answers["show node"] = (1, "", "Unable to contact slurm controller")
    said = slurmctld(restart_ok=True)
    assert said["pending"] == "restart"
    assert "and slurmctld does not show it" in said["why"][0]


def test_a_first_takeover_of_older_files_needs_no_answer(slurmctld: Machine) -> None:
    slurmctld.stage(CHANGED)
    slurmctld.jobs["cluster"] = (0, "7\n", "")
    said = slurmctld(restart_ok=True)
    assert (said["pending"], said["placed"]) == ("restart", [])
    assert "no permission overrides this" in said["blocked"]
    assert [line.split(" (")[0] for line in said["why"]] == ["slurm.conf MaxJobCount: 10000 -> 20000"]
    slurmctld.jobs["cluster"] = (0, "", "")
    assert slurmctld()["action"] == "restart"
    assert (slurmctld.record / "slurm.conf").read_text() == CHANGED
