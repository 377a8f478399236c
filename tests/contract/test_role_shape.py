"""Roles without one of their parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import role_shape

WHOLE = {
    "roles/time/defaults/main.yml": "",
    "roles/time/meta/main.yml": "",
    "roles/time/meta/argument_specs.yml": "",
    "roles/time/tasks/main.yml": "",
    "roles/time/tasks/verify.yml": "",
    "roles/time/expect.yml": "",
    "roles/time/README.md": "",
    "molecule/time/molecule.yml": "---\n",
}


def without(name: str) -> dict[str, str]:
    """The whole role but one file."""
    return {path: text for path, text in WHOLE.items() if path != name}


PLANTED = (
    Planted(role_shape.has_every_part, WHOLE, []),
    Planted(
        role_shape.has_every_part,
        without("roles/time/expect.yml"),
        ["roles/time:1: no expect.yml; it holds what must be true on a node, as data"],
    ),
    Planted(role_shape.has_a_scenario, WHOLE, []),
    Planted(
        role_shape.has_a_scenario,
        without("molecule/time/molecule.yml"),
        ["roles/time:1: no scenario; molecule/time/molecule.yml with converge.yml and tests/ proves it"],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
