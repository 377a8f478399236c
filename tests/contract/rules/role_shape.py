"""A stranger finds the same files in every role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, roles, rule

PARTS = {
    "defaults/main.yml": "the role's public variables, each with its reason",
    "meta/main.yml": "who it is for and what it depends on",
    "meta/argument_specs.yml": "types and meanings of its variables",
    "tasks/main.yml": "what it does",
    "tasks/verify.yml": "the call of hal_expect that proves it",
    "expect.yml": "what must be true on a node, as data",
    "README.md": "its purpose, what it will not do, an example",
}


@rule
def has_every_part(root: Path) -> Iterator[Finding]:
    """Each role has the same parts, so that a stranger finds anything in two guesses: those of PARTS."""
    for role in roles(root):
        for part, meaning in PARTS.items():
            if not (role / part).is_file():
                yield Finding(role, 1, f"no {part}; it holds {meaning}")


@rule
def has_a_scenario(root: Path) -> Iterator[Finding]:
    """Each role is proven by a molecule scenario of its name."""
    for role in roles(root):
        if not (root / "molecule" / role.name / "molecule.yml").is_file():
            yield Finding(
                role, 1, f"no scenario; molecule/{role.name}/molecule.yml with converge.yml and tests/ proves it"
            )
