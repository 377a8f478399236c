"""Every module and plugin explains itself to ansible-doc, and every filter by the docstring of its function."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, rule, text_lines

# Folder -> ansible-doc's type, and what a plugin of that type documents. Only modules and lookups return something.
KINDS = {
    "modules": ("module", ("DOCUMENTATION", "EXAMPLES", "RETURN")),
    "lookup": ("lookup", ("DOCUMENTATION", "EXAMPLES", "RETURN")),
    "inventory": ("inventory", ("DOCUMENTATION", "EXAMPLES")),
    "callback": ("callback", ("DOCUMENTATION",)),
}


def _plugins(root: Path, kind: str) -> list[Path]:
    return sorted(path for path in (root / "plugins" / kind).glob("*.py") if not path.name.startswith("_"))


LOSES = re.compile(r"\bbasic(?:\.| import .*\b)AnsibleModule\b")


@rule
def documents_itself(root: Path) -> Iterator[Finding]:
    """The strings that ansible-doc reads are there and are not empty."""
    for kind, (_, wanted) in KINDS.items():
        for path in _plugins(root, kind):
            found = {
                target.id: node.value
                for node in ast.parse(path.read_bytes()).body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for name in wanted:
                value = found.get(name)
                if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.strip()):
                    yield Finding(path, 1, f"no {name}; ansible-doc shows it to whoever uses this")


@rule
def actions_have_a_module(root: Path) -> Iterator[Finding]:
    """An action plugin is documented by the module of its name."""
    for path in _plugins(root, "action"):
        if not (root / "plugins" / "modules" / path.name).is_file():
            yield Finding(path, 1, f"no plugins/modules/{path.name}; ansible-doc shows an action by its module")


@rule
def modules_read_all_that_programs_print(root: Path) -> Iterator[Finding]:
    """Code for nodes has the AnsibleModule whose run_command loses nothing: ansible issue 51393."""
    for path in [*_plugins(root, "modules"), *sorted((root / "hal_node").rglob("*.py"))]:
        for number, line in text_lines(path):
            if LOSES.search(line):
                words = "its run_command may lose output; use that of hal_node/run_command.py"
                yield Finding(path, number, words)


@rule
def filters_say_what_they_do(root: Path) -> Iterator[Finding]:
    """The docstring of its function says what a filter does."""
    for path in _plugins(root, "filter"):
        documented = _documented(path)
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                folder = root / node.module.replace(".", "/")
                there = _documented(folder.with_suffix(".py"))
                documented |= {one.asname or one.name for one in node.names if one.name in there}
                for one in node.names:
                    documented |= {
                        f"{one.asname or one.name}.{name}" for name in _documented(folder / f"{one.name}.py")
                    }
        for name, line, value in filters_of(path):
            function = ast.unparse(value)
            if function not in documented:
                yield Finding(path, line, f"filter {name}: {function} has no docstring; say there what it does")


def _documented(path: Path) -> set[str]:
    """Return the functions of a file that have a docstring; none where the file is not the project's."""
    if not path.is_file():
        return set()
    functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if ast.get_docstring(function)}


@rule
def filters_word_their_errors(root: Path) -> Iterator[Finding]:
    """An error of ours is one sentence of the filter: hal_cluster.filters makes it one for each that a file offers."""
    for path in _plugins(root, "filter"):
        for function in _filters_functions(path):
            returned = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
            if not all(
                isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "worded" for node in returned
            ):
                words = "filters() returns what is not worded({...}); an error of ours would end in a traceback"
                yield Finding(path, function.lineno, words)


# Loads the files of its arguments where pydantic cannot be imported, and prints those that want it.
LOADS = """
import importlib.util, sys
import ansible.module_utils, ansible.template
sys.modules["pydantic"] = None
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("loaded", path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ImportError:
        print(path)
"""


@rule
def filters_load_little(root: Path) -> Iterator[Finding]:
    """Each of Ansible's workers loads every filter plugin anew: what checks a model is not among them."""
    paths = [str(path) for path in _plugins(root, "filter")]
    done = subprocess.run([sys.executable, "-c", LOADS, *paths], capture_output=True, text=True, check=True)
    for path in done.stdout.splitlines():
        yield Finding(Path(path), 1, "loads pydantic; import what needs it where a filter is called")


def filters_of(path: Path) -> list[tuple[str, int, ast.expr]]:
    """Names of the filters that a file offers, the lines where it does, and what stands for their functions."""
    return [
        (key.value, key.lineno, value)
        for function in _filters_functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]


def _filters_functions(path: Path) -> list[ast.FunctionDef]:
    """Return the methods in which a file offers filters to Ansible."""
    functions = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)]
    return [function for function in functions if function.name == "filters"]


@rule
def ansible_doc_shows_it(root: Path) -> Iterator[Finding]:
    """ansible-doc can read every plugin: one call for each type."""
    for kind, (type_, _) in KINDS.items():
        paths = _plugins(root, kind)
        if not paths:
            continue
        call = [
            str(Path(sys.executable).with_name("ansible-doc")),
            "--type",
            type_,
            "--json",
            *(path.stem for path in paths),
        ]
        setting = "ANSIBLE_LIBRARY" if kind == "modules" else f"ANSIBLE_{kind.upper()}_PLUGINS"
        # Without the project's configuration: a plugin explains itself wherever it is found.
        environment = {key: value for key, value in os.environ.items() if key != "ANSIBLE_CONFIG"}
        environment |= {setting: str(root / "plugins" / kind), "ANSIBLE_NOCOLOR": "1"}
        done = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=root / "plugins", check=False)
        try:
            shown = json.loads(done.stdout)
        except ValueError:
            shown = {}
        for path in paths:
            document = (shown.get(path.stem) or {}).get("doc") or {}
            reason = (
                " ".join(line for line in done.stderr.splitlines() if path.stem in line) or "no documentation came back"
            )
            if not document.get("short_description"):
                yield Finding(path, 1, f"ansible-doc cannot show it: {reason}")
