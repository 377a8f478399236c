"""The expression language for sets of nodes: ``gpu and not hal[05-06]``, ``login or (compute and not test)``.

``and``, ``or``, ``not``, parentheses, ``all``, names of nodes and groups, node ranges, and comma-separated lists of
them. ``not`` binds closest, then ``and``, then ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from hal_inventory.errors import ExpressionError, RangeError
from hal_inventory.ranges import cut, expand_list, fold_in_order
from hal_inventory.suggest import did_you_mean

MAX_DEPTH = 50

_TOKEN = re.compile(r"\s*(?:([()])|((?:[^\s()\[\]]|\[[^\[\]]*\])+))")


class Names:
    """What an expression may name: nodes, and groups of them. ``present`` are the nodes that a result may contain."""

    def __init__(
        self, nodes: Collection[str], groups: Mapping[str, Collection[str]], present: Collection[str] | None = None
    ) -> None:
        self.nodes = frozenset(nodes)
        self.groups = groups
        self.present = self.nodes if present is None else frozenset(present)

    def resolve(self, word: str) -> frozenset[str]:
        """Return the nodes of one word: ``all``, a group, a node, a range or a list of these."""
        if word == "all":
            return self.present
        if word in self.groups:
            return frozenset(self.groups[word]) & self.present
        if word in self.nodes:
            return self.present & {word}
        try:
            names = expand_list(word)
        except RangeError as error:
            raise ExpressionError(str(error)) from None
        named: set[str] = set()
        unknown: list[str] = []
        for name in names:
            if name in self.groups:
                named |= set(self.groups[name])
            elif name in self.nodes:
                named.add(name)
            elif name == "":
                raise ExpressionError(f'"{word}": a name is missing beside a comma')
            else:
                unknown.append(name)
        if unknown:
            raise self._unknown(list(dict.fromkeys(unknown)))
        return self.present & named

    def _unknown(self, names: Sequence[str]) -> ExpressionError:
        """Return what is said of names that do not exist. Where only zeros are wrong, it has the right names."""
        known = self.nodes | set(self.groups) | {"all"}
        right = {_without_zeros(name): name for name in known}
        meant = [right[_without_zeros(name)] for name in names if _without_zeros(name) in right]
        if len(meant) == len(names):
            hint = f'; did you mean "{cut(fold_in_order(meant))}"?'
        else:
            hint = did_you_mean(names[0], known, kind="names")
        return ExpressionError(f'unknown name{"s" if len(names) > 1 else ""} "{cut(fold_in_order(names))}"{hint}')


def _without_zeros(name: str) -> str:
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", name)


def evaluate(expression: str, names: Names) -> frozenset[str]:
    """Return the nodes that ``expression`` selects; ExpressionError says what is wrong with it."""
    return _Reader(expression, names).result()


def _tokens(expression: str) -> list[str]:
    tokens, at = [], 0
    text = expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f'"{expression}": brackets do not match at "{text[at:].strip()}"')
        tokens.append(match[1] or match[2])
        at = match.end()
    return tokens


class _Reader:
    """A recursive-descent reader that evaluates as it goes."""

    def __init__(self, expression: str, names: Names) -> None:
        self.expression = expression
        self.names = names
        self.tokens = _tokens(expression)
        self.at = 0
        self.depth = 0

    def result(self) -> frozenset[str]:
        if not self.tokens:
            raise ExpressionError("an empty expression; write all for every node")
        nodes = self.either()
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            hint = 'there is no "(" for it' if token == ")" else 'write "and" or "or" before it'
            raise ExpressionError(f'"{self.expression}": "{token}" is not expected here; {hint}')
        return nodes

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def either(self) -> frozenset[str]:
        nodes = self.both()
        while self.peek() == "or":
            self.at += 1
            nodes = nodes | self.both()
        return nodes

    def both(self) -> frozenset[str]:
        nodes = self.single()
        while self.peek() == "and":
            self.at += 1
            nodes = nodes & self.single()
        return nodes

    def single(self) -> frozenset[str]:
        negated = False
        while self.peek() == "not":
            self.at += 1
            negated = not negated
        token = self.peek()
        if token is None or token in ("and", "or", ")"):
            before = f'after "{self.tokens[self.at - 1]}"' if self.at else "at the start"
            raise ExpressionError(f'"{self.expression}": a name is missing {before}')
        self.at += 1
        nodes = self.group() if token == "(" else self.names.resolve(token)
        return self.names.present - nodes if negated else nodes

    def group(self) -> frozenset[str]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"parentheses are nested more than {MAX_DEPTH} deep")
        nodes = self.either()
        if self.peek() != ")":
            raise ExpressionError(f'"{self.expression}": a ")" is missing')
        self.at += 1
        self.depth -= 1
        return nodes


def words(expression: str) -> list[str]:
    """Return the names in an expression, without its operators."""
    return [token for token in _tokens(expression) if token not in ("and", "or", "not", "(", ")")]
