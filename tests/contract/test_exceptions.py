"""An exception stands on the line with its reason, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.rules import tasks

FILE = "roles/time/tasks/main.yml"
FOUND = f"{FILE}:2: setup gathers facts; use hal_node or lookup('hal', ...)"


@pytest.mark.parametrize(
    ("comment", "findings"),
    [
        ("  # contract: the clock of a node that booted wrong is what this task is about", []),
        ("  # contract:", [FOUND]),
        ("  # it has a reason but does not say which promise it breaks", [FOUND]),
    ],
)
def test_only_a_reason_excuses(comment: str, findings: list[str], tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(f"- name: Ask\n  ansible.builtin.setup: {{}}{comment}\n")
    assert tasks.nothing_gathers_facts(tmp_path) == findings


def test_a_reason_on_another_line_excuses_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text("- name: Ask  # contract: a reason\n  ansible.builtin.setup: {}\n")
    assert tasks.nothing_gathers_facts(tmp_path) == [FOUND]
