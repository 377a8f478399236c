"""No lock of ours can be held by a user, and nobody waits for one without end: hal_node/lock.py.

Whoever may open a file may lock it. So a lock's file is made by os.open(path, ... | os.O_NOFOLLOW, 0o600), and it is
asked for with LOCK_NB, again until a limit. The lab's own (molecule/, tests/, .ci/) are of who runs it, on his machine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, files, rule, text_of
from tests.contract.rules.centos7_tools import every_command
from tests.contract.shell import calls

OURS = ("hal_", "plugins/", "roles/")
USE = "use locked() of hal_node/lock.py"
# What locks a folder instead of a file, and why no user can open it. Take out what does not any more.
FOLDERS = {
    "hal_cluster/audit/store.py": "0700 and the controller's",
    "roles/backup/files/backup_folder.py": "0700 and of the store's account",
}


def sources(root: Path) -> list[Path]:
    """The Python of the product that locks anything."""
    found = (path for path in files(root) if path.suffix == ".py")
    return [path for path in found if path.relative_to(root).as_posix().startswith(OURS)]


@rule
def a_lock_is_its_owner_s_alone(root: Path) -> Iterator[Finding]:
    """What is locked was opened so that nobody else can open it, and no link was followed."""
    for path in sources(root):
        if path.relative_to(root).as_posix() in FOLDERS:
            continue
        module = Module(text_of(path))
        for call in module.locks():
            if not module.is_private(call.args[0], module.function_of(call)):
                text = f"{ast.unparse(call.args[0])} is locked and not from os.open(..., os.O_NOFOLLOW, 0o600)"
                yield Finding(path, call.lineno, f"{text}: who may open it can hold it; {USE}")


@rule
def a_lock_is_waited_for_up_to_a_limit(root: Path) -> Iterator[Finding]:
    """The kernel does not wait for it: what does knows an end."""
    for path in sources(root):
        for call in Module(text_of(path)).locks():
            how = ast.unparse(call.args[1]) if len(call.args) > 1 else ""
            if "LOCK_NB" not in how and "LOCK_UN" not in how:
                yield Finding(path, call.lineno, f"without LOCK_NB it is waited for without end; {USE}")


@rule
def no_shell_takes_a_lock(root: Path) -> Iterator[Finding]:
    """flock(1), and a shell's redirection, make the file for all to read."""
    for path, line, words in every_command(root):
        for at, _ in calls(words, frozenset(["flock"]), line):
            yield Finding(path, at, f"flock locks a file that users may open; {USE}")


class Module:
    """A file's code, as far as it tells where a handle comes from."""

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self._functions = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef)]
        self._inside = {id(node): one for one in self._functions for node in ast.walk(one)}  # the innermost one

    def locks(self) -> list[ast.Call]:
        """Return the calls that lock; one that gives a lock back has no new handle."""
        return [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and _name(node.func) in ("flock", "lockf") and node.args
        ]

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the function that something stands in."""
        return self._inside.get(id(node))

    def is_private(self, value: ast.expr, function: ast.FunctionDef | None, depth: int = 6) -> bool:
        """Whether every way to this handle begins with an open that lets in nobody else."""
        if depth == 0:
            return False
        if isinstance(value, ast.Call):
            return self._opens(value, function, depth)
        if function is None:
            return False
        origins = list(self._bound(ast.unparse(value), function))
        return bool(origins) and all(self.is_private(one, where, depth - 1) for one, where in origins)

    def _opens(self, call: ast.Call, function: ast.FunctionDef | None, depth: int) -> bool:
        if ast.unparse(call.func) == "os.open":
            words = [ast.unparse(one) for one in call.args]
            return len(words) == 3 and "O_NOFOLLOW" in words[1] and words[2] == "384"
        if ast.unparse(call.func) in ("open", "os.fdopen", "io.open"):
            return isinstance(call.args[0], ast.Call) and self.is_private(call.args[0], function, depth - 1)
        returned = [
            (node.value, one)
            for one in self._functions
            if one.name == _name(call.func)
            for node in ast.walk(one)
            if isinstance(node, ast.Return) and node.value is not None
        ]
        return bool(returned) and all(self.is_private(one, where, depth - 1) for one, where in returned)

    def _bound(self, name: str, function: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.FunctionDef | None]]:
        """Yield what a name gets in a function, and from those who call it."""
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from ((value, function) for value in _assigned(target, node.value, name))
            elif isinstance(node, ast.withitem) and node.optional_vars and ast.unparse(node.optional_vars) == name:
                yield node.context_expr, function
        at = next((number for number, one in enumerate(function.args.args) if one.arg == name), None)
        for node in ast.walk(self._tree) if at is not None else ():
            if isinstance(node, ast.Call) and _name(node.func) == function.name and len(node.args) > (at or 0):
                yield node.args[at or 0], self.function_of(node)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """Yield what of an assignment goes to a name."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, other, name)
    elif ast.unparse(target) == name:
        yield value
