"""What nodes get answers alike under each of their Pythons: calls that tests make in this process are made there, too.

A call that cannot be carried there is made here alone: it is given a function of the test, the test has replaced a part
of the module, or is another process or user by now.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import pickle
import re
import subprocess
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import ansible.module_utils

from tests.unit.interpreters import NODES, interpreter

PROJECT = Path(__file__).resolve().parents[2]
SHIPPED = PROJECT / "plugins" / "module_utils"
MODULE_UTILS = "ansible.module_utils."
# What a test may replace, in a module or in a table of it, as it was: by module, where it is, its name and itself.
WHOLE: dict[str, list[tuple[dict[Any, Any], Any, Any]]] = {}
MOST = 100  # calls of one function in one process: what a property asks after that is no news
US = (os.getpid(), os.geteuid())
# What a Python itself says of a fault differs.
PYTHONS_OWN = re.compile(r"(?<=not a regular expression: ).*")
# Ansible as a module finds it on a node: module_utils alone, ours and its own.
ANSIBLE = """
import sys, types
sys.dont_write_bytecode = True
for name, path in (("ansible", []), ("ansible.module_utils", sys.argv[1:3])):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = path
sys.modules["ansible"].module_utils = sys.modules["ansible.module_utils"]
"""
# Answers one call after another; what code on the node prints is not an answer.
AGENT = r"""
import importlib, os, pickle, struct
source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.path[1:1] = sys.argv[1:2] + sys.argv[3:]  # of a program: what stands beside it
text = type(u"")
while True:
    head = source.read(4)
    if not head:
        break
    try:
        environment, folder, module, name, given = pickle.loads(source.read(*struct.unpack("<I", head)))
        os.environ.clear()
        os.environ.update(dict((key.encode("utf-8"), value.encode("utf-8")) for key, value in environment.items())
                          if str is bytes else environment)
        os.chdir(folder)
        arguments, words = pickle.loads(given)
        function = getattr(importlib.import_module(module), name)
    except Exception as error:
        answer = ("not carried", repr(error))
    else:
        try:
            answer = ("returned", function(*arguments, **words))
        except Exception as error:
            answer = ("raised", (type(error).__name__, text(error)))
    try:
        packed = pickle.dumps(answer, 2)
    except Exception as error:
        packed = pickle.dumps(("not carried", repr(error)), 2)
    answers.write(struct.pack("<I", len(packed)) + packed)
    answers.flush()
"""


def module_utils() -> tuple[str, str]:
    """Return the folders of ours and of Ansible's own."""
    return str(SHIPPED), next(path for path in ansible.module_utils.__path__ if path != str(SHIPPED))


class Agent:
    """One Python of nodes, which answers calls."""

    def __init__(self, version: str) -> None:
        """Start it. It ends with this process."""
        folders = sorted({str(path.parent) for path in PROJECT.glob("roles/*/files/*.py")})
        self._process = subprocess.Popen(
            [interpreter(version), "-c", ANSIBLE + AGENT, *module_utils(), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, module: str, name: str, given: bytes) -> tuple[str, Any]:
        """Return how the function ended there: "returned", "raised" or "not carried", and what with."""
        assert self._process.stdin
        assert self._process.stdout
        question = pickle.dumps((dict(os.environ), str(Path.cwd()), module, name, given), 2)
        self._process.stdin.write(len(question).to_bytes(4, "little") + question)
        self._process.stdin.flush()
        size = int.from_bytes(self._process.stdout.read(4), "little")
        # Python 2 does not tell text from bytes.
        how, what = pickle.loads(self._process.stdout.read(size), encoding="utf-8", errors="surrogateescape")
        return how, what


@functools.cache
def agent(version: str) -> Agent:
    """Return the one of this process."""
    return Agent(version)


@dataclass
class _Asking:
    """Only the call of a test is asked, not what it calls."""

    lock: threading.RLock
    busy: bool = False


_asking = _Asking(threading.RLock())


def alike(*names: str, only: Collection[str] = (), but: Collection[str] = ()) -> None:
    """From now on, fail a test whose call of these modules' functions ends otherwise under a Python of nodes.

    `names`: of module_utils, or of a role's files that are findable. `only`: these functions instead of all public
    ones. `but`: not these, which change something, or depend on time; they would do it three times. Call this before
    tests import the functions.
    """
    for name in names:
        found = MODULE_UTILS + name if name.startswith("hal_node.") else name
        if found.startswith(MODULE_UTILS) and str(SHIPPED) not in ansible.module_utils.__path__:
            ansible.module_utils.__path__.append(str(SHIPPED))
        module = importlib.import_module(found)
        own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", "") == found}
        functions = {
            key: value
            for key, value in own.items()
            if type(value) is FunctionType and key[0] != "_" and (key in only if only else key not in but)
        }
        for key, function in functions.items():
            if not hasattr(function, "__wrapped__"):
                setattr(module, key, _asked(module, key, function))
        tables = [vars(module), *(own for key, own in vars(module).items() if type(own) is dict and key[:2] != "__")]
        WHOLE[found] = [(table, key, value) for table in tables for key, value in table.items()]


def _replaced() -> bool:
    """Tell whether a part of a module is not its own."""
    return any(table.get(key) is not value for parts in WHOLE.values() for table, key, value in parts)


def _asked(module: ModuleType, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    left = itertools.count(MOST, -1)

    @functools.wraps(function)
    def call(*arguments: Any, **words: Any) -> Any:
        if _asking.busy or (os.getpid(), os.geteuid()) != US or _replaced() or next(left) <= 0:
            return function(*arguments, **words)
        try:
            given = pickle.dumps((arguments, words), 2)
        except (pickle.PicklingError, TypeError, AttributeError):
            return function(*arguments, **words)
        with _asking.lock:
            _asking.busy = True
            try:
                try:
                    here: tuple[str, Any] = ("returned", function(*arguments, **words))
                except Exception as error:
                    _compare(module.__name__, name, given, ("raised", (type(error).__name__, str(error))), error)
                    raise
                _compare(module.__name__, name, given, here, None)
                return here[1]
            finally:
                _asking.busy = False

    return call


def _compare(module: str, name: str, given: bytes, here: tuple[str, Any], error: Exception | None) -> None:
    expected = _plain(here[1])
    own = error is None or type(error).__module__ == module or type(error).__module__.startswith(MODULE_UTILS)
    for version in NODES:
        how, what = agent(version).ask(module, name, given)
        if how == "not carried":
            continue
        # What Python's own errors say differs.
        found = _plain(what)
        assert how == here[0], f"Python {version}: {name} {how} {found!r}; here it {here[0]} {expected!r}"
        if own:
            assert found == expected, f"Python {version}: {name} {how} {found!r}; here {expected!r}"


def _plain(value: Any) -> Any:
    """Return a value with text for bytes, and what it holds for an object."""
    if isinstance(value, bytes):
        value = value.decode(errors="surrogateescape")
    if isinstance(value, str):
        return PYTHONS_OWN.sub("", value)
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_plain(one) for one in value)
    if isinstance(value, (set, frozenset)):
        return {_plain(one) for one in value}
    if hasattr(value, "__dict__"):
        return type(value).__name__, _plain(vars(value))
    return value
