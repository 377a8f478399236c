"""Let tests import what is shipped to nodes, and run hal_modulefiles in a folder of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils import basic

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = str(ROOT / "plugins" / "module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)


def loaded(path: Path) -> ModuleType:
    """A file of ours as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_tested", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def own_attributes(tree: Any, path: str, mode: str) -> bool:
    """As Tree.attributes without the owner: a test need not be root."""
    if not os.path.exists(path):
        return True
    wanted = int(mode, 8)
    changed = os.stat(path).st_mode & 0o7777 != wanted
    if changed and not tree.module.check_mode:
        os.chmod(path, wanted)
    return changed


def calling(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, Any]]:
    """Return a function: arguments of the module -> what it returned."""

    def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {**arguments, "_ansible_check_mode": check, "_ansible_remote_tmp": "/tmp"}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode())
        with pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Where the modulefiles are to be."""
    return tmp_path / "modulefiles"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Return a function: arguments of hal_modulefiles -> what it returned."""
    module = loaded(ROOT / "plugins/modules/hal_modulefiles.py")
    monkeypatch.setattr(module.Tree, "attributes", own_attributes)
    return calling(module, monkeypatch, capsys)


@pytest.fixture(scope="session")
def hal_modules_program() -> ModuleType:
    """The program of role lmod."""
    sys.path.insert(0, SHIPPED)
    return loaded(ROOT / "roles/lmod/files/hal_modules.py")
