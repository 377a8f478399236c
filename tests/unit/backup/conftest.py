"""The programs of role backup as modules, and real pairs of keys."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FILES = Path(__file__).resolve().parents[3] / "roles" / "backup" / "files"


@pytest.fixture(scope="session")
def programs() -> Any:
    """The modules that are installed on nodes: .common, .sources, .archive, .job, .store, .open, .restore."""
    sys.path.insert(0, str(FILES))
    names = ("common", "sources", "archive", "job", "store", "open", "restore")
    return SimpleNamespace(**{name: importlib.import_module(f"backup_{name}") for name in names})


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
