"""Faults in Python: cosmic-ray's operators, and a statement that is left out, which it has not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import parso.python.tree
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.exception_replacer import ExceptionReplacer
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider

from tests.mutate.mutant import Mutant


class Exceptions(ExceptionReplacer):  # type: ignore[misc]  # cosmic-ray has no types
    """The exceptions that a clause catches, also those with dots in a tuple: cosmic-ray's own ends at these."""

    def mutate(self, node: Any, index: int) -> Any:
        name = self._name_nodes(node)[index]
        if hasattr(name, "value"):
            return super().mutate(node, index)
        first = name.get_first_leaf()
        name.children = [parso.python.tree.Name(CosmicRayTestingException.__name__, first.start_pos, first.prefix)]
        return node


class DropStatement(Operator):  # type: ignore[misc]  # cosmic-ray has no types
    """Leaves out a refusal, a call, or an assignment to what is there already: what follows then works on what was."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and _can_go(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        gone = node.children[0]
        node.children[0] = parso.python.tree.Keyword("pass", gone.start_pos, gone.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("raise OSError", "pass"), Example("x.append(1)", "pass"), Example("x[1] = 2", "pass"))


def _can_go(node: Any) -> bool:
    if node.type == "expr_stmt":  # not a first value: every reader of it would stop
        changed = getattr(node.children[1], "value", "=") != "="
        return changed or (node.children[0].type == "atom_expr" and _function(node) != "__init__")
    return node.type in ("raise_stmt", "atom_expr", "del_stmt") or getattr(node, "value", "") == "raise"


def _function(node: Any) -> str:
    while node and node.type != "funcdef":
        node = node.parent
    return str(node.name.value) if node else ""


def _operators() -> dict[str, Any]:
    """The operators by name; not those that ask which variable is meant."""
    provider = OperatorProvider()
    found = {name: provider[name] for name in provider if not provider[name].arguments()}
    return {**found, "ExceptionReplacer": Exceptions, "DropStatement": DropStatement}


OPERATORS = _operators()


class Python:
    """The faults that a Python file can have, by line."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._places: dict[int, list[tuple[str, int]]] = {}
        nodes = list(ast_nodes(get_ast(text)))
        for name in sorted(OPERATORS):
            operator, occurrence = OPERATORS[name](), 0
            for node in nodes:
                for start, _ in operator.mutation_positions(node):
                    self._places.setdefault(start[0], []).append((name, occurrence))
                    occurrence += 1

    def at(self, line: int) -> list[Mutant]:
        """The faults that begin on this line; without those that change nothing that runs."""
        made = (self._make(line, *place) for place in self._places.get(line, ()))
        return [mutant for mutant in made if mutant]

    def _make(self, line: int, name: str, occurrence: int) -> Mutant | None:
        after = mutate_code(self._text, OPERATORS[name](), occurrence)
        if after is None or not differs(self._text, after):
            return None
        return Mutant(self._path, line, name, self._text, after)


def differs(before: str, after: str) -> bool:
    """Whether it parses, and is another program: types of a function and of a dataclass are read by nobody at work."""
    try:
        return ast.dump(_running(before)) != ast.dump(_running(after))
    except SyntaxError:
        return False


def _running(text: str) -> ast.AST:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            for inner in ast.walk(node):
                if isinstance(inner, ast.AnnAssign):
                    inner.annotation = ast.Constant(None)
        elif isinstance(node, ast.ClassDef) and any("dataclass" in ast.dump(one) for one in node.decorator_list):
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign):
                    inner.annotation = ast.Constant(None)
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree
