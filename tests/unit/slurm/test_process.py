"""When a unit's process was started: systemd's monotonic microseconds, as a time that compares with those of files."""

from __future__ import annotations

import json
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils import hal_slurm_process as process

from tests.unit.alike import ANSIBLE, module_utils
from tests.unit.interpreters import EVERY, interpreter

ASK = """
import json
from ansible.module_utils import hal_slurm_process as process
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


def test_properties_of_a_unit_are_text_and_what_is_not_said_is_empty() -> None:
    def command(argv: list[str]) -> Any:
        assert argv == ["systemctl", "show", "--property", "A,B,C", "x.service"]
        return 0, "A=1\n\nB=b=c\nno property\n", ""

    found = process.unit_properties(SimpleNamespace(run_command=command), "x.service", ("A", "B", "C"))
    assert found == {"A": "1", "B": "b=c", "C": ""}
