"""A program of a role as it stands on a node: its file, and what it imports of its role and of hal_node. Pure reading.

Each program has its own copy of what it imports of hal_node beside it. So a rollout of one role changes no program of
another, and a program finds its imports in its own folder, without a search path.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = "hal_node"
MODULE_UTILS = "ansible.module_utils."
"""How modules name it: Ansible puts there what it sends along."""


@functools.cache  # a task's templates ask several times
def files(program: Path) -> Mapping[str, str]:
    """Return path -> text of the files in the program's folder on a node, each after its imports.

    Beside it are single files, no packages. Raises OSError for a file that cannot be read, SyntaxError for one that is
    not Python, ImportError for one that needs Ansible, as modules may.
    """
    texts: dict[str, str] = {}
    _collect(program.parent, program.name, texts, set())
    return texts


def folders(names: Iterable[str]) -> list[str]:
    """Return the folders of these files below the program's own, outer ones first."""
    return sorted({str(parent) for name in names for parent in Path(name).parents} - {"."})


def imported(text: str, name: str) -> Iterator[str]:
    """Yield the files that the imports of a file may mean. They need not be there.

    `name`: its path, for hal_node below the project. Raises SyntaxError for a text that is not Python.
    """
    for dotted in _dotted(text, name):
        yield from _candidates(dotted.removeprefix(MODULE_UTILS))


def _collect(own: Path, name: str, texts: dict[str, str], begun: set[str]) -> None:
    if name in begun:
        return
    begun.add(name)
    text = _place(own, name).read_text(encoding="utf-8")
    for dotted in _dotted(text, name):
        if dotted.partition(".")[0] == "ansible":
            raise ImportError(f"{name} imports {dotted}: that is there for modules alone")
        for candidate in _candidates(dotted):
            if _place(own, candidate).is_file():
                _collect(own, candidate, texts, begun)
    texts[name] = text


def _place(own: Path, name: str) -> Path:
    return (PROJECT if name.startswith(f"{PACKAGE}/") else own) / name


def _dotted(text: str, name: str) -> Iterator[str]:
    """Yield the full names of imports: of modules, and of what is in them."""
    package = list(Path(name).parts[:-1])
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*above, *([node.module] if node.module else [])])
            yield whole
            yield from (f"{whole}.{alias.name}" for alias in node.names)


def _candidates(dotted: str) -> Iterator[str]:
    """Yield the files that a name may mean: a module, and the packages around it."""
    parts = dotted.split(".")
    if parts[0] != PACKAGE:
        yield f"{parts[0]}.py"
        return
    for count in range(1, len(parts) + 1):
        yield "/".join([*parts[:count], "__init__.py"])
        yield "/".join(parts[:count]) + ".py"
