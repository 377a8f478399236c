"""Which tests reach a file, the nearest first: by what Python imports and by the names that texts give."""

from __future__ import annotations

import ast
import functools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutate.mutant import area

NEAR = 2  # steps from a file to a test that reaches it; one is a test that names it itself
TESTS = ("tests/unit", "tests/property", "tests/contract")
# Among these a file is known by its name alone: they are found on a path of their own, or as a plugin.
LOOSE = ("plugins/", "roles/", "molecule/")
LOOKED_AT = ("tests/unit/", "tests/property/", "tests/contract/", "hal_", *LOOSE, "playbooks/")


class Reach:
    """The project's files, and which of them name which."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._texts = {
            name: (root / name).read_text(errors="replace")
            for name in files
            if name.startswith(LOOKED_AT) and name.endswith((".py", ".yml", ".yaml", ".j2", ".sh"))
        }
        self._named: dict[str, set[str]] = {}
        for name, text in self._texts.items():
            for word in _words(name, text):
                self._named.setdefault(word, set()).add(name)

    @property
    def all_tests(self) -> list[str]:
        """Every test file."""
        return sorted(filter(is_test, self._texts))

    def tests(self, path: str) -> list[str]:
        """The test files that name a file, or a file that names it, nearest first; its area's if there are none.

        Not all that could see a fault there: those that are farther away take their time and seldom do.
        """
        distance, queue = {path: 0}, deque([path])
        while queue:
            name = queue.popleft()
            step = 0 if name.startswith("tests/") else 1  # a helper is part of the test
            for other in sorted(self._users(name)):
                if (far := distance[name] + step) < distance.get(other, NEAR + 1):
                    distance[other] = far
                    (queue.append if step else queue.appendleft)(other)
        found = [name for name in distance if is_test(name)]
        return sorted(found, key=lambda name: (distance[name] - _alike(path, name), name)) or self._of_area(path)

    @functools.cache  # noqa: B019  lives as long as the run
    def _users(self, path: str) -> set[str]:
        users = set[str]().union(*(self._named.get(alias, set()) for alias in self._aliases(path)))
        if Path(path).name == "conftest.py":  # nobody names it
            folder = f"{Path(path).parent}/"
            users |= {name for name in self._texts if name.startswith(folder)}
        return users - {path}

    def _aliases(self, path: str) -> Iterator[str]:
        """What others call a file."""
        stem, dotted = Path(path).stem, path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        yield dotted
        yield path
        if stem == "__main__":
            yield dotted.rpartition(".")[0]
        if (path.startswith(LOOSE) and not path.startswith("roles/")) or "/files/" in path:
            yield stem
            yield Path(path).name
        if path.startswith("roles/"):
            yield "/".join(path.split("/")[:2])
        if path.startswith("plugins/filter/"):
            yield from re.findall(r"[\"'](hal_\w+)[\"']", self._texts.get(path, ""))

    def _of_area(self, path: str) -> list[str]:
        return sorted(name for name in self._texts if is_test(name) and f"/{area(path)}/" in name)


def _alike(path: str, test: str) -> int:
    """How much the name of a test says that it is about a file: its area's folder counts, and the file's own name."""
    folder, name = Path(test).parent.name, Path(test).stem.removeprefix("test_")
    return (area(path) in (folder, name)) + Path(path).stem.endswith(name) - test.startswith("tests/contract/")


def is_test(name: str) -> bool:
    """Whether pytest collects it."""
    return name.startswith(TESTS) and Path(name).name.startswith("test_") and name.endswith(".py")


def _words(name: str, text: str) -> set[str]:
    """The modules, files and plugins that a text names."""
    found = set(re.findall(r"roles/\w+", re.sub(r"[\"'] / [\"']", "/", text)))
    if not name.endswith(".py"):
        return found | set(re.findall(r"[\w.]+", text)) | set(re.findall(r"\bhal_\w+", text))
    tree = ast.parse(text)
    package = name.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found |= _modules(one.name)
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
                if node.level
                else str(node.module)
            )
            found |= _modules(base)
            for one in node.names:
                found |= _modules(f"{base}.{one.name}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"[\w-]+(?:/[\w.-]+)+", node.value))
            found |= set(re.findall(r"\w+(?:\.\w+)*", node.value))
    return found


def _modules(dotted: str) -> set[str]:
    """A module as it is imported, and by its own name as plugins and programs of nodes are."""
    return {dotted, dotted.rpartition(".")[2]}
