"""A program whose output the module was too slow to see: ansible issue 51393, and run_command without it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.compat import selectors

from tests.unit.modules import loaded

Class = type[basic.AnsibleModule]
OURS: Class = loaded("hal_command").AnsibleModule


def made(kind: Class, monkeypatch: pytest.MonkeyPatch) -> basic.AnsibleModule:
    """A module without arguments."""
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": {}}).encode())
    return kind(argument_spec={})


@pytest.fixture
def preempted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look for output sees none; then the module is off the processor until its program has ended."""
    select = selectors.PollSelector.select
    running: list[int] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            running.append(self.pid)

    def late(selector: Any, timeout: float | None = None) -> Any:
        if not running:
            return select(selector, timeout)
        os.waitid(os.P_PID, running.pop(), os.WEXITED | os.WNOWAIT)
        return []

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(selectors.PollSelector, "select", late)


@pytest.mark.usefixtures("preempted")
def test_ansible_still_loses_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails, hal_node/run_command.py and hal_command can go."""
    assert made(basic.AnsibleModule, monkeypatch).run_command(["echo", "busy"]) == (0, "", "")


@pytest.mark.usefixtures("preempted")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo busy", (0, "busy\n", "")),
        ("echo busy >&2; exit 3", (3, "", "busy\n")),
        ("printf %60000s x", (0, "x".rjust(60000), "")),
        ("exec >&-; echo busy >&2", (0, "", "busy\n")),
        (":", (0, "", "")),
    ],
)
def test_ours_does_not(monkeypatch: pytest.MonkeyPatch, script: str, said: tuple[int, str, str]) -> None:
    assert made(OURS, monkeypatch).run_command(["sh", "-c", script]) == said


def test_nothing_is_held_back_where_nobody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program ends only when the pipe is empty, so what was read from the pipe was returned."""
    seen: list[Any] = []
    inside = OURS.run_command.__globals__
    read_all = inside["_read_all"]

    def looking(process: Any) -> None:
        read_all(process)
        seen.extend([process.wait(), process.poll(), process.stdout.read(1), process.poll(), process.stdout.read(9)])
        seen.append(process.poll())

    monkeypatch.setitem(inside, "_read_all", looking)
    made(OURS, monkeypatch).run_command(["printf", "0123456789"])
    assert seen == [0, None, b"0", None, b"123456789", 0]


@pytest.mark.usefixtures("preempted")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ""])
def test_a_daemon_that_keeps_a_stream_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    script = f"sleep 600 {closed} & echo $!"
    status, out, _err = made(OURS, monkeypatch).run_command(["sh", "-c", script])
    os.kill(int(out), 9)
    assert status == 0


def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """What hal_command answers."""
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
    with pytest.raises(SystemExit):
        loaded("hal_command").main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {key: answer.get(key) for key in ("rc", "stdout", "stderr", "changed", "failed", "skipped")}


@pytest.mark.usefixtures("preempted")
@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"argv": ["printf", r"a\n\nb\n\n"]}, {"rc": 0, "stdout": "a\n\nb"}),
        (
            {"argv": ["sh", "-c", "echo out; echo err >&2; exit 4"]},
            {"rc": 4, "stdout": "out", "stderr": "err", "failed": True},
        ),
        ({"argv": ["cat"], "stdin": "größe"}, {"rc": 0, "stdout": "größe"}),
        ({"argv": ["echo", "$HOME", "~"]}, {"rc": 0, "stdout": "$HOME ~"}),
        ({"argv": ["pwd"], "chdir": "/"}, {"rc": 0, "stdout": "/"}),
        ({"argv": ["printf", r"\377"]}, {"rc": 0, "stdout": "\udcff"}),
        ({"argv": ["false"], "_ansible_check_mode": True}, {"rc": 0, "stdout": "", "changed": None, "skipped": True}),
    ],
)
def test_hal_command_answers_as_command_does(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: dict[str, Any],
    answer: dict[str, Any],
) -> None:
    expected = {"stderr": "", "changed": True, "failed": None, "skipped": None, **answer}
    assert ran(monkeypatch, capsys, **arguments) == expected


def test_hal_command_refuses_a_folder_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, capsys, argv=["true"], chdir="/nowhere")["failed"]
