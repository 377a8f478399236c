"""What is asked about a fault, cheapest first: the parts of make test that can see it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from tests.mutate.mutant import Mutant
from tests.mutate.reach import Reach
from tests.register.proofs import Register

NOTHING_COLLECTED = 5
QUIET_SECONDS = 150.0
"""A test that says nothing for longer hangs: on two busy cores the longest takes 50."""
QUIET_SCENARIO_SECONDS = 900.0
"""A converge waits for daemons and packages without a word."""
PYTEST = ("pytest", "-vv", "-x", "--tb=line", "--hypothesis-seed=0", "-m", "not slow")


@dataclass(frozen=True)
class Question:
    """A command, run in the project's root, that fails if it sees the fault; `tests` are the files it has them from.

    `proven`: it is known to be green without a fault. `alone` is held while it runs.
    """

    name: str
    argv: tuple[str, ...]
    tests: tuple[str, ...] = ()
    green: tuple[int, ...] = (0,)
    quiet_seconds: float = QUIET_SECONDS
    proven: bool = False
    alone: AbstractContextManager[object] = field(default_factory=nullcontext)


def pytest(name: str, tests: list[str], *words: str) -> Question:
    """The tests of these files."""
    return Question(name, (*PYTEST, *words, *tests), tuple(tests), (0, NOTHING_COLLECTED))


def questions(mutant: Mutant, reach: Reach, scenarios: Scenarios | None = None) -> Iterator[Question]:
    """What to ask. Of Python no linter: it would see how an operator writes, not what it does."""
    near = reach.tests(mutant.path)
    if mutant.language == "yaml":
        if mutant.path.endswith(".yml"):
            yield Question("yamllint", ("yamllint", "--strict", mutant.path))
        contract = [name for name in reach.all_tests if name.startswith("tests/contract/")]
        # What is planted there has files of its own; the rules of two read Python alone; a role's refusals are its own.
        words = "not planted and not node_python and not plugins"
        if mutant.path.startswith("roles/"):
            words += f" and (not test_refused or {mutant.area})"
        yield pytest("contract tests", contract, "-k", words)
        near = [name for name in near if name not in contract]
    if near:
        yield pytest("unit tests", near)
    if mutant.language == "yaml" and mutant.path.endswith(".yml"):
        yield Question("ansible-lint", ("ansible-lint", "--strict", mutant.path))
    if scenarios:
        yield from scenarios.questions(mutant)


def molecule(name: str, *words: str) -> tuple[str, ...]:
    """A command of a scenario, as make test has it."""
    return ("molecule", "-c", "molecule/base.yml", *words, "-s", name)


def scenarios_of(mutant: Mutant, register: Register) -> list[str]:
    """The scenarios that run a file, the quickest first: of a role its own; of a playbook those that name it.

    Where none names a playbook, because a helper calls it: the quickest that depends on it.
    """
    if mutant.path.startswith("roles/"):
        return [mutant.area] if mutant.area in register.scenarios else []
    if not mutant.path.startswith("playbooks/"):
        return []
    tree, whole = register.tree, {mutant.path}
    while more := {file for file in tree.below("playbooks") if whole & tree.named(file)} - whole:
        whole |= more  # what imports it
    depend = sorted(
        (name for name in register.scenarios if mutant.path in register.files_of(name)),
        key=lambda name: (register.seconds(name), name),
    )
    run = [name for name in depend if any(whole & tree.named(file) for file in tree.below(f"molecule/{name}"))]
    return run or depend[:1]


class Scenarios:
    """The scenarios, each of them for one copy at a time: its nodes have the same names in every tree."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._alone = defaultdict[str, threading.Lock](threading.Lock)
        self.asked = set[str]()

    def questions(self, mutant: Mutant) -> Iterator[Question]:
        """The scenario that runs the file, from bare nodes: one that was converged already does not miss a task."""
        for name in scenarios_of(mutant, self._register):
            self.asked.add(name)
            yield Question(
                "scenario",
                molecule(name, "test"),
                quiet_seconds=QUIET_SCENARIO_SECONDS,
                proven=self._register.stands(name),
                alone=self._alone[name],
            )
