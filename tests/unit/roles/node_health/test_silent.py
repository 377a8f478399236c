"""A check without an answer takes no healthy node out, and neither do more nodes leave than a site permits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import OTHER, Installed, file_is, smi

HEALTHY, NOT_HEALTHY, NOT_KNOWN, HELD = 0, 1, 2, 3
SCALE = "Spectrum Scale is not active"
SILENT = f"{SCALE}? (daemon is active: cannot be read: mmgetstate did not finish within 10 s"


def updates(node: Installed) -> list[list[str]]:
    """What Slurm was told to change."""
    return [call[2:] for call in node.node["calls"] if call[0] == "update"]


def alarm(node: Installed) -> str:
    """What stands where an audit finds it."""
    path = node.folder / "alarm"
    return path.read_text() if path.exists() else ""


def answers(node: Installed, text: str = "active") -> None:
    """Let mmgetstate say this; with an empty text it has no answer, as on a machine with a load of 60."""
    node.plant("mmgetstate", f"#!/bin/sh\necho '{text}'\n[ '{text}' ] || exit 7\n")


@pytest.fixture
def scale(hal01: Installed) -> Installed:
    """A node that asks for the daemon of Spectrum Scale, and for a disk."""
    (hal01.folder / "disk").write_text("well\n")
    question = {"command": {"argv": ["mmgetstate"]}, "equal": "active"}
    daemon = {"id": "daemon is active", "words": SCALE, "role": "spectrum_scale", "question": question}
    hal01.asks(daemon, file_is(hal01.folder / "disk", "disk full"))
    (hal01.folder / "proc/self").mkdir()
    (hal01.folder / "proc/self/mounts").write_text(f"home {hal01.folder} gpfs rw 0 0\n")
    hal01.witnesses = {"spectrum_scale": {"processes": ["mmfsd"], "mounts": [str(hal01.folder)]}}
    answers(hal01, "")
    return hal01


@pytest.mark.parametrize("version", EVERY)
def test_one_check_without_an_answer_takes_no_node_out(scale: Installed, version: str) -> None:
    scale.runs(4711, 0, b"mmfsd")
    done = scale.run("--act", python=interpreter(version))
    assert done.returncode == NOT_HEALTHY, done.stderr
    said = "cannot be read: mmgetstate ended with status 7); the next check looks once more"
    assert f"?    spectrum_scale  {SCALE} (daemon is active: {said}" in done.stdout
    answers(scale)
    assert scale.run("--act", python=interpreter(version)).returncode == HEALTHY
    answers(scale, "")
    scale.run("--act", python=interpreter(version))
    assert (updates(scale), alarm(scale)) == ([], ""), "two that are not one after the other"


@pytest.mark.parametrize("version", EVERY)
def test_what_a_witness_finds_well_stays_and_an_administrator_is_told(scale: Installed, version: str) -> None:
    scale.runs(4711, 0, b"mmfsd")
    for _ in range(2):
        scale.run("--act", python=interpreter(version))
    assert (updates(scale), alarm(scale)) == ([], "")
    done = scale.run("--act", python=interpreter(version))
    words = f"), in 3 runs or more; mmfsd runs, {scale.folder} answers\n"
    assert alarm(scale).startswith(f"{SCALE}? (daemon is active: cannot be read: ")
    assert alarm(scale).endswith(words), done.stderr
    assert updates(scale) == []
    answers(scale)
    scale.run("--act", python=interpreter(version))
    assert alarm(scale) == "", "it answers"


def test_a_second_look_and_a_witness_against_it_drain(scale: Installed) -> None:
    scale.runs(1, 0, b"systemd")
    scale.run("--act")
    assert updates(scale) == []
    scale.run("--act")
    reason = updates(scale)[0][-1]
    assert reason.startswith(f"Reason=health: {SCALE}? (daemon is active: cannot be read: ")
    assert reason.endswith("; no process mmfsd is there)")
    answers(scale)
    assert "given back" in scale.run("--act").stdout


def test_a_mount_that_is_gone_is_a_witness_against_it(scale: Installed) -> None:
    scale.runs(4711, 0, b"mmfsd")
    (scale.folder / "proc/self/mounts").write_text("")
    for _ in range(2):
        scale.run("--act")
    assert updates(scale)[0][-1].endswith(f"; {scale.folder} is not mounted)")


def test_without_a_witness_two_looks_drain_and_on_a_slow_node_none(scale: Installed) -> None:
    scale.witnesses = {}
    scale.slow = True
    for _ in range(4):
        scale.run("--act")
    assert updates(scale) == []
    assert "in 3 runs or more; the node is slow, so a missing answer proves nothing" in alarm(scale)
    scale.slow = False
    scale.run("--act")
    assert updates(scale)[0][-1].startswith(f"Reason=health: {SCALE}? (")
    assert alarm(scale) == "", "now it is drained"


def test_what_fails_on_a_slow_node_is_seen_twice_and_hardware_once(scale: Installed) -> None:
    """A busy chronyd measures badly. A GPU that is lost is lost."""
    answers(scale)
    scale.slow = True
    (scale.folder / "disk").write_text("full\n")
    assert "the next check looks once more" in scale.run("--act").stdout
    assert updates(scale) == []
    scale.run("--act")
    assert updates(scale)[0][-1].startswith("Reason=health: disk full (")
    (scale.folder / "gpu").write_text("lost\n")
    scale.asks(file_is(scale.folder / "gpu", "GPU lost", hardware=True))
    scale.slurm("IDLE")
    scale.run("--act")
    assert updates(scale)[0][-1].startswith("Reason=health: GPU lost (")


def test_no_answer_ends_no_drain(scale: Installed) -> None:
    scale.runs(4711, 0, b"mmfsd")
    answers(scale, "down")
    scale.run("--act")
    answers(scale, "")
    for _ in range(3):
        scale.run("--act")
    assert [one[0] for one in updates(scale)] == ["State=DRAIN"]
    assert scale.node["state"] == "IDLE+DRAIN"


@pytest.mark.parametrize("version", EVERY)
def test_a_check_that_is_ended_every_time_is_an_alarm_and_no_drain(scale: Installed, version: str) -> None:
    """As slurmd ends it after 60 s: SIGKILL, here by what it asks."""
    ended = "#!/bin/sh\nkill -9 $(sed 's/.*) //' /proc/$PPID/stat | cut -d ' ' -f 2)\n"
    scale.plant("mmgetstate", ended)
    for _ in range(3):
        assert scale.run("--act", python=interpreter(version)).returncode == -9
        assert alarm(scale) == ""
    for _ in range(2):
        assert scale.run("--act", python=interpreter(version)).returncode == -9
        assert alarm(scale) == (
            "the check did not finish in 3 runs or more (slurmd ends it after 60 s): nothing is known of this node\n"
        )
    assert updates(scale) == []
    answers(scale)
    assert scale.run("--act", python=interpreter(version)).returncode == HEALTHY
    assert alarm(scale) == ""
    for _ in range(3):
        scale.plant("mmgetstate", ended)
        scale.run("--act", python=interpreter(version))
        answers(scale)
        scale.run("--act", python=interpreter(version))
    assert alarm(scale) == "", "three that are not one after the other"


# ---------------------------------------------------------------- around a job
@pytest.mark.parametrize("when", ["--job-begin", "--job-end"])
def test_a_job_is_not_kept_from_a_node_whose_gpus_are_not_known(driver: Installed, when: str) -> None:
    """Were the prolog to fail, Slurm itself would drain the node."""
    smi(driver, apps="exit 255", settings="kill -9 $$")
    (driver.folder / "gpu").unlink()
    (driver.folder / "gpu").mkdir()
    done = driver.run(when, SLURM_JOB_GPUS="1")
    assert done.returncode == HEALTHY, done.stderr
    assert "?    nvidia_driver  GPU lost (gpu is well: cannot be read" in done.stdout
    assert driver.node["calls"] == []


def test_settings_that_are_refused_once_are_set_the_second_time(driver: Installed) -> None:
    once = driver.folder / "once"
    smi(driver, settings=f"[ -e {once} ] || {{ touch {once}; exit 1; }}")
    assert driver.run("--job-end", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert driver.node["calls"] == []


def test_nothing_keeps_a_job_away_when_slurmctld_does_not_answer(driver: Installed) -> None:
    """Slurm would drain each node whose prolog fails: all at once, where slurmctld is too busy to say how many."""
    smi(driver, apps="echo 'GPU-0001, 4711'")
    driver.runs(4711, 1004)
    driver.slurm("IDLE", refuses=True)
    assert driver.run("--job-begin", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert "not drained for GPU in use without a job: " in alarm(driver)
    (driver.folder / "gpu").write_text("lost\n")
    assert driver.run("--job-begin", SLURM_JOB_GPUS="1").returncode == HEALTHY, "broken hardware"
    assert "not drained for GPU in use without a job; GPU lost: scontrol" in alarm(driver)
    assert updates(driver) == []


def test_a_node_without_a_partition_is_not_drained(lost: Installed) -> None:
    """How many may be out is not known then."""
    lost.plant("scontrol", lost.folder.joinpath("bin/scontrol").read_text().replace(" Partitions=gpu,cpu", ""))
    assert lost.run("--act").returncode == HELD
    assert "slurmctld names no partition of this node, so how many are out is not known" in alarm(lost)
    assert updates(lost) == []


# ---------------------------------------------------------------- reasons
def test_hardware_that_an_epilog_saw_stays_in_the_reason_beside_what_comes_later(driver: Installed) -> None:
    """It was overwritten by a full disk, and nobody saw what the node waited for."""
    (driver.folder / "disk").write_text("well\n")
    driver.checks += [{**file_is(driver.folder / "disk", "disk full"), "why": "jobs fail", "role": "base"}]
    smi(driver, settings="echo busy; exit 1")
    driver.run("--job-end", SLURM_JOB_GPUS="1")
    (driver.folder / "disk").write_text("full\n")
    driver.run("--act")
    assert driver.node["reason"].startswith("health: GPU settings not reset; disk full (settings of the GPUs: ")
    (driver.folder / "disk").write_text("well\n")
    driver.run("--act")
    assert driver.node["reason"].startswith("health: GPU settings not reset (settings of the GPUs: ")
    assert "disk full" not in driver.node["reason"]
    assert "stays drained for an administrator" in driver.run("--act").stdout
    known = json.loads((driver.folder / "drained.json").read_text())
    assert (known["hardware"], driver.node["reason"].startswith(known["reason"])) == (True, True)


# ---------------------------------------------------------------- how many
def others(node: Installed, *reasons: str, which: str = "others") -> None:
    """Let other nodes be drained for these reasons."""
    document = {**node.node}
    drained = [OTHER.format(number=number, more="+DRAIN") + f" Reason={reason}" for number, reason in
               enumerate(reasons, 2)]  # fmt: skip
    document[which] = drained + (document["others"][len(drained) :] if which == "others" else [])
    (node.folder / "slurm").write_text(json.dumps(document))


def ago(minutes: float) -> str:
    """When somebody drained a node, as Slurm writes it."""
    return time.strftime("[root@%Y-%m-%dT%H:%M:%S]", time.localtime(time.time() - 60 * minutes))


@pytest.fixture
def lost(hal01: Installed) -> Installed:
    """A node that lost a GPU, one of four in its partitions: one of them may be out."""
    (hal01.folder / "gpu").write_text("lost\n")
    hal01.asks(file_is(hal01.folder / "gpu", "GPU lost", hardware=True))
    return hal01


@pytest.mark.parametrize(
    ("reason", "held"),
    [
        ("health: disk full (a: b) {}", True), ("health: GPU lost, ticket 12 {}", True), ("new DIMM {}", False),
        ("health: disk full (a: b) [root@some day]", True),
    ],
)  # fmt: skip
def test_the_share_of_a_partition_is_asked_of_slurmctld(lost: Installed, reason: str, held: bool) -> None:
    others(lost, reason.format(ago(1)))
    done = lost.run("--act")
    out = "1 of 4 nodes of partition gpu went out for their health in the last 60 minutes (hal02)"
    assert (done.returncode, updates(lost) == []) == ((HELD, True) if held else (NOT_HEALTHY, False)), done.stderr
    assert alarm(lost) == (f"not drained for GPU lost: {out}\n" if held else "")


def test_who_was_taken_out_long_ago_counts_no_more_and_the_alarm_ends(lost: Installed) -> None:
    others(lost, f"health: disk full (a: b) {ago(59)}")
    lost.run("--act")
    assert alarm(lost)
    others(lost, f"health: disk full (a: b) {ago(61)}")
    lost.run("--act")
    assert (len(updates(lost)), alarm(lost)) == (1, "")


def test_of_nodes_that_drain_at_the_same_moment_no_more_stay_out_than_may(lost: Installed) -> None:
    """Each has asked before the others drained."""
    others(lost, "health: disk full (a: b)NOW", which="next")
    done = lost.run("--act")
    assert [one[0] for one in updates(lost)] == ["State=DRAIN", "State=UNDRAIN"]
    assert (done.returncode, json.loads((lost.folder / "drained.json").read_text())) == (HELD, {})
    assert alarm(lost).startswith("given back, though GPU lost: 1 of 4 nodes of partition gpu went out")


def test_who_drains_later_gives_way(lost: Installed) -> None:
    others(lost, f"health: disk full (a: b) {ago(-10)}", which="next")
    lost.run("--act")
    assert [one[0] for one in updates(lost)] == ["State=DRAIN"]


def test_a_job_begins_where_too_many_nodes_are_out_already(driver: Installed) -> None:
    (driver.folder / "gpu").write_text("lost\n")
    others(driver, f"health: disk full (a: b) {ago(1)}")
    assert driver.run("--job-begin", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert "not drained for GPU lost: 1 of 4" in alarm(driver)
    (driver.folder / "gpu").write_text("well\n")
    driver.run("--job-begin", SLURM_JOB_GPUS="1")
    assert alarm(driver), "a part of the checks ends no alarm"


@pytest.mark.parametrize("version", EVERY)
def test_what_an_epilog_alone_sees_is_not_forgotten_when_too_many_nodes_are_out(
    driver: Installed, version: str
) -> None:
    python = interpreter(version)
    smi(driver, settings="echo busy; exit 1")
    others(driver, f"health: disk full (a: b) {ago(1)}")
    for _ in range(2):
        assert driver.run("--job-end", python=python, SLURM_JOB_GPUS="1").returncode == HEALTHY
    smi(driver)
    words = "not drained for GPU settings not reset: 1 of 4 nodes"
    for _ in range(2):
        assert driver.run("--act", python=python).returncode == HELD
        assert alarm(driver).startswith(words), "a complete check has erased it"
    assert len(alarm(driver).splitlines()) == 1
    drained = driver.node["others"]
    driver.slurm("IDLE", refuses=True)
    driver.run("--act", python=python)
    assert alarm(driver).startswith("not drained for GPU settings not reset: scontrol"), "slurmctld does not answer"
    driver.slurm("IDLE")
    assert drained != driver.node["others"]
    driver.run("--act", python=python)
    assert updates(driver)[0][-1].startswith("Reason=health: GPU settings not reset (settings of the GPUs: ")
    assert alarm(driver) == "", "now it is drained"
    assert "stays drained for an administrator" in driver.run("--act", python=python).stdout
    driver.slurm("IDLE")
    assert driver.run("--act", python=python).returncode == HEALTHY
    assert updates(driver) == [], "an administrator gave it back"


def test_a_part_of_the_checks_that_drains_forgets_nothing_that_was_held(driver: Installed) -> None:
    smi(driver, settings="echo busy; exit 1")
    others(driver, f"health: disk full (a: b) {ago(1)}")
    driver.run("--job-end", SLURM_JOB_GPUS="1")
    driver.slurm("IDLE")
    smi(driver)
    (driver.folder / "gpu").write_text("lost\n")
    driver.run("--job-begin", SLURM_JOB_GPUS="1")
    driver.run("--act")
    assert driver.node["reason"].startswith("health: GPU lost; GPU settings not reset (")


def test_held_hardware_ends_when_its_own_check_passes_or_an_administrator_takes_the_node_out(driver: Installed) -> None:
    (driver.folder / "gpu").write_text("lost\n")
    smi(driver, settings="echo busy; exit 1")
    others(driver, f"health: disk full (a: b) {ago(1)}")
    driver.run("--job-end", SLURM_JOB_GPUS="1")
    (driver.folder / "gpu").write_text("well\n")
    driver.run("--act")
    assert alarm(driver).startswith("not drained for GPU settings not reset: "), "a GPU that is there is not lost"
    driver.slurm("IDLE+DRAIN", "new GPUs [alice@2026-11-21T16:00:00]")
    driver.run("--act")
    assert alarm(driver) == ""
    driver.slurm("IDLE")
    assert driver.run("--act").returncode == HEALTHY
    assert updates(driver) == []


def test_another_measure_is_no_newer_drain(hal01: Installed) -> None:
    """Each update gives the reason a new time: for the other nodes an old drain was one of now."""
    hal01.asks(file_is(hal01.folder / "free", "disk full", content="1024"))
    for free in ("812", "811", "810"):
        (hal01.folder / "free").write_text(free + "\n")
        hal01.run("--act")
    assert [one[-1] for one in updates(hal01)] == ["Reason=health: disk full (free is 1024: is 812, declared 1024)"]
    (hal01.folder / "free").write_text("1024\n")
    assert "given back" in hal01.run("--act").stdout


def test_slurmctld_that_does_not_answer_has_nothing_drained_and_the_alarm_says_so(lost: Installed) -> None:
    lost.slurm("IDLE", refuses=True)
    assert lost.run("--act").returncode == NOT_KNOWN
    assert updates(lost) == []
    assert alarm(lost).startswith("not drained for GPU lost: scontrol --oneliner: slurm_update error")


def test_an_alarm_drives_no_terminal(lost: Installed) -> None:
    lost.checks[0]["words"] = "GPU \x1b[2J lost"
    others(lost, f"health: disk full (a: b) {ago(1)}")
    lost.run("--act")
    assert alarm(lost).startswith("not drained for GPU \\x1b[2J lost: ")


# ---------------------------------------------------------------- the parts, by themselves
def test_a_process_that_has_ended_is_no_witness(scale: Installed) -> None:
    place = scale.folder / "proc/4711"
    place.mkdir()
    (place / "stat").write_text("4711 (mmfsd) Z " + "1 " * 40)
    for _ in range(2):
        scale.run("--act")
    assert "no process mmfsd is there" in updates(scale)[0][-1]


def test_what_hangs_in_the_kernel_since_an_earlier_run_counts_on_a_slow_node_too(scale: Installed) -> None:
    """Here a process that waits as the kernel has it: SIGKILL has not ended it."""
    scale.slow = True
    state, born = "D", Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    fields: list[Any] = [state, *range(18), born]
    program = scale.folder / "program/node_health_checks.py"
    program.write_text(
        program.read_text().replace("fields = _status(process)", f"fields = {[str(one) for one in fields]!r}")
        .replace("_status(still[name][0])[:1]", f"[{state!r}]")
    )  # fmt: skip
    name = json.dumps(["command", ["mmgetstate"]])
    (scale.folder / "hung").write_text(json.dumps({name: [os.getpid(), born]}))
    for _ in range(2):
        scale.run("--act")
    assert "an earlier check of it still hangs" in updates(scale)[0][-1]


@pytest.mark.parametrize(("took", "slow"), [(0.02, False), (0.079, False), (0.081, True), (3.0, True)])
def test_a_node_is_slow_where_work_takes_four_times_as_long_as_it_is(scale: Installed, took: float, slow: bool) -> None:
    """By clocks of this test: how busy this machine is changes nothing."""
    program = scale.folder / "program/node_health_slow.py"
    clocks = f"time.time = iter([100.0, 100.0 + {took}]).__next__\n_worked = iter([1.0, 1.01, 1.02]).__next__\n"
    program.write_text(program.read_text() + clocks + "print(slow())\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{slow}\n"
