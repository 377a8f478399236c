"""Processes of users on GPUs without a job: their owner is named, no hardware is broken, and the site may end them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import PROJECT, Installed, computes, smi

HEALTHY, NOT_HEALTHY, NOT_KNOWN = 0, 1, 2
EVE = "uid 1004 (eve) runs 4711 python on GPU 1 without a job"
REASON = f"health: GPU in use without a job (no GPU is used without a job: {EVE})"


def updates(node: Installed) -> list[list[str]]:
    """What Slurm was told to change."""
    return [call[2:] for call in node.node["calls"] if call[0] == "update"]


def promised() -> dict[str, object]:
    """The promise of the role that a node asks for."""
    entries = yaml.safe_load((PROJECT / "roles/node_health/expect.yml").read_text())
    entry: dict[str, object] = next(one for one in entries if "--foreign-processes" in str(one.get("command")))
    return entry


@pytest.fixture
def node(driver: Installed) -> Installed:
    """A node whose regular check asks for foreign processes, as the role promises it. Nothing computes."""
    entry = promised()
    driver.plant("hal-node-health", f'#!/bin/sh\nexec "$NODE_PYTHON" -B {driver.folder}/driver.py "$@"\n')
    command = {"argv": ["hal-node-health", "--foreign-processes"], "lines": True, "timeout_seconds": 600}
    own = {"id": entry["id"], "words": entry["health"], "role": "node_health", "hardware": False, "why": entry["why"],
           "question": {"command": command, "absent": entry["absent"]}}  # fmt: skip
    driver.checks = [*driver.checks, own]
    smi(driver)
    return driver


@pytest.fixture
def eve(node: Installed) -> Iterator[subprocess.Popen[bytes]]:
    """A process that /proc shows as Eve's, on GPU 1 as long as it lives."""
    with subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL) as process:
        node.runs(process.pid, 1004)
        smi(node, apps=f"[ ! -e /proc/{process.pid}/exe ] || echo 'GPU-0001, {process.pid}'")
        yield process
        process.kill()


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("when", ["--job-begin", "--job-end"])
def test_a_user_s_process_on_a_job_s_gpu_is_named_and_no_hardware(node: Installed, version: str, when: str) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004)
    done = node.run(when, python=interpreter(version), SLURM_JOB_GPUS="0-1", SLURM_JOB_UID="1005")
    assert done.returncode == (NOT_HEALTHY if when == "--job-begin" else HEALTHY), done.stderr
    assert updates(node) == [["State=DRAIN", f"Reason={REASON}"]]
    assert node.run("--act", python=interpreter(version)).returncode == NOT_HEALTHY
    assert len(updates(node)) == 1, "the regular check says otherwise"
    smi(node)
    assert f"given back: {REASON}" in node.run("--act", python=interpreter(version)).stdout
    assert updates(node)[-1] == ["State=UNDRAIN"]


def test_the_owner_of_the_job_has_no_other_rights_to_its_gpu_afterwards(node: Installed) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004)
    node.run("--job-end", SLURM_JOB_GPUS="1", SLURM_JOB_UID="1004")
    assert updates(node) == [["State=DRAIN", f"Reason={REASON}"]]


def test_a_job_begins_beside_a_process_of_the_system(node: Installed) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 999)
    assert node.run("--job-begin", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert node.node["calls"] == []


@pytest.mark.parametrize("version", EVERY)
def test_a_gpu_that_no_job_has_is_looked_at_regularly(node: Installed, version: str) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004)
    node.slurm("IDLE", gres_used="gpu:v100:3(IDX:0,2-3)")
    node.run("--act", python=interpreter(version))
    assert updates(node) == [["State=DRAIN", f"Reason={REASON}"]]


@pytest.mark.parametrize(
    ("apps", "uid", "gres_used"),
    [
        ([(4711, 1)], 1004, "gpu:v100:1(IDX:1)"),
        ([(4711, 1)], 1004, "gpu:v100:2(IDX:0-1),mps:0"),
        ([(4711, 1)], 999, "gpu:(null):0(IDX:N/A)"),
        ([], 1004, "gpu:v100:0(IDX:N/A)"),
    ],
)
def test_a_job_s_process_and_the_system_s_are_well(
    node: Installed, apps: list[tuple[int, int]], uid: int, gres_used: str
) -> None:
    smi(node, apps=computes(*apps))
    node.runs(4711, uid)
    node.slurm("IDLE", gres_used=gres_used)
    assert node.run().returncode == HEALTHY
    assert ["--oneliner" in call for call in node.node["calls"]] == [True] * (bool(apps) and uid == 1004)


def test_a_process_that_ended_while_slurm_was_asked_was_a_job_s(node: Installed) -> None:
    seen = node.folder / "seen"
    smi(node, apps=f"[ -e {seen} ] || echo 'GPU-0001, 4711'; touch {seen}")
    node.runs(4711, 1004)
    assert node.run().returncode == HEALTHY


def test_slurm_that_does_not_say_which_gpus_jobs_have_is_not_known(node: Installed) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004)
    node.slurm("IDLE", gres_used="gpu:2")
    done = node.run("--foreign-processes")
    assert done.returncode == NOT_KNOWN
    assert done.stderr == "hal-node-health: Slurm does not say which GPUs jobs have: GresUsed=gpu:2\n"
    for _ in range(2):
        node.run("--act")
    assert updates(node)[0][-1].startswith("Reason=health: GPU in use without a job? (")


@pytest.mark.parametrize("version", EVERY)
def test_a_process_s_name_is_a_word_and_makes_no_line_of_its_own(node: Installed, version: str) -> None:
    smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004, b"a) S 1\nU;\xff\"'[$(")
    done = node.run("--foreign-processes", python=interpreter(version), LC_ALL="C")
    assert done.stdout == "uid 1004 (eve) runs 4711 a??S?1?U??????? on GPU 1 without a job\n", done.stderr


def test_nvidia_smi_is_not_asked_for_names(node: Installed) -> None:
    """Its line would be made of a process's name: one with a line break shows another user's process."""
    log = smi(node, apps=computes((4711, 1)))
    node.runs(4711, 1004)
    node.run("--foreign-processes")
    node.run("--job-end", SLURM_JOB_GPUS="1")
    asked = [line for line in log.read_text().splitlines() if "compute-apps" in line]
    assert len(asked) > 2
    assert {line.split()[0] for line in asked} == {"--query-compute-apps=gpu_uuid,pid"}


def test_many_processes_are_counted_and_the_first_ones_named(node: Installed) -> None:
    smi(node, apps=computes(*((pid, gpu) for pid in range(10, 17) for gpu in (1, 3))))
    for pid in range(10, 17):
        node.runs(pid, 1004 + pid)
    lines = node.run("--foreign-processes").stdout.splitlines()
    assert lines[0] == "uid 1014 runs 10 python on GPU 1,3 without a job"
    assert (len(lines), lines[-1]) == (6, "and 2 more")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"uid": 4294836224}, "uid 4294836224 (an id of eve) runs 4711 python on GPU 1 without a job"),
        ({"uid": 4294836223}, "uid 4294836223 runs 4711 python on GPU 1 without a job"),
        ({"uid": 1004, "shared": "0000000000000100"}, f"{EVE}, and does not end when killed"),
        ({"uid": 1004, "own": "0000000000000100"}, f"{EVE}, and does not end when killed"),
        ({"uid": 1004, "own": "0000000000000201"}, EVE),
        (None, "process 4711 has ended and is still on GPU 1"),
    ],
)
def test_who_it_is_and_whether_it_can_be_ended_is_said(node: Installed, status: dict[str, int], words: str) -> None:
    (node.folder / "subuid").write_text("bob\neve:4294836224:65536\nbob:x:1\n")
    smi(node, apps=computes((4711, 1)))
    if status:
        node.runs(4711, **status)  # type: ignore[arg-type]  # masks are texts
    assert node.run("--foreign-processes").stdout == words + "\n"
    node.run("--job-end", SLURM_JOB_GPUS="1")
    assert words in updates(node)[0][-1]
    smi(node)
    assert "given back" in node.run("--act").stdout


# ---------------------------------------------------------------- where the site says so, they are ended
@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("arguments", [("--job-begin",), ("--job-end",), ("--act",), ("--end-foreign-processes",)])
def test_a_foreign_process_is_ended_where_the_site_says_so(
    node: Installed, eve: subprocess.Popen[bytes], version: str, arguments: tuple[str, ...]
) -> None:
    node.end_foreign_processes = arguments != ("--end-foreign-processes",)
    done = node.run(*arguments, python=interpreter(version), SLURM_JOB_GPUS="1")
    assert eve.wait(600) == -9, done.stderr
    if arguments != ("--job-end",) and arguments != ("--job-begin",):
        assert done.returncode == HEALTHY
    assert node.run("--act").returncode == HEALTHY


@pytest.mark.parametrize("arguments", [("--job-begin",), ("--job-end",), ("--act",), (), ("--foreign-processes",)])
def test_nothing_is_ended_unless_the_site_says_so(
    node: Installed, eve: subprocess.Popen[bytes], arguments: tuple[str, ...]
) -> None:
    node.run(*arguments, SLURM_JOB_GPUS="1")
    assert eve.poll() is None


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--foreign-processes",)])
def test_who_looks_ends_nothing(node: Installed, eve: subprocess.Popen[bytes], arguments: tuple[str, ...]) -> None:
    node.end_foreign_processes = True
    assert "without a job" in node.run(*arguments).stdout
    assert eve.poll() is None


@pytest.mark.parametrize("change", [{"uid": 0}, {"uid": 999}])
def test_a_process_of_the_system_is_not_ended(
    node: Installed, eve: subprocess.Popen[bytes], change: dict[str, int]
) -> None:
    node.end_foreign_processes = True
    node.runs(eve.pid, **change)  # type: ignore[arg-type]
    for arguments in (("--job-begin",), ("--job-end",), ("--act",)):
        node.run(*arguments, SLURM_JOB_GPUS="1")
    assert eve.poll() is None


def test_a_process_on_a_gpu_that_a_job_has_is_not_ended(node: Installed, eve: subprocess.Popen[bytes]) -> None:
    node.end_foreign_processes = True
    node.slurm("MIXED", gres_used="gpu:v100:1(IDX:1)")
    assert node.run("--act").returncode == HEALTHY
    assert eve.poll() is None


@pytest.mark.parametrize("arguments", [("--act",), ("--end-foreign-processes",), ("--foreign-processes",)])
def test_while_a_job_ends_any_process_may_still_be_its_own(
    node: Installed, eve: subprocess.Popen[bytes], arguments: tuple[str, ...]
) -> None:
    """Slurm has taken the GPUs from it, and it has KillWait to write down how far it came."""
    node.end_foreign_processes = True
    node.slurm("MIXED+COMPLETING")
    done = node.run(*arguments)
    assert (done.returncode, done.stdout) == (HEALTHY, "")
    assert eve.poll() is None


def test_the_directory_of_users_is_asked_once_for_all_that_are_ended(node: Installed) -> None:
    """It may be slow, and a user starts as many processes as there is room for: a prolog waits for this."""
    node.plant("getent", f"#!/bin/sh\necho >>{node.folder}/asked\n")
    started = [subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL) for _ in range(4)]
    try:
        for one in started:
            node.runs(one.pid, 1004)
        smi(node, apps=computes(*((one.pid, gpu) for one in started for gpu in (1, 3))))
        node.run("--end-foreign-processes")
        assert [one.wait(600) for one in started] == [-9] * 4
    finally:
        for one in started:
            one.kill()
    assert (node.folder / "asked").read_text() == "\n" * 2  # to show them, and for the log


def test_the_promise_has_the_words_of_the_program(node: Installed) -> None:
    """A drain of an epilog has the reason that the regular check has: it is not said anew, and ends."""
    text = Path(PROJECT / "roles/node_health/files/node_health_gpus.py").read_text()
    entry = promised()
    assert f'FOREIGN, FOREIGN_WORDS = "{entry["id"]}", "{entry["health"]}"' in text
    assert "finding" not in entry, "no user's process is broken hardware"
