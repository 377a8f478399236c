"""A change of what the reference site's nodes get is seen, and looked at by who makes it: tests/contract/written."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.contract import written
from tests.contract.project import PROJECT, roles

ROLES = sorted(role.name for role in roles(PROJECT))


@pytest.mark.parametrize("role", ROLES)
def test_nodes_get_what_stands_there(role: str) -> None:
    path = written.FOLDER / f"{role}.txt"
    before = path.read_text() if path.is_file() else ""
    lines = difflib.unified_diff(
        before.splitlines(), written.of_project().get(role, "").splitlines(), "before", "now", lineterm="", n=2
    )
    said = "\n".join(lines)
    assert not said, f"HAL's nodes get other texts from {role}; if you mean that: make written\n{said}"


def test_there_are_no_texts_of_roles_that_are_gone() -> None:
    assert {path.stem for path in Path(written.FOLDER).glob("*.txt")} <= set(ROLES)


def test_most_of_what_roles_write_is_there() -> None:
    """Whatever is not rendered is not compared."""
    templates = {path.name for path in PROJECT.glob("roles/*/templates/*")}
    lines = "".join(written.of_project().values()).splitlines()
    there = "".join(line for line in lines if line.startswith("==> "))
    missing = {name for name in templates if f"/templates/{name}" not in there}
    # No node of HAL has arrays; notebooks' are rendered for each image and user.
    assert missing == {"mdadm.conf.j2", "notebook.def.j2", "jupyter_config.py.j2"}
