"""Which scenario is asked about a fault."""

from __future__ import annotations

import pytest

from tests.mutate.mutant import Mutant
from tests.mutate.questions import scenario_of
from tests.register.depends import Tree
from tests.register.proofs import Register
from tests.unit.mutate.conftest import PROJECT


@pytest.fixture(scope="module")
def register() -> Register:
    return Register(Tree(PROJECT))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("roles/time/tasks/main.yml", "time"),
        ("playbooks/bootstrap.yml", "first_contact"),
        ("playbooks/power.yml", "bmc"),
        ("playbooks/nobody_runs.yml", ""),
        ("hal_audit/findings.py", ""),
    ],
)
def test_a_fault_is_asked_of_what_runs_its_file(register: Register, path: str, name: str) -> None:
    assert scenario_of(Mutant(path=path, line=1, kind="x", before="a", after="b"), register) == name


def test_of_several_the_quickest_is_asked(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "playbooks/reboot.yml"
    runs = [name for name in register.scenarios if path in register.files_of(name)]
    assert len(runs) > 1
    monkeypatch.setattr(register, "seconds", lambda name: 1 if name == runs[-1] else 2)
    assert scenario_of(Mutant(path=path, line=1, kind="x", before="a", after="b"), register) == runs[-1]
