"""hal-node-health as it is installed on a node: what it says, what it tells Slurm, what it never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import Installed, computes, file_is, smi

HEALTHY, NOT_HEALTHY, NOT_KNOWN = 0, 1, 2
BY_HAND = "for the party [alice@2026-11-21T16:00:00]"


@pytest.fixture
def gpu(hal01: Installed) -> Path:
    """A file that says whether a GPU is well, and the check of it."""
    path = hal01.folder / "gpu"
    path.write_text("well\n")
    hal01.asks(file_is(path, "GPU lost", hardware=True), file_is(hal01.folder / "disk", "disk full"))
    (hal01.folder / "disk").write_text("well\n")
    return path


def updates(node: Installed) -> list[list[str]]:
    """What Slurm was told to change."""
    return [call for call in node.node["calls"] if call[0] == "update"]


@pytest.mark.parametrize("version", EVERY)
def test_a_healthy_node_is_left_alone(hal01: Installed, gpu: Path, version: str) -> None:
    done = hal01.run("--act", python=interpreter(version))
    assert (done.returncode, done.stdout, done.stderr) == (HEALTHY, "", "")
    assert updates(hal01) == []


@pytest.mark.parametrize("version", EVERY)
def test_what_fails_drains_with_the_words_first(hal01: Installed, gpu: Path, version: str) -> None:
    gpu.write_text("lost\n")
    done = hal01.run("--act", python=interpreter(version))
    assert done.returncode == NOT_HEALTHY
    reason = "health: GPU lost (gpu is well: is lost, declared well)"
    assert updates(hal01) == [["update", "NodeName=hal01", "State=DRAIN", f"Reason={reason}"]]
    assert "FAIL base  GPU lost (gpu is well: is lost, declared well); jobs fail" in done.stdout
    assert f"drained: {reason}" in done.stdout


def test_looking_tells_slurm_nothing(hal01: Installed, gpu: Path) -> None:
    gpu.write_text("lost\n")
    done = hal01.run()
    assert done.returncode == NOT_HEALTHY
    assert hal01.node["calls"] == []
    assert done.stdout.splitlines()[-1].startswith("hal01: 1 of 2 checks failed in ")
    assert "ok   base  disk is well" in done.stdout


def test_a_drain_of_its_own_ends_when_the_node_is_well(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    (hal01.folder / "disk").write_text("well\n")
    done = hal01.run("--act")
    assert done.returncode == HEALTHY
    assert updates(hal01)[-1] == ["update", "NodeName=hal01", "State=UNDRAIN"]
    assert "given back: health: disk full" in done.stdout


def test_a_drain_for_hardware_stays_for_an_administrator(hal01: Installed, gpu: Path) -> None:
    gpu.write_text("lost\n")
    hal01.run("--act")
    gpu.write_text("well\n")
    done = hal01.run("--act")
    assert done.returncode == HEALTHY
    assert len(updates(hal01)) == 1, "it was given back"
    assert "stays drained for an administrator to look at the hardware" in done.stdout


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "MIXED+DRAIN", "DOWN", "IDLE+FAIL", "ALLOCATED+FAIL"])
def test_what_an_administrator_took_out_is_never_touched(hal01: Installed, gpu: Path, state: str) -> None:
    hal01.slurm(state, BY_HAND)
    assert hal01.run("--act").returncode == HEALTHY
    gpu.write_text("lost\n")
    done = hal01.run("--act")
    assert "alice has taken it out: for the party" in done.stdout
    gpu.write_text("well\n")
    hal01.run("--act")
    assert updates(hal01) == []


def test_an_administrator_takes_over_by_another_reason(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    hal01.slurm("IDLE+DRAIN", "health: disk full, and I know it [bob@2026-11-21T18:00:00]")
    (hal01.folder / "disk").write_text("well\n")
    hal01.run("--act")
    assert updates(hal01) == []


def test_a_second_fault_changes_the_reason_and_an_equal_one_does_not(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    hal01.run("--act")
    assert len(updates(hal01)) == 1
    gpu.write_text("lost\n")
    hal01.run("--act")
    assert updates(hal01)[-1][-1].startswith("Reason=health: disk full; GPU lost (")
    # Both are mended: hardware was among them.
    gpu.write_text("well\n")
    (hal01.folder / "disk").write_text("well\n")
    hal01.run("--act")
    assert updates(hal01)[-1][-1] == "Reason=health: GPU lost (gpu is well: is lost, declared well)"
    assert "stays drained" in hal01.run("--act").stdout


def test_a_node_that_was_given_back_by_hand_is_drained_again_while_it_fails(hal01: Installed, gpu: Path) -> None:
    gpu.write_text("lost\n")
    hal01.run("--act")
    hal01.slurm("IDLE")
    hal01.run("--act")
    assert len(updates(hal01)) == 1  # since slurm() began anew


def test_a_part_of_the_checks_gives_nothing_back(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    (hal01.folder / "disk").write_text("well\n")
    hal01.run("--act", "--role", "base")
    assert len(updates(hal01)) == 1


def test_a_part_of_the_checks_does_not_shorten_the_reason(hal01: Installed, gpu: Path) -> None:
    gpu.write_text("lost\n")
    hal01.asks(*hal01.checks[:1], {**hal01.checks[1], "role": "storage"})
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    hal01.run("--act", "--role", "storage")
    assert len(updates(hal01)) == 1


def test_a_slurmctld_that_does_not_answer_is_said(hal01: Installed, gpu: Path) -> None:
    hal01.slurm("IDLE", refuses=True)
    done = hal01.run("--act")
    assert done.returncode == NOT_KNOWN
    assert "Slurm was not told: scontrol --oneliner: slurm_update error" in done.stderr


def test_what_cannot_be_read_is_not_well(hal01: Installed, gpu: Path) -> None:
    gpu.unlink()
    gpu.mkdir()
    hal01.run("--act")
    done = hal01.run("--act")
    assert done.returncode == NOT_HEALTHY
    assert "health: GPU lost? (gpu is well: cannot be read: " in updates(hal01)[0][-1]


def test_no_check_at_all_is_not_known_and_changes_nothing(hal01: Installed) -> None:
    hal01.slurm("IDLE+DRAIN", "health: disk full [root@2026-11-21T18:00:00]")
    (hal01.folder / "drained.json").write_text('{"before": "", "hardware": false, "reason": "health: disk full"}')
    assert hal01.run("--act").returncode == NOT_KNOWN
    assert hal01.node["calls"] == []
    done = hal01.run()
    assert done.returncode == NOT_KNOWN
    assert "hal01: not known: no check is declared" in done.stdout


def test_a_node_without_its_list_says_what_to_do(hal01: Installed) -> None:
    hal01.run()
    hal01.folder.joinpath("program/node_health.py").write_text(
        hal01.folder.joinpath("program/node_health.py").read_text().replace("open(CHECKS)", "open(CHECKS + '.gone')")
    )
    done = hal01.run()
    assert done.returncode == NOT_KNOWN
    assert "roll the role node_health out to this node" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_list_of_an_earlier_version_is_read(hal01: Installed, gpu: Path) -> None:
    """A job begins while a rollout writes: a prolog that ended badly would have Slurm drain the node."""
    hal01.run()
    document = json.loads((hal01.folder / "checks.json").read_text())
    for later in ("most_drained_percent", "window_minutes", "end_foreign_processes", "witnesses"):
        del document[later]
    (hal01.folder / "checks.json").write_text(json.dumps(document))
    done = subprocess.run([sys.executable, "-B", str(hal01.folder / "driver.py")], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (HEALTHY, b"")


def test_a_role_without_checks_is_named(hal01: Installed, gpu: Path) -> None:
    done = hal01.run("--role", "nvidia")
    assert done.returncode == NOT_KNOWN
    assert "no check of role nvidia is declared for this node" in done.stderr


@pytest.mark.parametrize("version", EVERY)
def test_words_outside_ascii_are_printed_in_any_locale(hal01: Installed, version: str) -> None:
    path = hal01.folder / "disk"
    path.write_text("größer\n")
    hal01.asks({**file_is(path, "Platte voll: größe"), "id": "größe"})
    done = hal01.run("--act", python=interpreter(version), LC_ALL="C", LANG="C")
    assert done.returncode == NOT_HEALTHY, done.stderr
    assert "FAIL base  Platte voll: größe (größe: is größer, declared well)" in done.stdout
    assert updates(hal01)[0][-1].startswith("Reason=health: Platte voll: gr e (gr e: is gr er, declared well)")


@pytest.mark.parametrize("version", EVERY)
def test_what_was_found_drives_no_terminal(hal01: Installed, version: str) -> None:
    """Of a user's disk, say: root reads it in a log, and slurmd's log has it."""
    path = hal01.folder / "disk"
    path.write_text("full\x1b[2J\u202e\x9b\n")
    hal01.asks(file_is(path, "disk full"))
    done = hal01.run("--act", python=interpreter(version))
    assert "(disk is well: is full\\x1b[2J\\u202e\\u009b, declared well)" in done.stdout
    assert all(line.isprintable() for line in done.stdout.split("\n"))
    shown = hal01.run("--json", python=interpreter(version)).stdout
    assert json.loads(shown)["results"][0]["reason"] == "is full\x1b[2J\u202e\x9b, declared well"
    assert all(line.isprintable() for line in shown.split("\n"))
    refused = hal01.run("--role", "x\x1b[2J", python=interpreter(version))
    assert refused.stderr == "hal-node-health: no check of role x\\x1b[2J is declared for this node\n"


def test_json_has_every_result(hal01: Installed, gpu: Path) -> None:
    document = json.loads(hal01.run("--json").stdout)
    assert document["node"] == "hal01"
    assert [one["status"] for one in document["results"]] == ["pass", "pass"]


def test_what_cannot_be_read_is_no_broken_hardware(hal01: Installed, gpu: Path) -> None:
    """A driver that is being replaced: afterwards nobody has to look."""
    gpu.unlink()
    gpu.mkdir()
    for _ in range(2):
        hal01.run("--act")
    gpu.rmdir()
    gpu.write_text("well\n")
    hal01.run("--act")
    assert updates(hal01)[-1][-1] == "State=UNDRAIN"


def test_the_first_cause_stands_first(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "folder").mkdir()
    hal01.asks(file_is(hal01.folder / "folder", "GPU lost"), file_is(gpu, "driver not in effect"))
    gpu.write_text("another\n")
    hal01.run("--act")
    assert updates(hal01)[0][-1].startswith(
        "Reason=health: driver not in effect (gpu is well: is another, declared well"
    )


@pytest.mark.parametrize("version", EVERY)
def test_a_full_disk_keeps_no_node_from_being_drained_nor_from_returning(
    hal01: Installed, gpu: Path, version: str
) -> None:
    """Else who fills the disk on which a drain is remembered would take the node out for good."""
    (hal01.folder / "disk").write_text("full\n")
    (hal01.folder / "drained.json.new").mkdir()  # neither root nor anybody can write it
    done = hal01.run("--act", python=interpreter(version))
    assert done.returncode == NOT_HEALTHY, done.stderr
    assert updates(hal01)[0][2] == "State=DRAIN"
    assert "it will not end by itself" not in done.stdout
    known = (hal01.folder / "spare.json").read_text()
    (hal01.folder / "disk").write_text("well\n")
    assert "given back" in hal01.run("--act", python=interpreter(version)).stdout
    # The drain is forgotten there, too: what the disk still remembers is older.
    (hal01.folder / "drained.json").write_text(known)
    hal01.slurm("IDLE+DRAIN", "health: disk full (disk is well: is full, declared well) [root@2026-11-21T18:00:00]")
    hal01.run("--act", python=interpreter(version))
    assert updates(hal01) == []


def test_what_can_be_remembered_nowhere_is_said(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    for name in ("drained.json.new", "spare.json.new"):
        (hal01.folder / name).mkdir()
    done = hal01.run("--act")
    assert f"it will not end by itself: {hal01.folder}/drained.json: " in done.stdout


def test_a_disk_that_can_be_written_again_remembers_alone(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    (hal01.folder / "drained.json.new").mkdir()
    hal01.run("--act")
    (hal01.folder / "drained.json.new").rmdir()
    gpu.write_text("lost\n")
    hal01.run("--act")
    assert json.loads((hal01.folder / "drained.json").read_text())["hardware"] is True
    assert not (hal01.folder / "spare.json").exists()


def test_an_update_that_slurm_did_not_get_loses_no_drain(hal01: Installed, gpu: Path) -> None:
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    known = json.loads((hal01.folder / "drained.json").read_text())
    # A second fault, of which slurmctld is not told any more.
    before = {name: known[name] for name in ("reason", "causes")}
    (hal01.folder / "drained.json").write_text(
        json.dumps({**known, "before": before, "reason": "health: disk full; wrong clock"})
    )
    (hal01.folder / "disk").write_text("well\n")
    hal01.run("--act")
    assert updates(hal01)[-1][-1] == "State=UNDRAIN"


def test_hardware_that_a_prolog_saw_is_remembered(hal01: Installed, gpu: Path) -> None:
    hal01.asks(*hal01.checks[:1], {**hal01.checks[1], "role": "storage"})
    (hal01.folder / "disk").write_text("full\n")
    hal01.run("--act")
    gpu.write_text("lost\n")
    hal01.run("--act", "--role", "base")
    gpu.write_text("well\n")
    (hal01.folder / "disk").write_text("well\n")
    hal01.run("--act")
    assert "stays drained for an administrator" in hal01.run("--act").stdout


def test_a_daemon_that_restarts_is_asked_again(hal01: Installed) -> None:
    first = hal01.folder / "asked"
    hal01.plant("probe", f"#!/bin/sh\n[ -e {first} ] || {{ touch {first}; exit 1; }}\necho well\n")
    hal01.asks({"id": "it answers", "words": "dead", "question": {"command": {"argv": ["probe"]}, "equal": "well"}})
    assert hal01.run("--act").returncode == HEALTHY
    assert updates(hal01) == []
    first.unlink()
    assert hal01.run().returncode == NOT_HEALTHY, "who only looks sees it as it is"


def appears(file: Path) -> None:
    """Wait for a file."""
    end = time.monotonic() + 600
    while not file.exists():
        assert time.monotonic() < end, f"no {file.name} within 600 s"
        time.sleep(0.05)


def looked_at(hal01: Installed) -> dict[str, Any]:
    """Return the check of the disk, by a program that says when it has looked: another check's beginning does not."""
    disk, looked = hal01.folder / "disk", hal01.folder / "looked"
    hal01.plant("look", f"#!/bin/sh\ncat '{disk}'\ntouch '{looked}'\n")
    return file_is(disk, "disk full") | {"question": {"command": {"argv": ["look"]}, "equal": "well"}}


def test_what_an_older_look_found_does_not_undo_what_a_newer_one_did(hal01: Installed, gpu: Path) -> None:
    """A check finds all well; meanwhile something breaks, and another check drains. Then Slurm hears of the first."""
    begun, go_on = hal01.folder / "begun", hal01.folder / "go on"
    wait = f"touch '{begun}'\nuntil [ -e '{go_on}' ]; do sleep 0.05; done\n"
    hal01.plant("probe", f"#!/bin/sh\n[ ! -e '{begun}' ] || exit 0\n{wait}")
    probe = {"id": "it answers", "words": "dead", "question": {"command": {"argv": ["probe"]}, "equal": ""}}
    hal01.asks(looked_at(hal01), probe)
    with ThreadPoolExecutor(1) as beside:
        older = beside.submit(hal01.run, "--act")
        appears(begun)
        appears(hal01.folder / "looked")
        (hal01.folder / "disk").write_text("full\n")
        assert hal01.run("--act").returncode == NOT_HEALTHY
        go_on.touch()
    assert older.result().returncode == HEALTHY, "it found what was there then"
    assert hal01.node["state"] == "IDLE+DRAIN"
    (hal01.folder / "disk").write_text("well\n")
    assert "given back" in hal01.run("--act").stdout, "the next look gives it back"


def test_hardware_that_an_older_look_found_broken_is_told_all_the_same(hal01: Installed, gpu: Path) -> None:
    """An epilog finds a process on a GPU, which no later check asks; meanwhile another check has drained."""
    begun, go_on, mended = (hal01.folder / name for name in ("begun", "go-on", "mended"))
    wait = f"[ -e {begun} ] || {{ touch {begun}; until [ -e {go_on} ]; do sleep 0.05; done; }}\n"
    hal01.plant("probe", f"#!/bin/sh\n{wait}[ -e {mended} ] || [ ! -e {go_on} ] || echo occupied\n")
    command = {"command": {"argv": ["probe"]}, "equal": ""}
    probe = {"id": "it is free", "words": "GPU occupied", "question": command, "hardware": True}
    hal01.asks(looked_at(hal01), probe)
    with ThreadPoolExecutor(1) as beside:
        older = beside.submit(hal01.run, "--act")
        appears(begun)
        appears(hal01.folder / "looked")
        (hal01.folder / "disk").write_text("full\n")
        hal01.run("--act")
        go_on.touch()
    assert older.result().returncode == NOT_HEALTHY
    assert "GPU occupied" in hal01.node["reason"]
    (hal01.folder / "disk").write_text("well\n")
    mended.touch()
    hal01.run("--act")
    assert "stays drained for an administrator" in hal01.run("--act").stdout


# ---------------------------------------------------------------- what hangs
def running(words: str) -> list[str]:
    """Processes whose command line has this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_text(errors="replace").split("\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("version", EVERY)
def test_what_hangs_costs_itself_alone_and_leaves_nothing_behind(hal01: Installed, version: str) -> None:
    (hal01.folder / "disk").write_text("well\n")
    word = f"47.{os.getpid()}"
    hang = {"id": "it answers", "words": "GPU lost", "question": {"command": {"argv": ["sleep", word]}, "equal": ""}}
    hal01.asks(hang, file_is(hal01.folder / "disk", "disk full"))
    hal01.seconds = 5  # the others answer in that on a busy machine, too
    began = time.monotonic()
    for _ in range(2):
        done = hal01.run("--act", python=interpreter(version))
    assert time.monotonic() - began < 2 * 47, "it waited for what hangs"
    assert "health: GPU lost? (it answers: cannot be read: no answer within 5 s)" in updates(hal01)[0][-1]
    assert "disk full" not in done.stdout
    assert running(word) == []
    assert not (hal01.folder / "hung").exists()


@pytest.mark.parametrize("version", EVERY)
def test_a_process_that_holds_on_to_its_output_keeps_nobody_waiting(hal01: Installed, version: str) -> None:
    (hal01.folder / "disk").write_text("well\n")
    pipe = hal01.folder / "pipe"
    os.mkfifo(pipe)
    word = f"49.{os.getpid()}"
    hang = {"command": {"argv": ["sh", "-c", f"sleep {word} & cat {pipe}"]}, "equal": ""}
    hal01.asks({"id": "home", "words": "no home", "question": hang}, file_is(hal01.folder / "disk", "disk full"))
    hal01.seconds = 5  # the other answers in that on a busy machine, too
    for _ in range(2):
        done = hal01.run("--act", python=interpreter(version))
    assert "no home?" in updates(hal01)[0][-1]
    assert "disk full" not in done.stdout
    assert running(word) == []


def test_what_still_hangs_is_not_started_again(hal01: Installed) -> None:
    """A process that cannot be killed: here one that nobody tried to."""
    argv = ["touch", str(hal01.folder / "started")]
    hal01.asks({"id": "it answers", "words": "GPU lost", "question": {"command": {"argv": argv}, "equal": ""}})
    born = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    name = json.dumps(["command", argv])
    (hal01.folder / "hung").write_text(json.dumps({name: [os.getpid(), born]}))
    for _ in range(2):
        hal01.run("--act")
    assert f"an earlier check of it still hangs (process {os.getpid()})" in updates(hal01)[0][-1]
    assert not (hal01.folder / "started").exists()
    # Another process with that number is another process.
    (hal01.folder / "hung").write_text(json.dumps({name: [os.getpid(), "1"]}))
    hal01.run()
    assert (hal01.folder / "started").exists()


# ---------------------------------------------------------------- around a job
def test_a_job_without_gpus_is_not_looked_at(driver: Installed) -> None:
    (driver.folder / "gpu").write_text("lost\n")
    for when in ("--job-begin", "--job-end"):
        assert driver.run(when, SLURM_JOB_GPUS="", CUDA_VISIBLE_DEVICES="NoDevFiles").returncode == HEALTHY
    assert driver.node["calls"] == []


def test_a_job_does_not_begin_on_a_node_that_lost_a_gpu(driver: Installed) -> None:
    (driver.folder / "gpu").write_text("lost\n")
    assert driver.run("--job-begin", SLURM_JOB_GPUS="0,2").returncode == NOT_HEALTHY
    assert updates(driver)[0][-1].startswith("Reason=health: GPU lost (")


def test_after_a_job_its_gpus_get_the_site_s_settings_again(driver: Installed) -> None:
    log = smi(driver)
    assert driver.run("--job-end", SLURM_JOB_GPUS="0,2-3").returncode == HEALTHY
    assert log.read_text().splitlines() == [
        "--reset-applications-clocks --id=0,2,3",
        "--compute-mode=DEFAULT --id=0,2,3",
        "--query-compute-apps=gpu_uuid,pid --id=0,2,3 --format=csv,noheader",
    ]
    assert updates(driver) == []


def test_older_slurm_names_the_gpus_otherwise(driver: Installed) -> None:
    log = smi(driver)
    driver.run("--job-end", CUDA_VISIBLE_DEVICES="1")
    assert "--id=1" in log.read_text()


def test_a_process_of_the_system_that_stays_on_a_gpu_drains_and_is_named(driver: Installed) -> None:
    smi(driver, apps=computes((4711, 1)))
    driver.runs(4711, 999, b"nv-hostengine")
    # Slurm adds nothing to a node that is drained in words.
    assert driver.run("--job-end", SLURM_JOB_GPUS="1").returncode == HEALTHY
    reason = "health: process left on a GPU (no process is left on the GPUs: process 4711, nv-hostengine, on GPU 1)"
    assert updates(driver)[0][-1] == f"Reason={reason}"


def test_a_drain_of_an_epilog_is_not_ended_by_checks_that_do_not_ask_it(driver: Installed) -> None:
    smi(driver, apps=computes((4711, 1)))
    driver.runs(4711, 0)
    driver.run("--job-end", SLURM_JOB_GPUS="1")
    assert "stays drained for an administrator" in driver.run("--act").stdout
    assert len(updates(driver)) == 1


@pytest.mark.parametrize("when", ["--job-begin", "--job-end"])
def test_a_job_on_a_healthy_node_does_not_need_slurmctld(driver: Installed, when: str) -> None:
    smi(driver)
    driver.slurm("IDLE", refuses=True)
    assert driver.run(when, SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert driver.node["calls"] == []


def test_settings_that_are_refused_drain(driver: Installed) -> None:
    smi(driver, settings="echo 'GPU is lost.'; exit 15")
    driver.run("--job-end", SLURM_JOB_GPUS="1")
    assert "nvidia-smi --compute-mode=DEFAULT: GPU is lost." in updates(driver)[0][-1]


def test_what_an_epilog_cannot_tell_slurm_the_next_check_tells(driver: Installed) -> None:
    """Slurm would drain a node whose epilog fails, without asking how many are out."""
    smi(driver, apps=computes((4711, 1)))
    driver.runs(4711, 0)
    driver.slurm("IDLE", refuses=True)
    assert driver.run("--job-end", SLURM_JOB_GPUS="1").returncode == HEALTHY
    smi(driver)
    driver.slurm("IDLE")
    assert driver.run("--act").returncode == HEALTHY, "what it asks itself is well"
    assert "process left on a GPU" in updates(driver)[0][-1]
