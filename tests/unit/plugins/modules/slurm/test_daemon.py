"""hal_slurm_daemon: what it does to the unit, in which order."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

MODULE = Path(__file__).resolve().parents[5] / "plugins/modules/hal_slurm_daemon.py"
FINE = {"LoadState": "loaded", "UnitFileState": "enabled", "NeedDaemonReload": "no"}
MASKED = {"LoadState": "masked", "UnitFileState": "masked", "NeedDaemonReload": "no"}


def prepared(state: dict[str, str], check_mode: bool = False) -> tuple[list[str], list[tuple[str, ...]]]:
    """What it says that it changed, and what systemd was told."""
    told = list[tuple[str, ...]]()
    daemon = SimpleNamespace(
        state=state,
        unit="slurmd.service",
        module=SimpleNamespace(check_mode=check_mode),
        systemctl=lambda *words: told.append(words),
    )
    done: Any = runpy.run_path(str(MODULE))["Daemon"].prepare_unit(daemon)
    return done, told


@pytest.mark.parametrize(
    ("state", "done", "told"),
    [
        (FINE, [], []),
        ({**FINE, "UnitFileState": "static"}, [], []),
        ({**FINE, "UnitFileState": "disabled"}, ["enabled"], [("enable", "slurmd.service")]),
        # What was changed beside it is read before it starts.
        ({**FINE, "NeedDaemonReload": "yes"}, [], [("daemon-reload",)]),
        (
            MASKED,
            ["unmasked", "enabled"],
            [("unmask", "slurmd.service"), ("daemon-reload",), ("enable", "slurmd.service")],
        ),
    ],
)
def test_a_unit_is_made_ready(state: dict[str, str], done: list[str], told: list[tuple[str, ...]]) -> None:
    assert prepared(state) == (done, told)
    assert prepared(state, check_mode=True) == (done, [])
