"""What of a file can change a run: Python without comments and documentation, YAML without comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import yaml

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_COUNTS = re.compile(r"#!|#.*coding[:=]")
"""A comment that the system or Python reads."""
_READS_ITSELF = "__doc__"
"""A program that prints its docstrings has this word: there they count. Those that another file prints do not."""

_MODULES = "plugins/modules/"
_READ_BY_PEOPLE = ("DOCUMENTATION", "EXAMPLES", "RETURN")
"""Of a module only `ansible-doc` reads them; of other plugins DOCUMENTATION declares options."""

Place = tuple[tuple[int, int], tuple[int, int]]
"""From line and column to line and column: lines begin with 1, columns with 0."""


def meaning(name: str, source: bytes) -> bytes:
    """Return what counts of a file with this name: all of it, where it is of another kind or cannot be parsed."""
    if name.endswith(".py"):
        return _of_python(source, name.startswith(_MODULES))
    return _of_yaml(source) if name.endswith(".yml") else source


def _of_yaml(source: bytes) -> bytes:
    try:
        return "\n".join(map(repr, yaml.parse(source, Loader=yaml.CSafeLoader))).encode()
    except yaml.YAMLError:
        return source


def _of_python(source: bytes, module: bool) -> bytes:
    """Cut out of the text, and not of a syntax tree: any Python gives the same."""
    try:
        text = source.decode("utf-8")
        places = [*_comments(text), *(() if _READS_ITSELF in text else _documents(text, module))]
    except (SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return source
    lines = list(io.StringIO(text))
    for (first, start), (last, end) in sorted(places, reverse=True):
        kept = lines[first - 1][:start].rstrip() + lines[last - 1][end:].lstrip(" \t")
        lines[first - 1 : last] = [kept] if kept.strip() else []
    return "".join(lines).encode()


def _comments(text: str) -> Iterator[Place]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not _COUNTS.match(token.string):
            yield token.start, token.end


def _documents(text: str, module: bool) -> Iterator[Place]:
    """Strings that are statements: behind a `def` or an assignment. Of a module also its documentation."""
    lines = list(io.StringIO(text))

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode())  # ast counts bytes

    tree = ast.parse(text)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, _DOCUMENTED) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str())) if (
                    module and node is tree and name in _READ_BY_PEOPLE and name not in used
                ):
                    pass
                case _:
                    continue
            first, last = statement.lineno, statement.end_lineno or statement.lineno
            start, end = column(first, statement.col_offset), column(last, statement.end_col_offset or 0)
            yield (first, start), (last, end)
