"""hal-pgi as on the node that installs, below a folder of the test, with a stand-in of PGI's archive."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, beside, interpreter

PROJECT = Path(__file__).resolve().parents[4]
FILES = PROJECT / "roles/compilers/files"
sys.path.insert(0, str(PROJECT / "molecule/virtual_hal"))

make_pgi = importlib.import_module("software.make_pgi")


class Site:
    """A shared tree, what is declared for it, and hal-pgi."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.root = folder, folder / "apps/pgi"
        self.archive = folder / "pgilinux.tar.gz"
        self._python = python
        self.settings: dict[str, Any] = {
            "root": str(self.root), "mount": "/", "target": "linuxpower", "local_dir": str(folder / "local"),
            "accept_eula": True, "timeout_minutes": "1", "installer": True, "verify_max_days": "15", "versions": [],
        }  # fmt: skip
        self.make()
        self.declare()

    def make(self, version: str = "19.10", breaks: bool = False) -> str:
        """Make the archive; return its checksum."""
        make_pgi.make(self.archive, version, breaks)
        return hashlib.sha256(self.archive.read_bytes()).hexdigest()

    def declare(self, **changes: Any) -> None:
        """Declare 19.10, changed."""
        one = {"version": "19.10", "source": str(self.archive), "nvidia": True, "mpi": False, "mpi_gpu": False}
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest() if self.archive.exists() else "0" * 64
        self.set(versions=[{**one, "sha256": digest, **changes}])

    def set(self, **settings: Any) -> None:
        """Change what the role wrote."""
        self.settings |= settings
        (self.folder / "compilers.json").write_text(json.dumps(self.settings))

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        argv, environment = self._command(words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, timeout=600)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Run it, and do not wait."""
        argv, environment = self._command(words)
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment)

    def _command(self, words: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        table = str(self.folder / "compilers.json")
        argv = [*beside(self._python), str(FILES / "hal_pgi.py"), "--table", table, *words]
        return argv, {"LC_ALL": "C", "PATH": os.environ["PATH"], "HAL_PGI_LOG": str(self.folder / "log")}

    def done(self, *words: str) -> str:
        """Run what has to succeed."""
        done = self.call(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        """Run what has to be refused in words, not by a traceback."""
        done = self.call(*words)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.strip()

    def status(self) -> dict[str, Any]:
        """What it knows of the one declared version."""
        found: dict[str, Any] = json.loads(self.done("status"))["versions"][0]
        return found

    @property
    def place(self) -> Path:
        """What modules load."""
        return self.root / "19.10/current/linuxpower/19.10"


@pytest.fixture(params=EVERY)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return Site(tmp_path, interpreter(request.param))


def pgi(**changes: Any) -> dict[str, Any]:
    """A version of PGI as it is declared, without a fault."""
    return {"version": "19.10", "source": "/srv/pgi.tar.gz", "sha256": "a" * 64, **changes}
