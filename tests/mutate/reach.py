"""Which tests reach a file, the nearest first: by what Python imports and by the names that texts give."""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutate.mutant import area

MODULE_UTILS = "ansible.module_utils."
MOST = 40  # test files that are asked about one file
NEAR = 2  # steps from a file to a test that reaches it; one is a test that names it itself
TESTS = ("tests/unit", "tests/property", "tests/contract")
# Tests, and what can lie between them and a file; not the lab, which names nearly everything.
READ = re.compile(r"(tests/(unit|property|contract)/|hal_|plugins/|roles/\w+/files/).*\.py|playbooks/.*\.yml")
# What a test looks for in folders of the project: plugins/*/*.py
MANY = re.compile(r"[\"']((?:plugins|roles|playbooks|inventory|hal_[\w*]*)/[\w*./-]*\*[\w*./-]*)[\"']")
TASKS = re.compile(r"(?:import|include)_tasks: ([\w/-]+\.yml)")
OWN = "tests/unit/tests/mutate/"  # these try faults themselves, in files that they name
# A file of the project; not one that a text shows as the source of something: roles/time/tasks/main.yml:2
NAMED = re.compile(r"(?<![\w-])(?:[\w-]+/)+[\w.-]*(?![\w.|:/-])")


class Reach:
    """The project's files, and which of them name which."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._texts = {name: (root / name).read_text(errors="replace") for name in files if READ.fullmatch(name)}
        self._named: dict[str, set[str]] = {}
        for name, text in self._texts.items():
            for word in _words(name, text):
                self._named.setdefault(word, set()).add(name)

    @property
    def all_tests(self) -> list[str]:
        """Every test file."""
        return sorted(filter(is_test, self._texts))

    def tests(self, path: str) -> list[str]:
        """The test files that name a file, or a file that names it, nearest first; then those that look at each of many
        files, of which it is one; then those of its area.

        Not all that could see a fault there: those that are farther away take their time, and seldom do.
        """
        distance, queue = {path: 0}, deque([path])
        imported = path.endswith(".py") or path.startswith("playbooks/")
        near = NEAR if imported else 1
        while queue:
            name = queue.popleft()
            step = 0 if name.startswith("tests/") else 1  # a helper is part of the test
            for other in sorted(self._users(name)):
                if (far := distance[name] + step) < distance.get(other, near + 1):
                    distance[other] = far
                    (queue.append if step else queue.appendleft)(other)
        found = [name for name in distance if is_test(name)]
        near_ones = sorted(found, key=lambda name: (distance[name] - _alike(path, name), name))
        return list(dict.fromkeys([*near_ones, *self._of_many(path), *self._of_area(path)]))[:MOST]

    @functools.cache  # noqa: B019  lives as long as the run
    def _users(self, path: str) -> set[str]:
        users = set[str]().union(*(self._named.get(alias, set()) for alias in self._aliases(path)))
        if Path(path).name == "conftest.py":  # nobody names it
            folder = f"{Path(path).parent}/"
            users |= {name for name in self._texts if name.startswith(folder)}
        return users - {path}

    def _aliases(self, path: str) -> Iterator[str]:
        """What others call a file."""
        yield path
        if path.startswith("roles/"):
            yield "/".join(path.split("/")[:2])
        if path.endswith(".py"):
            dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            yield dotted.removesuffix(".__main__")
            if path.startswith(("plugins/", "roles/")):  # found on a path of its own, or as a plugin
                yield Path(path).name
                if "_" in Path(path).stem:  # one word is in every text
                    yield Path(path).stem
        if path.startswith("plugins/filter/"):
            yield from re.findall(r"[\"'](hal_\w+)[\"']", self._texts.get(path, ""))

    def _of_many(self, path: str) -> list[str]:
        patterns = {name: MANY.findall(text) for name, text in sorted(self._texts.items()) if is_test(name)}
        return [name for name, many in patterns.items() if any(fnmatch.fnmatchcase(path, one) for one in many)]

    def _of_area(self, path: str) -> list[str]:
        folder = re.compile(rf"/{re.escape(area(path))}(_\w+)?/")  # its roles and its packages are alike
        return sorted(name for name in self._texts if is_test(name) and folder.search(name))


def _alike(path: str, test: str) -> int:
    """How much the name of a test says that it is about a file: its area's folder counts, and the file's own name."""
    folder, name = Path(test).parent.name, Path(test).stem.removeprefix("test_")
    return (area(path) in (folder, name)) + Path(path).stem.endswith(name) - test.startswith("tests/contract/")


def is_test(name: str) -> bool:
    """Whether pytest collects it, and it is asked about faults."""
    collected = name.startswith(TESTS) and Path(name).name.startswith("test_") and name.endswith(".py")
    return collected and not name.startswith(OWN)


def _words(name: str, text: str) -> set[str]:
    """The modules, files, folders of roles and plugins that a text names."""
    files = {one.rstrip("/") for one in NAMED.findall(re.sub(r"[\"'] / [\"']", "/", text))}
    found = files | {"/".join(one.split("/")[:2]) for one in files if one.startswith("roles/")}
    if not name.endswith(".py"):
        return found | set(re.findall(r"\w+", text)) | {f"{Path(name).parent}/{one}" for one in TASKS.findall(text)}
    package = name.split("/")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                found |= _modules(one.name)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for dotted in (base, *(f"{base}.{one.name}" for one in node.names)):
                found |= _modules(dotted)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.findall(r"\w+(?:\.\w+)*", node.value)
            found |= {one.removeprefix(MODULE_UTILS) for one in named} | set(re.findall(r"\w+", node.value))
    return found


def _modules(dotted: str) -> set[str]:
    """A module as it is imported, and by its own name as plugins and programs of nodes are."""
    return {dotted.removeprefix(MODULE_UTILS), dotted.rpartition(".")[2]}
