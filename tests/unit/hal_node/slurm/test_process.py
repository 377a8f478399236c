"""When a unit's process was started: systemd's monotonic microseconds, as a time that compares with those of files."""

from __future__ import annotations

import json
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm import process as process

from tests.unit.alike import ANSIBLE, module_utils
from tests.unit.interpreters import EVERY, interpreter

ASK = """
import json
from ansible.module_utils.hal_node.slurm import process as process
print(json.dumps([process.monotonic_seconds(), process.epoch(str(int(process.monotonic_seconds() * 1e6)))]))
"""


@pytest.mark.parametrize("version", EVERY)
def test_now_is_now_under_every_python(version: str) -> None:
    """Between before and after, but for the tenth that /proc/uptime leaves out."""
    before, began = time.clock_gettime(time.CLOCK_MONOTONIC), time.time()
    argv = [interpreter(version), "-c", ANSIBLE + ASK, *module_utils()]
    monotonic, epoch = json.loads(subprocess.check_output(argv, text=True))
    after, ended = time.clock_gettime(time.CLOCK_MONOTONIC), time.time()
    # A machine that was suspended, or a container with a clock of its own, has another uptime.
    if version != "2.7":
        assert before <= monotonic <= after
    assert began - 0.1 <= epoch <= ended + 0.1


def test_a_time_before_now_is_as_long_ago_in_both_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(time=lambda: 1000.0, clock_gettime=lambda _: 400.0, CLOCK_MONOTONIC=1)
    monkeypatch.setattr(process, "time", clocks)
    assert process.epoch("150500000") == 750.5


def systemd(*answers: tuple[int, str, str]) -> tuple[Any, list[dict[str, str]], list[float]]:
    """A module whose systemctl answers so, one after another; what it was given each time, and how long was waited."""
    left, given, slept = list(answers), list[dict[str, str]](), list[float]()

    def command(argv: list[str], environ_update: dict[str, str]) -> Any:
        assert argv == ["systemctl", "show", "--property", "A,B,C", "x.service"]
        given.append(environ_update)
        return left.pop(0)

    return SimpleNamespace(run_command=command), given, slept


def asked(monkeypatch: pytest.MonkeyPatch, module: Any, slept: list[float]) -> dict[str, str]:
    monkeypatch.setattr(process, "time", SimpleNamespace(sleep=slept.append))
    found: dict[str, str] = process.unit_properties(module, "x.service", ("A", "B", "C"))
    return found


SAID = (0, "A=1\n\nB=b=c\nno property\nD=4\n", "")
LATE = (1, "", "Failed to get properties: Connection timed out\n")


def test_properties_of_a_unit_are_text_and_what_is_not_said_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    module, given, slept = systemd(SAID)
    assert asked(monkeypatch, module, slept) == {"A": "1", "B": "b=c", "C": ""}
    assert (given, slept) == ([{}], [])


@pytest.mark.parametrize("late", [LATE, (1, "A=1\n", ""), (0, "", ""), (0, "A=\nB=\n", "")])
def test_a_systemd_that_does_not_answer_is_asked_again_with_a_longer_limit(
    monkeypatch: pytest.MonkeyPatch, late: tuple[int, str, str]
) -> None:
    module, given, slept = systemd(late, late, SAID)
    assert asked(monkeypatch, module, slept)["A"] == "1"
    assert given == [{}, {"SYSTEMD_BUS_TIMEOUT": "300"}, {"SYSTEMD_BUS_TIMEOUT": "300"}]
    assert slept == [2, 2]


@pytest.mark.parametrize(
    ("late", "said"), [(LATE, "Failed to get properties: Connection timed out"), ((0, "", ""), "it said nothing")]
)
def test_no_answer_is_no_state(monkeypatch: pytest.MonkeyPatch, late: tuple[int, str, str], said: str) -> None:
    module, _given, slept = systemd(late, late, late)
    with pytest.raises(process.NoAnswer) as silent:
        asked(monkeypatch, module, slept)
    assert str(silent.value) == (
        f"systemd did not answer, asked 3 times (systemctl show x.service: {said}); the state of the unit is not known"
    )
