"""What the tests of role singularity share: its programs and filters, imported as they are found where they run."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.alike import alike

ROOT = Path(__file__).resolve().parents[3]
FILES = ROOT / "roles" / "singularity" / "files"
for folder in (ROOT, FILES, ROOT / "plugins" / "module_utils"):
    sys.path.insert(0, str(folder))
alike("hal_subids_lines")


@pytest.fixture(scope="session")
def parts() -> Any:
    """A function: the name of a part of hal-container -> its module."""
    return lambda name: importlib.import_module(f"container_{name}")


@pytest.fixture(scope="session")
def lines() -> Any:
    """The module that reads and plans /etc/subuid."""
    return importlib.import_module("ansible.module_utils.hal_subids_lines")


@pytest.fixture(scope="session")
def filters() -> Any:
    """The filters of the role, whose file has the name of the package that they are about."""
    spec = importlib.util.spec_from_file_location("filters_of_singularity", ROOT / "plugins/filter/hal_singularity.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
