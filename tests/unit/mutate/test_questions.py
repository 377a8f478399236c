"""Which scenario is asked about a fault, and by whom."""

from __future__ import annotations

import importlib
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutate.mutant import Mutant
from tests.mutate.questions import scenario_of
from tests.mutate.trial import Verdict
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


class Proven:
    """A register in which time stands proven."""

    scenarios = ("munge", "time")

    def __init__(self, tree: object) -> None:
        pass

    def seconds(self, name: str) -> int:
        return len(name)

    def stands(self, name: str) -> bool:
        return name == "time"


def test_each_scenario_is_asked_in_one_copy_about_all_that_survived_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once; one that does not stand proven runs without a fault first."""
    program = importlib.import_module("tests.mutate.__main__")
    both, asked, ended = threading.Barrier(2), list[Any](), list[str]()

    class Bench:
        def __init__(self, copy: str, ask: Any, *_: object) -> None:
            self._ask = ask

        def trust(self, argv: tuple[str, ...], proven_by: object) -> None:
            both.wait(60)
            asked.append((argv[-1], proven_by is None))

        def judge(self, mutant: Mutant) -> Verdict:
            asked.append((mutant.where, next(self._ask(mutant)).argv[-1]))
            return Verdict(mutant, "scenario")

        def end(self, argv: tuple[str, ...]) -> None:
            ended.append(argv[-1])

    monkeypatch.setattr(program, "Bench", Bench)
    monkeypatch.setattr(program, "Register", Proven)
    monkeypatch.setattr(program, "RegisterTree", lambda root: root)
    paths = ("roles/time/a", "roles/munge/a", "roles/time/b", "hal_x/a")
    mutants = [Mutant(path=path, line=1, kind="x", before="a", after="b") for path in paths]
    seen = Verdict(mutants[0], "unit tests")
    verdicts = [seen, *(Verdict(mutant, "") for mutant in mutants[1:])]
    told = list[Verdict]()
    until = time.monotonic() + 600
    tree = SimpleNamespace(root=Path())
    done = program.with_scenarios(tree, verdicts, ["one", "two"], Path(), until, told.append)
    assert [one.by for one in done] == ["unit tests", "scenario", "scenario", ""]
    assert sorted(asked) == [("munge", False), ("roles/munge/a:1", "munge"), ("roles/time/b:1", "time"), ("time", True)]
    assert sorted(ended) == ["munge", "time"]
    assert sorted(one.mutant.where for one in told) == ["roles/munge/a:1", "roles/time/b:1"]
