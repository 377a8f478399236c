"""What is asked about a fault, cheapest first: the parts of make test that can see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutate.mutant import Mutant
from tests.mutate.reach import Reach

NOTHING_COLLECTED = 5
PYTEST = ("pytest", "-vv", "-x", "--tb=line", "--hypothesis-seed=0", "-m", "not slow")


@dataclass(frozen=True)
class Question:
    """A command, run in the project's root, that fails if it sees the fault; `tests` are the files it has them from."""

    name: str
    argv: tuple[str, ...]
    tests: tuple[str, ...] = ()
    green: tuple[int, ...] = (0,)


def pytest(name: str, tests: list[str], *words: str) -> Question:
    """The tests of these files."""
    return Question(name, (*PYTEST, *words, *tests), tuple(tests), (0, NOTHING_COLLECTED))


def questions(mutant: Mutant, reach: Reach) -> Iterator[Question]:
    """What to ask. Of Python no linter: it would see how an operator writes, not what it does."""
    near = reach.tests(mutant.path)
    if mutant.language == "yaml":
        if mutant.path.endswith(".yml"):
            yield Question("yamllint", ("yamllint", "--strict", mutant.path))
        contract = [name for name in reach.all_tests if name.startswith("tests/contract/")]
        # What is planted there has files of its own; the rules of these two read Python alone.
        yield pytest("contract tests", contract, "-k", "not planted and not node_python and not plugins")
        near = [name for name in near if name not in contract]
    if near:
        yield pytest("unit tests", near)
    if mutant.language == "yaml" and mutant.path.endswith(".yml"):
        yield Question("ansible-lint", ("ansible-lint", "--strict", mutant.path))


def scenario(mutant: Mutant, root: Path) -> Iterator[Question]:
    """The scenario of the role, from bare nodes: one that was converged already does not miss a task."""
    role = role_with_scenario(mutant, root)
    if role:
        yield Question("scenario", molecule(role, "test"))


def molecule(role: str, *words: str) -> tuple[str, ...]:
    """A command of a role's scenario, as make test has it."""
    return ("molecule", "-c", "molecule/base.yml", *words, "-s", role)


def whole_scenario(role: str) -> tuple[str, ...]:
    """A role's scenario, and before it what nodes are made of."""
    return ("python", "tests/run.py", "--scenario", role, "scenarios")


def role_with_scenario(mutant: Mutant, root: Path) -> str:
    """The role whose file it is, when it has a scenario of its name."""
    role = mutant.area if mutant.path.startswith("roles/") else ""
    return role if role and (root / "molecule" / role / "molecule.yml").is_file() else ""
