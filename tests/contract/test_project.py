"""The project keeps every promise, and the rules have looked at something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract import project, rules
from tests.contract.rules import documents, node_python

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", sorted(project.RULES))
def test_the_project_keeps_the_promise(name: str) -> None:
    findings = project.RULES[name](project.PROJECT)
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("name", sorted(project.RULES))
def test_each_rule_has_been_seen_to_fail(name: str) -> None:
    subject, _, function = name.partition(".")
    proof = HERE / f"test_{subject}.py"
    assert proof.is_file(), f"{proof.name} does not exist; plant a violation of {name} there"
    assert f"{subject}.{function}," in proof.read_text(), f"{proof.name} plants no violation of {name}"


def test_every_subject_is_imported() -> None:
    subjects = {path.stem for path in (HERE / "rules").glob("*.py")} - {"__init__"}
    assert subjects == set(rules.__all__)


def test_the_rules_saw_the_project() -> None:
    """Nothing found in nothing is not green."""
    root = project.PROJECT
    roles = project.roles(root)
    assert {"repositories", "base", "time", "hosts", "ssh", "munge", "slurm"} <= {role.name for role in roles}
    assert all(any(project.role_tasks(role)) for role in roles)
    assert {role.name for role in roles} <= {scenario.name for scenario in project.scenarios(root)}
    assert len(project.playbooks(root)) > len(project.scenarios(root))
    assert any(path.name == "hal_expect.py" for path in node_python.sources(root))
    assert root / "README.md" in project.files(root)
    assert documents.anchors(root / "README.md")
