"""What the text of a file names: imports, paths, globs, words of ours, roles. Comments and documents are not read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_WORD = re.compile(r"\bhal_\w+(?:\.\w+)*")
_LOOKUP = re.compile(r"\b(?:lookup|query|q)\(\s*['\"](\w+)['\"]")
_PROGRAM = re.compile(r"-m['\",\s]+(hal_\w+(?:\.\w+)*)")
"""python -m hal_cluster.packages, as a line of a shell or an argv."""
_SCRIPT = re.compile(r"^hal-\w+$")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+")
_FILE = re.compile(r"(?<![\w./-])[\w-]+\.(?:cfg|j2|json|py|sh|txt|ya?ml)\b")  # beside the one that names it
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_ROLE = re.compile(r"\b(?:role|name):\s*[\"']?([a-z_0-9]+)")
_ROLES = re.compile(r"\broles:\s*\[([^\]]*)\]")
_ITEM = re.compile(r"^\s*-\s+([a-z_0-9]+)\s*$", re.MULTILINE)
_PLAYS_ROLES = re.compile(r"\b(?:roles?|include_role|import_role|dependencies)\s*:")


@dataclass
class Names:
    """What one file names.

    `imports`: dotted names; of a relative import with its leading dots. `paths`: relative to the file or the tree, also
    globs. `words`: hal_ words, with what follows their dots, and attributes. `programs`: packages that are run.
    `scripts`: the same of console scripts of pyproject.toml. `roles`: words where a play or a task names a role.
    """

    imports: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)

    def read(self, text: str) -> None:
        """Add what stands in a text that is no Python, or in a string of Python."""
        self.words.update(_WORD.findall(text), _LOOKUP.findall(text))
        self.programs.update(_PROGRAM.findall(text))
        self.paths.update(_PATH.findall(text), _FILE.findall(text))


def of_text(text: str) -> Names:
    """What YAML, a template or a script names."""
    text = _COMMENT.sub("", text)
    found = Names()
    found.read(text)
    if _PLAYS_ROLES.search(text):
        found.roles.update(_ROLE.findall(text), _ITEM.findall(text))
        for row in _ROLES.findall(text):
            found.roles.update(re.findall(r"[a-z_0-9]+", row))
    return found


def of_python(text: str) -> Names:
    """What a Python file names, in its code and in its strings; raise SyntaxError as Python does."""
    found, tree = Names(), ast.parse(text)
    unused = {id(part) for node in _unused(tree) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            found.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            glue = "" if base.endswith(".") else "."
            found.imports.update([base, *(f"{base}{glue}{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Attribute):
            found.words.add(node.attr)
        elif isinstance(node, (ast.List, ast.Tuple)) and (run := _run_as_module(node)):
            found.programs.add(run)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            unused.add(id(node.left))  # of a / b / c the whole counts
            parts = _joined(node)
            if set(parts) - {"*"}:
                found.paths.add("/".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.read(node.value)
            if _SCRIPT.match(node.value):  # a console script of pyproject.toml
                found.scripts.update({node.value.replace("-", "_"), f"hal_cluster.{node.value[4:]}"})
    return found


def is_marked(text: str, mark: str) -> bool:
    """Whether a Python file uses a mark of pytest: in its code, not in a string."""
    return mark in text and any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == mark for node in ast.walk(ast.parse(text))
    )


def _unused(tree: ast.Module) -> Iterator[ast.AST]:
    """Documentation, and the folders in which imports are looked for."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Expr(value=ast.Constant()) | ast.Assign(targets=[ast.Name("DOCUMENTATION" | "EXAMPLES" | "RETURN")])
            ):
                yield node
            case ast.Call() if ast.unparse(node.func) in ("sys.path.insert", "sys.path.append"):
                yield node
            case ast.Assign(targets=[ast.Subscript(value=ast.Attribute() as place)]) if (
                ast.unparse(place) == "sys.path"
            ):
                yield node


def _joined(node: ast.expr) -> list[str]:
    """The parts of `PROJECT / "roles" / name / "tasks"` from its last variable's left on: what is known of the path."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = _joined(node.left), node.right
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            return [*left, right.value.strip("/")]
        return [*left, "*"]
    return []


def _run_as_module(node: ast.List | ast.Tuple) -> str:
    """The package of `[sys.executable, "-m", "hal_cluster.packages", ...]`."""
    words = [item.value if isinstance(item, ast.Constant) else None for item in node.elts]
    return str(words[words.index("-m") + 1]) if "-m" in words[:-1] else ""
