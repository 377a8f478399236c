"""The unit of a daemon: what is done to it, in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.daemon.unit import Unit

FINE = {"LoadState": "loaded", "UnitFileState": "enabled", "NeedDaemonReload": "no"}
MASKED = {"LoadState": "masked", "UnitFileState": "masked", "NeedDaemonReload": "no"}


def prepared(state: dict[str, str], check_mode: bool = False) -> tuple[list[str], list[tuple[str, ...]]]:
    """What it says that it changed, and what systemd was told."""
    told = list[tuple[str, ...]]()
    unit = SimpleNamespace(
        state=state,
        name="slurmd.service",
        module=SimpleNamespace(check_mode=check_mode),
        systemctl=lambda *words: told.append(words),
    )
    done: Any = Unit.prepare(unit)
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
