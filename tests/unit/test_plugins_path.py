"""A plugin puts the project into Python's path itself, once, and names nothing else there."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FIRST = (
    "plugins/callback/hal_preload.py",
    "plugins/filter/hal_bmc.py",
    "plugins/filter/hal_cuda.py",
    "plugins/filter/hal_modules.py",
    "plugins/filter/hal_ranges.py",
    "plugins/filter/hal_secrets.py",
    "plugins/filter/hal_singularity.py",
    "plugins/inventory/hal.py",
    "plugins/action/hal_subids.py",
    "plugins/lookup/hal.py",
    "plugins/lookup/hal_channels.py",
    "plugins/lookup/hal_environments.py",
    "plugins/lookup/hal_firewall.py",
    "plugins/lookup/hal_image.py",
    "plugins/lookup/hal_network.py",
    "plugins/lookup/hal_node_health.py",
    "plugins/lookup/hal_packages.py",
    "plugins/lookup/hal_provision.py",
    "plugins/lookup/hal_storage.py",
)
LAST = (
    "plugins/action/hal_audit.py",
    "plugins/action/hal_expect.py",
    "plugins/action/hal_record.py",
    "plugins/action/hal_reimage.py",
    "plugins/callback/hal_audit_report.py",
    "plugins/callback/hal_provenance.py",
)
OTHERWISE = {
    "plugins/filter/hal_slurm.py": "its own module_utils",
    "plugins/modules/hal_bmc.py": "the project that its parameter names",
}


@pytest.mark.parametrize("plugin", [*FIRST, *LAST])
def test_a_plugin_adds_the_project(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [path for path in sys.path if path != str(PROJECT)]
    monkeypatch.setattr(sys, "path", list(others))
    runpy.run_path(str(PROJECT / plugin))
    assert sys.path == ([str(PROJECT), *others] if plugin in FIRST else [*others, str(PROJECT)])


ONCE = [one for one in (*FIRST, *LAST) if " not in sys.path" in (PROJECT / one).read_text()]  # others are filters


@pytest.mark.parametrize("plugin", ONCE)
def test_what_is_there_already_is_not_added(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [*(path for path in sys.path if path != str(PROJECT)), str(PROJECT), "/last"]
    monkeypatch.setattr(sys, "path", list(there))
    runpy.run_path(str(PROJECT / plugin))
    assert sys.path == there


def test_no_plugin_is_left_out() -> None:
    asked = {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("plugins/*/*.py")}
    changing = {path for path in asked if "sys.path." in (PROJECT / path).read_text()}
    assert changing == {*FIRST, *LAST, *OTHERWISE}
