"""Anybody names a process as he likes, also by bytes that are no text; the health check goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import Installed

NAME = b"\xff) Z 1 (\xfe"


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[int]:
    """A process whose name is no text, and looks like what comes behind a name in /proc/PID/stat."""
    program = os.fsencode(tmp_path) + b"/" + NAME
    shutil.copy2(b"/bin/sleep", program)
    with subprocess.Popen([program, "3600"]) as started:
        try:
            while Path(f"/proc/{started.pid}/comm").read_bytes() != NAME + b"\n":
                assert started.poll() is None
            yield started.pid
        finally:
            started.kill()


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_what_hangs_is_looked_for_among_processes_of_any_name(
    hal01: Installed, strange: int, version: str, locale: str
) -> None:
    hang = {"id": "it answers", "words": "GPU lost", "question": {"command": {"argv": ["sleep", "3600"]}, "equal": ""}}
    hal01.asks(hang)
    hal01.seconds = 1
    done = hal01.run(python=interpreter(version), LC_ALL=locale)
    assert "Traceback" not in done.stderr
    assert "no answer within 1 s" in done.stdout
