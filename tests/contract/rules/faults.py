"""What a role promises has been seen broken: tests/faults.yml of a scenario, planted by the lab's faults.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, Map, load, roles, rule, scenarios


@rule
def every_promise_has_a_fault(root: Path) -> Iterator[Finding]:
    """Each entry of expect.yml has a fault that breaks it, in the list of some scenario."""
    broken = {(role, promise) for _, _, role, promise in _faults(root)}
    for role, promise, path, line in _promises(root):
        if (role, promise) not in broken:
            where = f"molecule/{role}/tests/faults.yml"
            yield Finding(path, line, f'no fault breaks the promise "{promise}"; plant one in {where}')


@rule
def every_fault_breaks_a_promise(root: Path) -> Iterator[Finding]:
    """What a list names is an entry of that role's expect.yml."""
    promised = {(role, promise) for role, promise, _, _ in _promises(root)}
    for path, line, role, promise in _faults(root):
        if (role, promise) not in promised:
            yield Finding(path, line, f'role {role} does not promise "{promise}"')


def _promises(root: Path) -> Iterator[tuple[str, str, Path, int]]:
    """Role, id, file and line of each promise."""
    for role in roles(root):
        path = role / "expect.yml"
        for entry in load(path) or []:
            if isinstance(entry, Map):
                yield role.name, str(entry.get("id")), path, entry.line


def _faults(root: Path) -> Iterator[tuple[Path, int, str, str]]:
    """File, line, role and id of each fault."""
    for scenario in scenarios(root):
        path = scenario / "tests" / "faults.yml"
        for entry in load(path) or []:
            if isinstance(entry, Map):
                promise = str(entry.get("promise")).partition(" [")[0]  # of one item of a loop
                yield path, entry.line, str(entry.get("role", scenario.name)), promise
