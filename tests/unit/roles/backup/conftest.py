"""The programs of role backup as modules, real pairs of keys, and what the tests of a restore begin with."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FILES = Path(__file__).resolve().parents[4] / "roles" / "backup" / "files"
PROGRAMS = ("archive", "common", "contents", "dump", "folder", "job", "open", "restore", "sign", "sources", "store")
RESTORES = ("common", "files", "mariadb", "slurm_state")


@pytest.fixture(scope="session")
def programs() -> Any:
    """The programs as modules: .archive is backup_archive.py, .restore_files is restore_files.py."""
    sys.path.insert(0, str(FILES))
    names = {name: f"backup_{name}" for name in PROGRAMS} | {f"restore_{name}": f"restore_{name}" for name in RESTORES}
    return SimpleNamespace(**{name: importlib.import_module(module) for name, module in names.items()})


def pair(folder: Path) -> SimpleNamespace:
    """Make a pair of keys as playbooks/authorities.yml does."""
    subprocess.run(["sh", str(FILES / "make_key_pair.sh"), str(folder), "a test"], check=True, capture_output=True)
    return SimpleNamespace(public=(folder / "public.asc").read_bytes(), private=(folder / "private.asc").read_bytes())


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The site's key."""
    return pair(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The key of another site."""
    return pair(tmp_path_factory.mktemp("other"))


@pytest.fixture
def any_time(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store takes archives of any time, by their names."""
    monkeypatch.setattr(programs.folder, "LATE_SECONDS", 2**40)


@pytest.fixture
def node(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node: what is replaced is set aside in tmp_path/aside, network's folder is tmp_path/network, no unit runs."""
    monkeypatch.setattr(programs.restore, "ASIDE", str(tmp_path / "aside"))
    monkeypatch.setattr(programs.contents, "NEVER", str(tmp_path / "network"))
    monkeypatch.setattr(programs.restore, "active", lambda unit: False)
    (tmp_path / "work").mkdir()
    return tmp_path
