"""What runs on a node runs under CentOS 7's Python 2.7 and under 3.6.

Both are asked (`compiles_under_both`); the tree of the source shows it by name, and what would behave otherwise. The
scenario molecule/python2 runs all of it under a real 2.7.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

from hal_cluster import programs
from tests.contract.project import Finding, roles, rule, text_of
from tests.unit.interpreters import NODES, interpreter

FUTURE = ("absolute_import", "division", "print_function")
CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
PYTHON_LINE = re.compile(r"^#!.*\bpython")
# Modules that Python 2.7 does not have; importing them inside try: is fine, and typing inside `if MYPY:`.
NEWER = frozenset(
    [
        "asyncio",
        "builtins",
        "configparser",
        "dataclasses",
        "enum",
        "html",
        "http",
        "importlib.metadata",
        "importlib.resources",
        "ipaddress",
        "pathlib",
        "queue",
        "selectors",
        "shlex.join",
        "socketserver",
        "statistics",
        "tomllib",
        "typing",
        "unittest.mock",
        "urllib.error",
        "urllib.parse",
        "urllib.request",
        "winreg",
        "zoneinfo",
    ]
)
SYNTAX: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], str], ...] = (
    (ast.JoinedStr, "an f-string; use % or .format()"),
    (ast.AnnAssign, "an annotation; say the type in the docstring"),
    (ast.Nonlocal, "nonlocal; keep the value in an object or a list"),
    (ast.NamedExpr, ":=; assign on a line of its own"),
    (ast.YieldFrom, "yield from; use a for loop"),
    ((ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await), "async; use plain functions"),
    (ast.Match, "match; use if and elif"),
    (ast.MatMult, "@ as an operator; call a function"),
)


def sources(root: Path) -> list[Path]:
    """Everything in Python that is carried to a node."""
    found = [*(root / "plugins" / "modules").rglob("*.py"), *(root / "hal_node").rglob("*.py")]
    found += (root / "hal_inventory" / "capture").glob("node.py")
    for role in roles(root):
        for path in (role / "files").rglob("*"):
            if path.is_file() and (
                path.suffix == ".py" or PYTHON_LINE.match(path.read_bytes()[:80].decode(errors="replace"))
            ):
                found.append(path)
    return sorted(found)


@rule
def has_the_grammar_of_both(root: Path) -> Iterator[Finding]:
    """No syntax that Python 2.7 or 3.6 does not have."""
    for path in sources(root):
        try:
            tree = ast.parse(text_of(path), feature_version=(3, 6))
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, f"{error.msg}; not in 3.6")
            continue
        for line, text in sorted({*_newer_syntax(tree), *_newer_tokens(text_of(path))}):
            yield Finding(path, line, f"{text}; Python 2.7 has no such thing")


@rule
def begins_alike(root: Path) -> Iterator[Finding]:
    """The first line says utf-8, and strings, division and print are Python 3's."""
    for path in sources(root):
        text = text_of(path)
        if not text.strip():
            continue
        coding = next((match for line in text.splitlines()[:2] if (match := CODING.match(line))), None)
        if coding is None or coding.group(1).lower() != "utf-8":
            yield Finding(path, 1, "no '# -*- coding: utf-8 -*-'; Python 2.7 takes the file for ASCII")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        future = {
            a.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for a in node.names
        }
        if missing := [name for name in FUTURE if name not in future]:
            yield Finding(
                path, 1, f"no 'from __future__ import {', '.join(missing)}'; Python 2.7 would behave otherwise"
            )


@rule
def imports_what_both_have(root: Path) -> Iterator[Finding]:
    """No module that only Python 3 has, unless inside try:. No node runs what is inside `if MYPY:`."""
    for path in sources(root):
        try:
            tree = ast.parse(text_of(path))
        except SyntaxError:
            continue
        guarded = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)}
        guarded |= {id(inner) for node in ast.walk(tree) for inner in _imports_for_mypy(node)}
        for node in ast.walk(tree):
            if id(node) in guarded:
                continue
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            for name in NEWER.intersection(names):
                yield Finding(
                    path,
                    node.lineno,
                    f"import of {name}, which Python 2.7 does not have; import it inside try: with a way out",
                )


def _imports_for_mypy(node: ast.AST) -> list[ast.ImportFrom]:
    """Return imports of typing below `if MYPY:`, which mypy alone takes for true."""
    if not isinstance(node, ast.If) or ast.unparse(node.test) != "MYPY":
        return []
    return [inner for inner in node.body if isinstance(inner, ast.ImportFrom) and inner.module == "typing"]


@rule
def every_module_runs_under_2_7(root: Path) -> Iterator[Finding]:
    """Each module has a case in the scenario python2, where it runs under a real 2.7."""
    for path in sorted((root / "plugins" / "modules").glob("*.py")):
        case = f"molecule/python2/cases/{path.stem}.yml"
        if not (root / case).is_file():
            yield Finding(path, 1, f"no {case}; it runs the module and asserts what it returns")


@rule
def everything_else_runs_under_2_7(root: Path) -> Iterator[Finding]:
    """Each script is run by a case of the scenario python2, and each library is imported by what runs there."""
    cases = "\n".join(text_of(path) for path in sorted((root / "molecule/python2/cases").glob("*.yml")))
    code = {path: text_of(path) for path in sources(root)}
    named = [path for path in code if not path.is_relative_to(root / programs.PACKAGE)]  # others have their names
    modules = {path for path in code if path.parent == root / "plugins" / "modules"}
    ran = modules | {path for path in named if re.search(rf"(?<![\w.-]){re.escape(path.name)}\b", cases)}
    waiting = list(ran)
    while waiting:
        path = waiting.pop()
        reached = {file for file in _imported(root, path, code[path]) if file in code} - ran
        ran |= reached
        waiting += reached
    for path in sorted(set(code) - ran):
        if code[path].strip():
            yield Finding(path, 1, "no case in molecule/python2/cases runs or imports it; write one that does")


def _imported(root: Path, path: Path, text: str) -> set[Path]:
    """The files that it may mean with what it imports: of hal_node, or beside it."""
    name = str(path.relative_to(root)) if path.is_relative_to(root / programs.PACKAGE) else path.name
    try:
        files = list(programs.imported(text, name))
    except SyntaxError:
        return set()
    return {root / file if file.startswith(f"{programs.PACKAGE}/") else path.parent / file for file in files}


# Reads file names from standard input, so that one start of the interpreter is enough.
COMPILE = """
import io, sys
for name in sys.stdin.read().split("\\0"):
    try:
        compile(io.open(name, "rb").read(), name, "exec")
    except SyntaxError as error:
        sys.stdout.write("%s\\0%s\\0%s\\n" % (name, error.lineno or 1, error.msg))
"""


@rule
def compiles_under_both(root: Path) -> Iterator[Finding]:
    """Real ones can read it."""
    paths = sources(root)
    names = "\0".join(map(str, paths))
    for version in NODES if paths else ():
        argv = [interpreter(version), "-c", COMPILE]
        done = subprocess.run(argv, input=names, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, number, text = line.split("\0")
            yield Finding(Path(name), int(number), f"{text}; Python {version} cannot read this")


def _newer_syntax(tree: ast.Module) -> Iterator[tuple[int, str]]:
    slices = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Subscript) for inner in ast.walk(node.slice)}
    future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        for kinds, text in SYNTAX:
            if isinstance(node, kinds):
                yield line, text
        if isinstance(node, ast.Constant) and node.value is Ellipsis and id(node) not in slices:
            yield line, "... as a value; use None or pass"
        if isinstance(node, ast.Assign) and any(ast.unparse(target).endswith(".__doc__") for target in node.targets):
            yield line, "__doc__ that can be set; write a comment, or derive a class with a docstring"
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from _function(node, line)
        elif isinstance(node, ast.ClassDef) and node.keywords:
            yield line, "keywords of a class; use __metaclass__ or a base class"
        elif isinstance(node, ast.Raise) and node.cause is not None:
            yield line, "raise ... from; raise the new error alone"
        elif isinstance(node, ast.Dict) and None in node.keys:
            yield line, "** inside a dict; use dict() and update()"
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)) and any(
            isinstance(item, ast.Starred) for item in node.elts
        ):
            yield line, "* inside a list or on the left of =; use slices and +"
        elif isinstance(node, ast.Call):
            yield from _call(node, line, future)


def _function(node: ast.FunctionDef | ast.Lambda, line: int) -> Iterator[tuple[int, str]]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    if arguments.kwonlyargs:
        yield line, "an argument after *; take it as an ordinary one"
    if arguments.posonlyargs:
        yield line, "/ among arguments; leave it out"
    if any(argument is not None and argument.annotation is not None for argument in every):
        yield line, "an annotation; say the type in the docstring"
    if isinstance(node, ast.FunctionDef):
        if node.returns is not None:
            yield line, "an annotation; say the type in the docstring"
        own = list(_own(node))
        if any(isinstance(inner, ast.Yield) for inner in own):
            for inner in own:
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield inner.lineno, "return with a value in a generator; yield it"


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What belongs to a function itself, not to functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _call(node: ast.Call, line: int, future: bool) -> Iterator[tuple[int, str]]:
    stars = [position for position, argument in enumerate(node.args) if isinstance(argument, ast.Starred)]
    if stars and (len(stars) > 1 or stars[0] != len(node.args) - 1):
        yield line, "an argument after *arguments; add the lists first"
    if sum(keyword.arg is None for keyword in node.keywords) > 1:
        yield line, "** twice in a call; merge the dicts first"
    if isinstance(node.func, ast.Name):
        if node.func.id == "super" and not node.args:
            yield line, "super() without arguments; name the class and self"
        if node.func.id == "print" and not future:
            yield line, "print() as a function; import it from __future__"
        if node.func.id == "open" and any(
            keyword.arg in ("encoding", "newline", "errors") for keyword in node.keywords
        ):
            yield line, "open() with an encoding; use io.open"


def _newer_tokens(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NUMBER and "_" in token.string:
            yield token.start[0], "_ inside a number; write it without"
        if token.type == tokenize.STRING and re.match(r"[rR][bB]", token.string):
            yield token.start[0], "rb before a string; write br"
