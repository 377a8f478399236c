"""The lab's strategies/relative_imports.py: what a module imports from a package with a dot is found, too."""

from __future__ import annotations

import sys
from pathlib import Path

import ansible_mitogen.module_finder
import pytest

sys.path.append(str(Path(__file__).resolve().parents[4] / "molecule/virtual_hal"))

from strategies import relative_imports

PROJECT = Path(__file__).resolve().parents[4]
PREFIX = "ansible.module_utils"
SHIPPED = [str(PROJECT / "plugins/module_utils")]


def walked(text: str, name: str) -> set[str]:
    return set(relative_imports.walk_imports(compile(text, name, "exec"), PREFIX))


def test_both_forms_are_names_below_the_prefix() -> None:
    text = "import os\nfrom ansible.module_utils.basic import x\nfrom ..expect.values import y, z\nfrom . import node\n"
    assert walked(text, f"{PREFIX}.hal_node.audit.look") == {
        f"{PREFIX}.basic", f"{PREFIX}.basic.x", f"{PREFIX}.hal_node", f"{PREFIX}.hal_node.expect",
        f"{PREFIX}.hal_node.expect.values", f"{PREFIX}.hal_node.expect.values.y", f"{PREFIX}.hal_node.expect.values.z",
        f"{PREFIX}.hal_node.audit", f"{PREFIX}.hal_node.audit.node",
    }  # fmt: skip


def test_those_of_others_are_left_out() -> None:
    assert walked("from ..x import y\n", "somebody.else.here") == set()


def test_all_that_a_module_needs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """hal_audit needs nearly all of hal_node."""
    monkeypatch.setattr(ansible_mitogen.module_finder, "walk_imports", relative_imports.walk_imports)
    found = ansible_mitogen.module_finder.scan("hal_audit", str(PROJECT / "plugins/modules/hal_audit.py"), SHIPPED)
    names, packages = {name for name, _, _ in found}, {name for name, _, package in found if package}
    expected = ("audit.look", "audit.files", "expect.values", "expect.mounts", "slurm.accounting", "run_command")
    kinds = {f"audit.kinds.{path.stem}" for path in (PROJECT / "hal_node/audit/kinds").glob("[!_]*.py")}
    assert {f"{PREFIX}.hal_node.{one}" for one in {*expected, *kinds}} <= names
    assert {f"{PREFIX}.hal_node{one}" for one in ("", ".audit", ".audit.kinds", ".expect", ".slurm")} <= packages
