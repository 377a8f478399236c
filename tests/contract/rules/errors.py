"""One root of all errors at the controller: who catches HalError, catches what any part raises."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, rule, text_of

ROOT = "HalError"
PLACES = ("hal_inventory", "hal_cluster", "plugins")
OF_NODES = (("hal_inventory", "capture", "node.py"), ("plugins", "modules"), ("plugins", "module_utils"))
BUILTIN = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}


@rule
def errors_have_one_root(root: Path) -> Iterator[Finding]:
    """Every error class of the controller derives from HalError, through names that the project defines."""
    every = ((path, node) for path in _files(root) for node in ast.walk(ast.parse(text_of(path))))
    classes = [(path, node) for path, node in every if isinstance(node, ast.ClassDef)]
    bases = {node.name: [_name(base) for base in node.bases] for _, node in classes}
    for path, node in classes:
        above = _above(node.name, bases)
        if ROOT not in {*above, node.name} and any(name in BUILTIN or name.endswith("Error") for name in above):
            yield Finding(path, node.lineno, f"{node.name} does not derive from {ROOT}: nobody catches it at the edge")


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            parts = path.relative_to(root).parts
            if not any(parts[: len(of_nodes)] == of_nodes for of_nodes in OF_NODES):
                yield path


def _name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _above(name: str, bases: dict[str, list[str]]) -> set[str]:
    """Return the names of all classes that one derives from."""
    found: set[str] = set()
    asked = [name]
    while asked:
        new = [base for base in bases.get(asked.pop(), []) if base not in found]
        found.update(new)
        asked += new
    return found
