"""A module that answers otherwise under a Python of nodes fails the test that asked; what nodes get can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.rules.node_python import sources
from tests.unit.alike import PROJECT, alike
from tests.unit.interpreters import NODES, interpreter

PLANTED = """
import sys

LIMIT = 2


class Problem(Exception):
    pass


def half(number):
    return number / 2


def kind(text):
    return type(text).__name__


def refuse(text):
    raise Problem("%r is not good" % text)


def fail(number):
    return number // 0


def bounded(text, call=len):
    return call(text) > LIMIT and sys.version_info[0]
"""
# What the modules import of Ansible is Ansible's; seobject is of SELinux, hal_bmc and rattler of the controller.
IMPORT = """
import importlib, os, sys, types
sys.dont_write_bytecode = True
for name, path in (("ansible", []), ("ansible.module_utils", sys.argv[1:3])):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = path
for line in sys.stdin.read().splitlines():
    folder, name = os.path.split(line)
    sys.path.insert(0, folder)
    try:
        importlib.import_module(("ansible.module_utils." if "module_utils" in folder else "") + name[:-3])
    except Exception as error:
        sys.stdout.write("%s: %s: %s\\n" % (name, type(error).__name__, error))
    sys.path.pop(0)
"""
NOT_THERE = {
    "hal_bmc.py": "hal_bmc.tasks",
    "selinux_boolean_withdraw.py": "seobject",
    "environment_link.py": "rattler",
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module whose functions answer otherwise, or not, from a folder that an agent of its own looks into."""
    name = f"planted_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    alike(name)
    yield sys.modules.pop(name)
