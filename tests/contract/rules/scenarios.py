"""A green scenario has run on its hosts and has looked at them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, Map, load, load_map, plays, rule, scenarios, strings, tasks_in

COUNTED = re.compile(r"(?:groups\b.*|ansible_play_hosts(?:_all)?\b.*)\|\s*(?:length|count)\s*==\s*\S", re.DOTALL)
PARTS = ("hal.yml", "converge.yml")
# Fixtures that reach a node; fixtures built on them do as well.
NODE_FIXTURES = frozenset({"host", "hosts", "node", "nodes"})


@rule
def has_every_part(root: Path) -> Iterator[Finding]:
    """Each scenario has hosts from the model, a converge and tests."""
    for scenario in scenarios(root):
        for part in PARTS:
            if not (scenario / part).is_file():
                yield Finding(scenario, 1, f"no {part}; a scenario has {', '.join(PARTS)} and tests/test_*.py")
        if not list(scenario.glob("tests/test_*.py")):
            yield Finding(scenario, 1, "no tests/test_*.py; a scenario without tests proves nothing")


@rule
def converge_counts_its_hosts(root: Path) -> Iterator[Finding]:
    """The first play of converge.yml stands on localhost, which never goes away, and asserts the number of hosts.

    In a play over the hosts themselves the assert would be skipped together with the play, and molecule be content.
    """
    for scenario in scenarios(root):
        path = scenario / "converge.yml"
        first = _first_play(path)
        if first is None:
            continue
        asserts = [
            text
            for part in ("pre_tasks", "tasks")
            for task in tasks_in(path, first.get(part))
            if task.short == "assert" and isinstance(task.arguments, Map)
            for text in strings(task.arguments.get("that"))
        ]
        if not any(COUNTED.search(text) for text in asserts):
            yield Finding(
                path, 1, "the first play does not assert the number of hosts; that: groups['all'] | length == N"
            )
        elif first.get("hosts") != "localhost":
            yield Finding(
                path, 1, "where no host matches, the assert is skipped as well; count in a first play on localhost"
            )


def _first_play(path: Path) -> Map | None:
    """The first play of a playbook, of the one that it imports first when it begins so."""
    entry = next(iter(load(path) or []), None)
    if isinstance(entry, Map) and "import_playbook" in entry:
        return _first_play(path.parent / str(entry["import_playbook"]))
    return next(plays(path), None)


@rule
def networks_are_apart(root: Path) -> Iterator[Finding]:
    """No two scenarios use one network: they run side by side."""
    owner: dict[str, str] = {}
    for scenario in scenarios(root):
        source = load_map(scenario / "hal.yml")
        networks = source.get("networks")
        if not isinstance(networks, Map):
            if source:
                yield Finding(
                    scenario / "hal.yml", source.line, "no networks; give each network of the model a range of its own"
                )
            continue
        for name, cidr in networks.items():
            if cidr in owner:
                yield Finding(
                    scenario / "hal.yml", networks.at(name), f"{cidr} is also in scenario {owner[cidr]}; choose another"
                )
            owner.setdefault(str(cidr), scenario.name)


@rule
def tests_look_at_nodes(root: Path) -> Iterator[Finding]:
    """Each test asserts something, and each test file asserts on something that was read from a node."""
    for scenario in scenarios(root):
        for path in sorted(scenario.glob("tests/test_*.py")):
            module = ast.parse(path.read_bytes())
            reader = _Reader(module, fixtures_of(scenario))
            tests = [
                node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            ]
            for test in tests:
                if not reader.asserts(test):
                    yield Finding(path, test.lineno, f"{test.name} asserts nothing; a test can fail")
            if not any(reader.asserts_on_a_node(test) for test in tests):
                yield Finding(path, 1, "no test asserts on what it read from a node; ask the running system")


def fixtures_of(scenario: Path) -> frozenset[str]:
    """Fixtures of the scenario's conftest.py that reach a node."""
    path = scenario / "tests" / "conftest.py"
    return _node_fixtures(ast.parse(path.read_bytes()), NODE_FIXTURES) if path.is_file() else NODE_FIXTURES


def _node_fixtures(module: ast.Module, known: frozenset[str]) -> frozenset[str]:
    found = set(known)
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    for _ in functions:  # a fixture may build on one that stands below it
        for function in functions:
            fixture = any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)
            if fixture and found & {argument.arg for argument in function.args.args}:
                found.add(function.name)
    return frozenset(found)


class _Reader:
    """Follows what comes from a node through the assignments of a test."""

    def __init__(self, module: ast.Module, fixtures: frozenset[str]) -> None:
        self.functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        self.fixtures = _node_fixtures(module, fixtures)

    def asserts(self, test: ast.FunctionDef) -> bool:
        """True when the test, or a function of its file that it calls, asserts or expects an error."""
        return any(_is_assert(node) for function in self._with_helpers(test) for node in ast.walk(function))

    def asserts_on_a_node(self, test: ast.FunctionDef) -> bool:
        """True when an assert of the test uses a value that comes from a node."""
        read = self._from_nodes(test)
        for node in ast.walk(test):
            if isinstance(node, ast.Assert) and _names(node) & read:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _names(node) & read:
                helper = self.functions.get(node.func.id)
                if helper is not None and any(_is_assert(inner) for inner in ast.walk(helper)):
                    return True
        return False

    def _with_helpers(self, test: ast.FunctionDef) -> list[ast.FunctionDef]:
        called = [self.functions[name] for name in sorted(_names(test) & set(self.functions)) if name != test.name]
        return [test, *called]

    def _from_nodes(self, test: ast.FunctionDef) -> set[str]:
        read = {argument.arg for argument in test.args.args} & self.fixtures
        while True:
            new = {name for target, value in _bindings(test) if _names(value) & read for name in _names(target)} - read
            if not new:
                return read
            read |= new


def _is_assert(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.raises", "pytest.fail")


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _bindings(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every place that gives names a value: (names, value)."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr


@rule
def playbooks_are_lists_of_plays(root: Path) -> Iterator[Finding]:
    """prepare.yml and converge.yml hold plays: a file of another shape runs nothing."""
    for scenario in scenarios(root):
        for name in ("prepare.yml", "converge.yml"):
            path = scenario / name
            if path.is_file() and not (isinstance(load(path), list) and any("hosts" in play for play in load(path))):
                yield Finding(path, 1, "no play in it; it holds a list of plays with hosts")
