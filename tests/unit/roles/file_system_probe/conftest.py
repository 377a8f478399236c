"""The program as on a node, in a folder of the test; what it measures can be made to hang."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, LAB, beside, interpreter

FILES = Path(__file__).resolve().parents[4] / "roles" / "file_system_probe" / "files"
# The program with a listing that waits for a FIFO, as one of a hung file system waits for its servers.
HANGS = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
import file_system_probe as probe
def measure(path, turn):
    open(sys.argv[0] + ".fifo").read()
    return {"list_ms": 4000.0, "stat_ms": 1.0, "entries": 2}
probe.measure = measure
sys.exit(probe.main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def program() -> Any:
    """The program as a module."""
    sys.path[:0] = [str(FILES), str(LAB)]
    return importlib.import_module("file_system_probe")


class Probed:
    """A folder of homes and the program that asks it."""

    def __init__(self, folder: Path, python: str) -> None:
        self.homes = folder / "homes"
        self.run_dir = folder / "run"
        self.fifo = folder / "hangs.py.fifo"
        self._python = python
        self._configs = {hangs: folder / f"config{'_hangs' * hangs}.json" for hangs in (False, True)}
        self._driver = folder / "hangs.py"
        self._driver.write_text(HANGS)
        self.homes.mkdir()
        for name in ("alice", "bob", "größe"):
            (self.homes / name).mkdir()
        self.configure()

    def configure(self, **changes: Any) -> None:
        settings = {"file_system": "home", "mount": "/", "path": str(self.homes), "run_dir": str(self.run_dir)}
        for hangs, path in self._configs.items():
            # Text: Ansible's templates give numbers so. What answers is given time: the machine may be busy.
            numbers = {"timeout_seconds": "1" if hangs else "20", "keep": "5"}
            path.write_text(json.dumps(settings | numbers | changes))

    def command(self, *words: str, hangs: bool = False) -> list[str]:
        start = [str(self._driver), str(FILES)] if hangs else [str(FILES / "file_system_probe.py")]
        return [*beside(self._python), *start, *words, "--config", str(self._configs[hangs])]

    def call(self, *words: str, hangs: bool = False) -> subprocess.CompletedProcess[str]:
        """Run it and read all that it prints, as Telegraf does: until nobody holds the pipe any more."""
        argv, environment = self.command(*words, hangs=hangs), {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=environment)

    def status(self) -> dict[str, Any]:
        done = self.call("--status")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(params=EVERY)
def probed(request: pytest.FixtureRequest, tmp_path: Path) -> Probed:
    python = interpreter(request.param)
    return Probed(tmp_path, python)
