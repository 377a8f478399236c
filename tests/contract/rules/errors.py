"""One root of all errors at the controller: who catches HalError, catches what any part raises."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.contract.project import Finding, rule, text_of

ROOT = "hal_inventory.errors.HalError"
PLACES = ("hal_inventory", "hal_cluster", "plugins")
OF_NODES = (("hal_inventory", "capture", "node.py"), ("plugins", "modules"), ("plugins", "module_utils"))


@rule
def errors_have_one_root(root: Path) -> Iterator[Finding]:
    """Every error class of the controller derives from HalError. Bases are followed through imports.

    What comes from outside of the project is imported, to see what it is.
    """
    project = Project(root)
    for path in _files(root):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for name, node in project.source(module).classes.items():
            above = project.above(f"{module}.{name}")
            if f"{module}.{name}" == ROOT or ROOT in above:
                continue
            unknown = sorted(base for base in above if project.is_outside(base) and _outside(base) is None)
            if unknown:
                yield Finding(path, node.lineno, f"{name}: its base {unknown[0]} cannot be found: import it by name")
            elif any(project.is_outside(base) and _is_error(base) for base in above):
                yield Finding(path, node.lineno, f"{name} does not derive from HalError: nobody catches it at the edge")


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            parts = path.relative_to(root).parts
            if not any(parts[: len(of_nodes)] == of_nodes for of_nodes in OF_NODES):
                yield path


@dataclass(frozen=True)
class Source:
    """A module of the project: its classes by qualified name, and full names of what it imports, by own name."""

    classes: dict[str, ast.ClassDef]
    imports: dict[str, str]


class Project:
    """The modules below a folder, each read when somebody asks for it."""

    def __init__(self, root: Path) -> None:
        """Nothing is read yet."""
        self._root = root
        self._sources: dict[str, Source | None] = {}

    def source(self, module: str) -> Source:
        """Return a module that is there; KeyError for another."""
        if module not in self._sources:
            self._sources[module] = self._read(module)
        source = self._sources[module]
        if source is None:
            raise KeyError(module)
        return source

    def _read(self, module: str) -> Source | None:
        folder = self._root.joinpath(*module.split("."))
        for path, package in ((folder.with_suffix(".py"), module.rpartition(".")[0]), (folder / "__init__.py", module)):
            if path.is_file():
                tree = ast.parse(text_of(path))
                return Source(dict(_classes(tree, "")), dict(_imports(tree, package)))
        return None

    def above(self, name: str) -> set[str]:
        """Return the full names of all classes that a class derives from."""
        seen: set[str] = set()
        asked = [name]
        while asked:
            new = set(self._bases(asked.pop())) - seen
            seen |= new
            asked += new
        return seen

    def is_outside(self, name: str) -> bool:
        """Tell whether a full name is none of the project's classes."""
        return self._split(name) is None

    def _split(self, name: str) -> tuple[str, str] | None:
        """Return the module and the class of a full name, None for what is not of the project."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module, rest = ".".join(parts[:cut]), ".".join(parts[cut:])
            try:
                if rest in self.source(module).classes:
                    return module, rest
            except KeyError:
                continue
        return None

    def _bases(self, name: str) -> Iterator[str]:
        own = self._split(name)
        if own is None:
            return
        module, qualified = own
        for base in self.source(module).classes[qualified].bases:
            words = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            if words.replace(".", "").isidentifier():
                yield self._full(module, qualified.rpartition(".")[0], words)

    def _full(self, module: str, scope: str, words: str) -> str:
        """Return the full name of what a module calls by these words, in a class or function or at its top."""
        source = self.source(module)
        while scope:
            if f"{scope}.{words}" in source.classes:
                return f"{module}.{scope}.{words}"
            scope = scope.rpartition(".")[0]
        if words in source.classes:
            return f"{module}.{words}"
        first, _, rest = words.partition(".")
        if first not in source.imports:
            return f"builtins.{words}"
        return self._origin(".".join(filter(None, [source.imports[first], rest])))

    def _origin(self, name: str) -> str:
        """Return the full name of a class where it is defined: a package hands on what it imports."""
        module, _, last = name.rpartition(".")
        try:
            source = self.source(module)
        except KeyError:
            return name
        if last in source.classes or last not in source.imports or source.imports[last] == name:
            return name
        return self._origin(source.imports[last])


def _classes(tree: ast.AST, scope: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        inside = scope
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{scope}{node.name}."
        if isinstance(node, ast.ClassDef):
            yield f"{scope}{node.name}", node
        yield from _classes(node, inside)


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            whole = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{whole}.{alias.name}"


@functools.cache
def _outside(name: str) -> object | None:
    """Return what has this full name outside of the project; None where nothing has."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part, None)
        return value
    return None


def _is_error(name: str) -> bool:
    value = _outside(name)
    return isinstance(value, type) and issubclass(value, BaseException)
