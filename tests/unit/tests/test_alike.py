"""A module that answers otherwise under a Python of nodes fails the test that asked; what nodes get can be imported."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.rules.node_python import sources
from tests.unit import alike as asking
from tests.unit.alike import PROJECT
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
IMPORT = """
import importlib, os
sys.path.append(sys.argv[1])  # role singularity puts one of them beside its own
for line in sys.stdin.read().splitlines():
    folder, name = os.path.split(line)
    sys.path.insert(0, folder)
    try:
        ours = line.partition("/hal_node/")[2]
        importlib.import_module("ansible.module_utils.hal_node." + ours[:-3].replace("/", ".") if ours else name[:-3])
    except Exception as error:
        sys.stdout.write("%s: %s: %s\\n" % (name, type(error).__name__, error))
    sys.path.pop(0)
"""
# By file: what a machine with SELinux has.
NOT_THERE = {"selinux_boolean_withdraw.py": "seobject"}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module whose functions answer otherwise, or not, from a folder that an agent of its own looks into."""
    name = f"planted_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(asking, "agent", functools.cache(asking.Agent))
    asking.alike(name)
    yield sys.modules.pop(name)
    del asking.WHOLE[name]


def test_what_answers_alike_passes(planted: Any) -> None:
    assert planted.kind([1]) == "list"
    with pytest.raises(ZeroDivisionError):
        planted.fail(1)  # what Python says of it is its own


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        (lambda module: module.half(3), "Python 2.7: half returned 1; here 1.5"),
        (lambda module: module.kind("x"), "Python 2.7: kind returned 'unicode'; here 'str'"),
        (lambda module: module.bounded("many"), "Python 2.7: bounded returned 2; here 3"),
        (lambda module: module.refuse("x"), "Python 2.7: refuse raised .*u'x' is not good"),
    ],
)
def test_what_answers_otherwise_is_told(planted: Any, call: Any, finding: str) -> None:
    with pytest.raises(AssertionError, match=finding):
        call(planted)


def test_what_a_test_replaced_is_asked_here_alone(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "LIMIT", 1)
    assert planted.half(3) == 1.5


def test_what_cannot_be_carried_is_asked_here_alone(planted: Any) -> None:
    assert planted.bounded("many", lambda text: len(text)) == 3


@pytest.mark.parametrize("version", NODES)
def test_everything_that_nodes_get_can_be_imported(tmp_path: Path, version: str) -> None:
    files = [path for path in sources(PROJECT) if path.suffix == ".py" and path.stem != "__init__"]
    done = subprocess.run(
        [interpreter(version), "-c", asking.ANSIBLE + IMPORT, *asking.module_utils()],
        input="\n".join(map(str, files)), capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {line.partition(":")[0] for line in lines} >= set(NOT_THERE), "these can be imported by now"
    wrong = [line for line in lines if NOT_THERE.get(line.partition(":")[0], "-") not in line]
    assert wrong == []
