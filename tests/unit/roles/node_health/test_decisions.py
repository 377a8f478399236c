"""What follows from results: the reason of a drain, what Slurm is told, what is remembered, what a line says."""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest

from tests.unit.alike import SHIPPED

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "roles/node_health/files"))
if str(SHIPPED) not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(str(SHIPPED))

program, checks, gpus, slurm, users = (
    importlib.import_module(name)
    for name in ("node_health", "node_health_checks", "node_health_gpus", "node_health_slurm", "node_health_users")
)
CAUSE = {"words": "disk full", "role": "base", "id": "a", "reason": "b", "seen": True, "hardware": False}
GPU = {"words": "GPU lost", "role": "gpu", "id": "g", "reason": "2", "seen": True, "hardware": True}
OLDER = {"reason": "health: disk full (a: c)", "causes": [{**CAUSE, "reason": "c"}]}
OURS = {"reason": "health: disk full (a: b)", "causes": [CAUSE], "before": OLDER, "hardware": False}
BROKEN = {"reason": "health: GPU lost; disk full (g: 2, a: b)", "causes": [GPU, CAUSE], "before": {}, "hardware": True}
HEALTHY_AGAIN = "healthy again, and stays drained for an administrator to look at the hardware"


def result(status: str = "fail", **changes: Any) -> dict[str, Any]:
    one = {"words": "disk full", "role": "base", "id": "a", "hardware": False, "why": "jobs fail", "reason": "b"}
    return {**one, "status": status, **changes}


def node(**changes: Any) -> dict[str, Any]:
    return {"state": "", "drained": False, "failing": False, "down": False, "reason": "", "by": "", **changes}


def reason_of(failing: list[dict[str, Any]]) -> str:
    """Return the reason of a node that was not drained before."""
    return str(slurm.reason_of(slurm.causes_after([], failing, True)))


def slurmctld(state: Path) -> Any:
    """Return the node of this state, of whose partitions a quarter may be out within an hour."""
    return slurm.Slurm("hal01", str(state), 25, 60)


def test_a_reason_has_failures_first_each_of_their_words_once_and_what_could_not_be_read_with_a_mark() -> None:
    failing = [
        result("unknown", words="GPU lost", role="gpu", id="g", reason="hangs"),
        result("unknown", words="no home", id="h", reason="hangs"),
        result(id="a"),
        result(id="z", reason="c"),
    ]
    assert reason_of(failing) == "health: disk full; GPU lost? (a: b, z: c, g: hangs, h: hangs)"


def test_a_reason_is_one_line_of_ascii_without_what_slurm_gives_a_meaning_to() -> None:
    reason = reason_of([result(words="a [b]\n \"c\" 'd' \\e ~", reason="\x7f\x1fx  ü y")])
    assert reason == "health: a (b) c d e ~ (a: x y)"


def test_a_reason_that_is_too_long_is_cut_and_says_so() -> None:
    rest = len(reason_of([result(reason="")]))
    assert reason_of([result(reason="x" * (240 - rest))])[-3:] == "xx)"
    cut = reason_of([result(reason="x" * (241 - rest))])
    assert (len(cut), cut[-4:]) == (240, "x...")


SICK, WELL = result(), result("pass")
WORSE = result(id="g", role="gpu", words="GPU lost", reason="2", hardware=True)
ALREADY, OTHERWISE = ("nothing", "is drained already"), ("update", "fails for other reasons than before")


@pytest.mark.parametrize(
    ("state", "results", "complete", "remembered", "expected"),
    [
        (None, [SICK], True, {}, ("nothing", "Slurm does not know this node")),
        (node(), [SICK], True, {}, ("drain", "")),
        (node(), [SICK], False, {}, ("drain", "")),
        (node(), [WELL], True, {}, ("nothing", "")),
        (node(), [result("unknown", doubt="once more")], True, {}, ("nothing", "")),
        (node(), [result("unknown")], True, {}, ("drain", "")),
        (node(drained=True), [SICK], True, {}, ("nothing", "somebody has taken it out: (no reason)")),
        (node(failing=True, by="eve"), [SICK], True, OURS, ("nothing", "eve has taken it out: (no reason)")),
        (node(down=True, reason="r", by="eve"), [SICK], True, {}, ("nothing", "eve has taken it out: r")),
        (node(down=True, reason="r", by="slurm"), [SICK], True, {}, ("drain", "")),
        (node(down=True, by="eve"), [SICK], True, {}, ("drain", "")),
        (node(drained=True, reason=OURS["reason"]), [SICK], True, OURS, ALREADY),
        (node(drained=True, reason=OURS["reason"]), [SICK], False, OURS, ALREADY),
        (node(drained=True, reason=OURS["reason"]), [result(reason="c")], True, OURS, ALREADY),
        (node(drained=True, reason=OURS["reason"]), [SICK, WORSE], True, OURS, OTHERWISE),
        (node(drained=True, reason=OURS["reason"]), [WORSE], False, OURS, OTHERWISE),
        (node(drained=True, reason=OURS["reason"]), [result("unknown", doubt="no")], True, OURS, ("nothing", "")),
        (node(drained=True, reason=OLDER["reason"]), [WELL], True, OURS, ("resume", "healthy again")),
        (node(drained=True, reason=OURS["reason"]), [], True, OURS, ("resume", "healthy again")),
        (node(drained=True, reason=OURS["reason"], state="MIXED+COMPLETING+DRAIN"), [WELL], True, OURS,
         ("nothing", "healthy as far as can be seen while a job ends there")),
        (node(drained=True, reason=OURS["reason"]), [WELL], False, OURS, ("nothing", "")),
        (node(drained=True, reason=BROKEN["reason"]), [WELL], True, BROKEN, OTHERWISE),
        (node(drained=True, reason=BROKEN["reason"]), [SICK, {**WORSE, "status": "pass"}], True, BROKEN, ALREADY),
        (node(drained=True, reason="mine"), [WELL], True, OURS, ("nothing", "")),
        (node(drained=True, reason="mine"), [SICK], True, OURS, ("nothing", "somebody has taken it out: mine")),
        (node(reason=OURS["reason"]), [WELL], True, OURS, ("nothing", "")),
    ],
)  # fmt: skip
def test_what_slurm_is_told(
    state: Any, results: list[Any], complete: bool, remembered: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert slurm.decide(state, results, complete, remembered)[:2] == expected


@pytest.mark.parametrize("answer", ["IDLE+DRAIN Reason=mine, ticket 12 [alice@{now}]", "IDLE"])
def test_what_an_administrator_did_since_it_drained_is_not_undone(
    scontrol: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Others were faster, and it looks a second time; meanwhile somebody took the node over, or gave it back."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    other = f"NodeName=hal02 State=IDLE+DRAIN Reason=health: disk full (a: b) [root@{now}] Partitions=gpu"
    looks = iter(["NodeName=hal01 State=IDLE Partitions=gpu",
                  f"NodeName=hal01 State={answer.format(now=now)} Partitions=gpu\n{other}"])  # fmt: skip
    here = slurmctld(tmp_path / "state")
    monkeypatch.setattr(here, "_nodes", lambda _: next(looks))
    assert here.settle([result()], True) == f"drained: {OURS['reason']}"
    assert [argv[-2] for argv, _ in scontrol["asked"]] == ["State=DRAIN"]


def after(causes: list[Any], *results: dict[str, Any], complete: bool = True) -> str:
    return str(slurm.reason_of(slurm.causes_after(causes, results, complete)))


def test_reasons_add_up_and_the_first_stays_the_first() -> None:
    """A drain for hardware was overwritten: sinfo -R showed a full disk, and the node waited for an administrator."""
    assert after([CAUSE], SICK, WORSE) == "health: disk full; GPU lost (a: b, g: 2)"
    assert after([GPU], SICK) == "health: GPU lost; disk full (g: 2, a: b)"
    assert after([GPU], SICK, {**WORSE, "status": "pass"}, complete=False) == BROKEN["reason"]
    assert after([GPU], {**WORSE, "reason": "another"}) == "health: GPU lost (g: 2)", "what was seen first"
    assert after([CAUSE], result(reason="c")) == OLDER["reason"], "as it is now"


def test_of_what_was_added_up_goes_what_is_over() -> None:
    assert after([CAUSE, GPU], WELL) == "health: GPU lost (g: 2)"
    assert after([CAUSE, GPU], WELL, complete=False) == "health: disk full; GPU lost (a: b, g: 2)"
    assert after([CAUSE, GPU]) == "health: GPU lost (g: 2)", "nobody asks it any more"
    silent = result("unknown", reason="no answer", doubt="once more")
    assert after([CAUSE, GPU], silent) == "health: disk full; GPU lost (a: b, g: 2)", "no answer ends nothing"
    assert after([CAUSE], result("unknown", reason="no answer")) == "health: disk full? (a: no answer)"


def test_where_words_are_too_many_hardware_is_shown() -> None:
    many = [{**CAUSE, "id": f"{number}", "words": f"disk full: /scratch/{number:02}"} for number in range(20)]
    reason = slurm.reason_of([*many[:10], GPU, *many[10:]])
    assert reason.startswith("health: disk full: /scratch/00; ")
    assert "; GPU lost; and 14 more (0: b, " in reason


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What scontrol was asked, and what it answers."""
    told: dict[str, Any] = {"answer": (0, "", ""), "asked": []}

    def run(argv: list[str], timeout_seconds: int) -> Any:
        told["asked"].append((argv, timeout_seconds))
        return told["answer"]

    monkeypatch.setattr(slurm, "run", run)
    monkeypatch.setattr(slurm, "LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(slurm, "SPARE", str(tmp_path / "spare"))
    return told


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((1, "out\n", " no\n  way \n"), "scontrol show: no way"),
        ((1, "out \n", ""), "scontrol show: out"),
        ((7, "", ""), "scontrol show: exit status 7"),
    ],
)
def test_what_scontrol_refuses_is_said_on_one_line(
    scontrol: dict[str, Any], tmp_path: Path, answer: Any, words: str
) -> None:
    scontrol["answer"] = answer
    with pytest.raises(slurm.SlurmError) as refused:
        slurmctld(tmp_path / "state")._scontrol(["show", "node"])
    assert str(refused.value) == words
    assert scontrol["asked"] == [(["scontrol", "show", "node"], 5)]


def test_a_drain_is_remembered_and_forgotten_when_the_node_was_given_back(
    scontrol: dict[str, Any], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    line = "NodeName=hal01 State={} Reason={} [root@2026-11-21T17:30:00]"
    scontrol["answer"] = (0, "NodeName=hal01 State=IDLE Partitions=gpu", "")
    assert slurmctld(state).settle([result()], True) == f"drained: {OURS['reason']}"
    assert json.loads(state.read_text()) == {**OURS, "before": {}}
    scontrol["answer"] = (0, line.format("IDLE+DRAIN", OURS["reason"]), "")
    slurmctld(state).settle([result(id="c", hardware=True)], True)
    before = {name: OURS[name] for name in ("reason", "causes")}
    seen = {**CAUSE, "id": "c", "hardware": True}
    worse = {"reason": "health: disk full (c: b)", "causes": [seen], "before": before, "hardware": True}
    assert json.loads(state.read_text()) == worse
    scontrol["answer"] = (0, line.format("IDLE+DRAIN", worse["reason"]), "")
    slurmctld(state).settle([result(id="d")], True)
    assert json.loads(state.read_text())["hardware"] is True, "who has seen it once has to look"
    scontrol["answer"] = (0, "NodeName=hal02 State=IDLE", "")
    assert slurmctld(state).settle([result("pass")], True) == "Slurm does not know this node"
    assert json.loads(state.read_text())["hardware"] is True
    scontrol["answer"] = (0, "NodeName=hal01 State=IDLE Partitions=gpu", "")
    assert slurmctld(state).settle([result("pass")], True) == ""
    assert json.loads(state.read_text()) == {}
    state.write_text(json.dumps(OURS))
    scontrol["answer"] = (0, line.format("IDLE+DRAIN", OURS["reason"]), "")
    assert slurmctld(state).settle([result("pass")], True) == f"given back: {OURS['reason']}"
    assert scontrol["asked"][-1][0] == ["scontrol", "update", "NodeName=hal01", "State=UNDRAIN"]
    assert json.loads(state.read_text()) == {}
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["lock", "state"]


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (None, {}), ("{", {}), ("[]", {}), ('"x"', {}), ('{"reason": "r"}', {}), (json.dumps(OURS), OURS),
        (json.dumps({**OURS, "more": 1}), {}),
    ],
)  # fmt: skip
def test_only_a_whole_memory_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, known: dict[str, Any]
) -> None:
    monkeypatch.setattr(slurm, "SPARE", str(tmp_path / "spare"))
    if content is not None:
        (tmp_path / "state").write_text(content)
    assert slurmctld(tmp_path / "state")._remembered() == known


def test_who_tells_slurm_at_this_moment_is_waited_for_and_named(
    scontrol: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "SECONDS", 0)
    here = slurmctld(tmp_path / "state")
    with slurm.locked(slurm.LOCK, OSError, 0, "x"), pytest.raises(slurm.SlurmError) as refused:
        here.settle([result()], True)
    assert str(refused.value).startswith("what Slurm is told of this node: process ")
    assert scontrol["asked"] == []
    scontrol["answer"] = (0, "NodeName=hal01 State=IDLE Partitions=gpu", "")
    assert here.settle([result("pass")], True) == ""


def test_a_full_disk_keeps_nobody_from_the_lock() -> None:
    """Who fills it would be the last to be drained for it: systemd mounts /run as memory, for root alone to write."""
    assert (Path(slurm.LOCK).parent, Path(slurm.SPARE).parent) == (Path("/run"), Path("/run"))


@pytest.mark.parametrize(
    ("environment", "numbers"),
    [
        ({"SLURM_JOB_GPUS": "0,2-4,7", "CUDA_VISIBLE_DEVICES": "9"}, [0, 2, 3, 4, 7]),
        ({"SLURM_JOB_GPUS": "", "CUDA_VISIBLE_DEVICES": "1-2"}, [1, 2]),
        ({"SLURM_JOB_GPUS": "10-10"}, [10]),
        ({"SLURM_JOB_GPUS": "0,"}, []), ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []), ({}, []),
    ],
)  # fmt: skip
def test_a_job_s_gpus_are_numbers_and_ranges(environment: dict[str, str], numbers: list[int]) -> None:
    assert gpus.of_job(environment) == numbers


@pytest.mark.parametrize(
    ("gres_used", "numbers"),
    [
        ("gpu:v100:3(IDX:0,2-3)", {0, 2, 3}), ("gpu:(null):1(IDX:2)", {2}), ("gpu:1(IDX:10)", {10}),
        ("gpu:v100:0(IDX:N/A),nic:2(IDX:0-1)", set()), ("gpu:a:1(IDX:1),gpu:b:1(IDX:4),mps:0", {1, 4}),
    ],
)  # fmt: skip
def test_the_gpus_of_jobs_are_those_that_slurm_numbers(gres_used: str, numbers: set[int]) -> None:
    assert gpus.of_jobs(gres_used) == numbers


@pytest.mark.parametrize("gres_used", ["", "(null)", "gpu:v100:2", "nic:1(IDX:0)"])
def test_slurm_has_to_number_them(gres_used: str) -> None:
    with pytest.raises(gpus.Unreadable) as refused:
        gpus.of_jobs(gres_used)
    assert str(refused.value) == f"Slurm does not say which GPUs jobs have: GresUsed={gres_used}"


def test_what_is_left_on_gpus_is_asked_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [100.0], []
    rows = "GPU-a, 4711\nwarning, b\n GPU-b, 12\n"
    answers: list[Any] = [(0, rows, ""), (0, "GPU-a, 0\nGPU-b, 3\n", ""), (0, "none\n", "")]

    def run(argv: list[str], timeout_seconds: int) -> Any:
        asked.append((argv, timeout_seconds))
        if argv[1].startswith("--query-gpu"):
            return answers[1]
        return answers[0] if len(asked) < 7 else answers[2]

    monkeypatch.setattr(gpus, "run", run)
    monkeypatch.setattr(gpus, "PROC", "/proc/nowhere")
    monkeypatch.setattr(gpus.time, "time", lambda: now[0])
    monkeypatch.setattr(gpus.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    why = {"role": "nvidia_driver", "why": "the next job would get it"}
    in_use = {**why, "id": "no GPU is used without a job", "words": "GPU in use without a job", "hardware": False}
    left = {**why, "id": "no process is left on the GPUs", "words": "process left on a GPU", "hardware": True}
    reason = "process 12 has ended and is still on GPU 3, process 4711 has ended and is still on GPU 0"
    passed = ({**in_use, "status": "pass", "reason": ""}, {**left, "status": "pass", "reason": ""})
    assert gpus.left_over([0, 3], 1, False) == ({**in_use, "status": "fail", "reason": reason}, passed[1])
    assert (len(asked), now) == (6, [102.0])
    argv = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--id=0,3", "--format=csv,noheader"]
    assert asked[0] == (argv, 15)
    assert gpus.left_over([0, 3], 1, False) == passed
    answers[2] = (15, rows, "GPU is lost")  # the rows of the others are there
    assert gpus.left_over([0], 0, False)[0]["status"] == "fail"
    answers[2] = (255, "no", "driver\n gone")
    unknown = {**in_use, "status": "unknown", "reason": "nvidia-smi ended with status 255: no driver gone"}
    assert gpus.left_over([0], -1, False) == (unknown, passed[1])
    answers[1:] = [(0, "GPU-a, 0\n", ""), (0, rows, "")]
    assert gpus.left_over([0], -1, False)[0]["reason"] == "nvidia-smi gives GPU-b no number"


def test_who_hangs_since_an_earlier_check_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gpus.node_health_checks, "_still_hanging", lambda: {'["command", ["nvidia-smi", "-L"]]': (7, "")}
    )
    in_use, _ = gpus.left_over([0], 0, True)
    assert in_use["reason"] == "nvidia-smi of an earlier check still hangs (process 7)"
    monkeypatch.setattr(gpus, "PAUSE_SECONDS", 0)
    assert gpus.reset([0], [["-a"]])[0]["status"] == "unknown"
    assert checks.hanging("nvidia") == 0


def test_what_is_ended_is_the_process_that_was_judged_and_stands_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, logged = [], []
    eve = gpus.Process(4711, 1, 1004, "python", "77", False)
    now = {4711: eve}
    monkeypatch.setattr(gpus, "named", lambda uids: {uid: f"uid {uid}" for uid in uids})
    monkeypatch.setattr(gpus, "_process", lambda pid, gpu: now[pid])
    monkeypatch.setattr(gpus.os, "kill", lambda *given: killed.append(given))
    monkeypatch.setattr(gpus.syslog, "syslog", lambda _, text: logged.append(text))
    for other in ({"born": "78"}, {"uid": 1005}, {"uid": None, "born": ""}):
        now[4711] = eve._replace(**other)
        gpus.end([eve])
    for spared in ({"uid": 999}, {"uid": None}, {"killed": True}):
        now[4711] = eve._replace(**spared)
        gpus.end([now[4711]])
    now[4711] = eve
    assert killed == []
    assert logged == []
    gpus.end([eve, eve._replace(gpu=3)])
    assert killed == [(4711, 9)]
    assert logged == ["killed: uid 1004 runs 4711 python on GPU 1,3 without a job"]

    def gone(*_: Any) -> None:
        raise OSError(errno.ESRCH, "gone")

    monkeypatch.setattr(gpus.os, "kill", gone)
    gpus.end([eve])
    assert len(logged) == 1


@pytest.mark.parametrize(
    ("status", "stat"),
    [(b"", b"7 (a) S 4"), (b"Uid:\t1\n", b"7 (a) S 4"), (b"Name:\ta\n", b"7 (a) S" + b" 4" * 49)],
)
def test_a_process_that_ends_while_it_is_read_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: bytes, stat: bytes
) -> None:
    monkeypatch.setattr(gpus, "PROC", str(tmp_path))
    (tmp_path / "7").mkdir()
    (tmp_path / "7/status").write_bytes(status)
    (tmp_path / "7/stat").write_bytes(stat)
    assert gpus._process(7, 1) == gpus.Process(7, 1, None, "", "", False)


def test_a_process_is_that_of_who_runs_it_whatever_it_calls_itself(tmp_path: Path) -> None:
    """Of this test: its own /proc. A process can have /proc/PID belong to root (PR_SET_DUMPABLE)."""
    me = gpus._process(os.getpid(), 2)
    assert (me.pid, me.gpu, me.uid, me.killed) == (os.getpid(), 2, os.getuid(), False)
    assert me.born == checks._born(os.getpid())
    assert me.command


@pytest.mark.parametrize(
    ("name", "word"),
    [
        (b"python3.6", "python3.6"), ("größe", "gr??e"), (b"a b,c(d)\n", "a?b?c?d??"), (b"", "?"),
        (b"\xff" * 40, "?" * 32), (b"'\"$;`\\[]", "?" * 8),
    ],
)  # fmt: skip
def test_a_name_is_one_word_of_ascii(name: str | bytes, word: str) -> None:
    assert users.plain(name) == word


def test_an_account_is_named_when_the_directory_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(argv: list[str], timeout_seconds: int) -> Any:
        asked.append((argv, timeout_seconds))
        return 2, "eve:x:1004:1:,\nbob:x\nmallory:x:1004:1\nan [x]:x:7:7\n", ""

    monkeypatch.setattr(users, "run", run)
    monkeypatch.setattr(users, "SUBUID", str(tmp_path / "none"))
    assert users.named([]) == {}
    assert users.named([1004, 7, 8]) == {1004: "uid 1004 (eve)", 7: "uid 7 (an??x?)", 8: "uid 8"}
    assert asked == [(["getent", "passwd", "1004", "7", "8"], 2)]

    def silent(*_: Any, **__: Any) -> Any:
        raise users.Unreadable("hangs")

    monkeypatch.setattr(users, "run", silent)
    assert users.named([1004]) == {1004: "uid 1004"}


@pytest.mark.parametrize(("uid", "user"), [(0, False), (999, False), (1000, True), (4294836224, True)])
def test_users_are_numbered_from_1000_on(uid: int, user: bool) -> None:
    assert users.is_user(uid) is user


def test_each_setting_of_a_gpu_is_a_result_and_a_program_that_cannot_run_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(argv: list[str], timeout_seconds: int) -> Any:
        if argv[1] == "-c":
            raise gpus.Unreadable("cannot run nvidia-smi")
        return (0, "fine", "") if argv[1] == "-a" else (15, "lost\n", "GPU")

    monkeypatch.setattr(gpus, "run", run)
    monkeypatch.setattr(gpus, "PAUSE_SECONDS", 0)
    found = gpus.reset([1], [["-a"], ["-b", "c"], ["-c"]])
    assert [(one["status"], one["id"], one["words"], one["reason"], one["hardware"]) for one in found] == [
        ("pass", "settings of the GPUs", "GPU settings not reset", "", True),
        ("fail", "settings of the GPUs", "GPU settings not reset", "nvidia-smi -b c: lost GPU", True),
        ("unknown", "settings of the GPUs", "GPU settings not reset", "nvidia-smi -c: cannot run nvidia-smi", True),
    ]
    assert slurm.hardware_in(slurm.causes_after([], found[2:], True)) is False
    assert slurm.hardware_in(slurm.causes_after([], found, True)) is True


@pytest.mark.parametrize(
    ("question", "answer", "words"),
    [
        ({}, ("unknown", None, "cannot run\n it"), "cannot run it"),
        ({}, ("unknown", None, "no answer"), "cannot be read: no answer"),
        ({"equal": True}, ("fail", False, "r"), "is no, declared yes"),
        ({"at_least": 3}, ("fail", 2, "r"), "is 2, declared at least 3"),
        ({"at_most": 3}, ("fail", 4, "r"), "is 4, declared at most 3"),
        ({"one_of": ["a", True]}, ("fail", ["b", "c"], "r"), "is b, c, declared one of a, yes"),
        ({"match": "^a"}, ("fail", "b", "r"), "is b, declared ^a"),
        ({"count": 2}, ("fail", 0, "r"), "is 0, declared 2"),
        ({"has": 2}, ("fail", "b", "why not"), "why not"),
        ({"equal": 1}, ("fail", None, "it  is\tnot there"), "it is not there"),
        ({"equal": 1}, ("fail", {"a": 1}, "other"), "other"),
        ({"equal": "b"}, ("fail", "a" * 60, "long"), f"is {'a' * 60}, declared b"),
        ({"equal": "b"}, ("fail", "a" * 61, "long"), "long"),
        ({"absent": True}, ("fail", ["a" * 60, "b"], "is there"), f"{'a' * 60}, b"),
        ({"absent": True}, ("fail", "a" * 160, "is there"), "a" * 160),
        ({"absent": True}, ("fail", "a" * 161, "is there"), "a" * 157 + "..."),
        ({"absent": True}, ("fail", None, "is there"), "is there"),
        ({"absent": False}, ("fail", "", "printed nothing"), "printed nothing"),
    ],
)
def test_a_difference_is_what_is_and_what_is_declared(question: Any, answer: Any, words: str) -> None:
    status, observed, reason = answer
    assert checks._difference(question, {"status": status, "observed": observed, "reason": reason}) == words


def test_equal_commands_and_paths_are_asked_once_and_readers_apart() -> None:
    asked = checks._asked
    assert asked({"command": {"argv": ["a"], "lines": 1}, "equal": 1}) == asked({"command": {"argv": ["a"]}})
    assert asked({"command": {"argv": ["a"]}}) == '["command", ["a"]]'
    assert asked({"file": {"path": "/a", "key": "b"}, "equal": ""}) == '["file", "/a"]'
    reader = next(name for name in sorted(checks.READERS) if name not in ("command", "file"))
    assert asked({"aaa": 1, reader: {}, "zzz": 1}) == reader


def test_nothing_that_can_be_started_is_nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user has started all processes that may be: a prolog that fails would have Slurm drain the node for good."""
    opened = len(os.listdir("/proc/self/fd"))

    def refuse() -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(checks, "HUNG", str(tmp_path / "hung"))
    monkeypatch.setattr(checks.os, "fork", refuse)
    check = {**result(), "question": {"command": {"argv": ["true"]}, "equal": ""}}
    found = checks.run([check, {**check, "question": {"command": {"argv": ["false"]}, "equal": ""}}], 5)
    assert [(one["status"], one["reason"]) for one in found] == [
        ("unknown", "cannot be read: nothing can be started: Resource temporarily unavailable")
    ] * 2
    assert len(os.listdir("/proc/self/fd")) == opened


def test_an_answer_that_is_none_is_unknown_for_each_question() -> None:
    unread = {"status": "unknown", "observed": None, "reason": "the process that asked ended"}
    assert checks._read(b"", 2) == ([unread, unread], [])
    assert checks._read(b'{"answers": [1], "left": [7]}', 2) == ([unread, unread], [7])
    assert checks._read(b'{"answers": [1, 2], "left": [7]}', 2) == ([1, 2], [7])


def test_what_hangs_is_kept_while_it_is_the_same_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung = tmp_path / "hung"
    monkeypatch.setattr(checks, "HUNG", str(hung))
    born = checks._born(os.getpid())
    assert int(born) > 0
    assert checks._still_hanging() == {}
    still: dict[str, Any] = {}
    checks._note(still, "a", [os.getpid(), 2**22 + 1])
    assert still == {"a": (os.getpid(), born)}
    checks._remember(still)
    assert checks._still_hanging() == still
    assert [path.name for path in tmp_path.iterdir()] == ["hung"]
    hung.write_text(json.dumps({"a": [os.getpid(), born + "1"], "b": [os.getpid(), born], "c": [os.getpid(), "0"]}))
    assert checks._still_hanging() == {"b": (os.getpid(), born)}
    checks._remember({})
    checks._remember({})
    assert not hung.exists()
    hung.mkdir()
    (hung / "kept").touch()
    checks._remember(still)
    checks._remember({})
    hung_parent = tmp_path / "none" / "hung"
    monkeypatch.setattr(checks, "HUNG", str(hung_parent))
    checks._remember(still)
    assert not hung_parent.exists()


@pytest.mark.parametrize(
    ("statuses", "brief", "seconds", "lines"),
    [
        (["pass"], False, 1.234, ["ok   base  a", "hal01: healthy, 1 check in 1.23 s"]),
        (["pass", "pass"], False, None, ["ok   base  a"] * 2 + ["hal01: healthy, 2 checks"]),
        (["pass"], True, 1.0, []),
        (["pass", "unknown"], True, None, ["?    base  disk full (a: b); jobs fail", "hal01: 1 of 2 checks failed"]),
        (["fail"], False, 0, ["FAIL base  disk full (a: b); jobs fail", "hal01: 1 of 1 check failed in 0.00 s"]),
        ([], False, None, ["hal01: not known: no check is declared"]),
    ],
)
def test_a_line_is_shown_for_each_check_or_only_for_what_is_wrong(
    capfdbinary: pytest.CaptureFixture[bytes], statuses: list[str], brief: bool, seconds: float | None, lines: list[str]
) -> None:
    program.show("hal01", [result(status) for status in statuses], seconds, brief)
    assert capfdbinary.readouterr().out.decode().splitlines() == lines


@pytest.mark.parametrize(
    ("limit", "took", "again", "asked"),
    [
        (20, 0, True, [(3, 20), (2, 17)]), (5, 1.5, True, [(3, 5)]), (20, 8, True, [(3, 20)]),
        (20, 7.9, True, [(3, 20), (2, 9)]), (20, 0, False, [(3, 20)]),
    ],
)  # fmt: skip
def test_what_failed_is_asked_once_more_after_a_pause_with_all_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, limit: int, took: float, again: bool, asked: list[tuple[int, int]]
) -> None:
    now, paused = [0.0], list[float]()
    seen: list[tuple[int, int]] = []

    def run(given: list[Any], seconds: int) -> list[Any]:
        limits = [one["question"]["command"]["timeout_seconds"] for one in given]
        assert limits == ([10, 10, limit] if not seen else [seconds] * len(given))
        seen.append((len(given), seconds))
        now[0] += took
        return [{"status": one["first"] if len(seen) == 1 else "again", "id": one["id"]} for one in given]

    monkeypatch.setattr(program.node_health_checks, "run", run)
    monkeypatch.setattr(program.node_health_slow, "slow", lambda: False)
    monkeypatch.setattr(program.time, "time", lambda: now[0])
    monkeypatch.setattr(program.time, "sleep", paused.append)
    question = {"command": {"argv": ["mmgetstate"], "timeout_seconds": 10}}
    declared = {
        "seconds": limit,
        "checks": [
            {"role": "a", "id": number, "first": first, "question": question}
            for number, first in enumerate(("fail", "pass", "unknown"))
        ]
        + [{"role": "b", "id": 3, "first": "fail"}],
    }
    found = program._run(declared, ["a"], again, doubted=["a: 2"])
    assert seen == asked
    assert paused == [3] * (len(asked) - 1)
    expected = ["again", "pass", "again"] if len(asked) == 2 else ["fail", "pass", "unknown"]
    assert [(one["id"], one["status"]) for one in found] == list(enumerate(expected))
