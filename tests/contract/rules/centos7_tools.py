"""Commands of roles, playbooks and node code use only options that CentOS 7's programs have."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from tests.contract.project import (
    PROJECT,
    Finding,
    Map,
    Task,
    load,
    play_tasks,
    playbooks,
    role_tasks,
    roles,
    rule,
    text_of,
)
from tests.contract.rules import centos7_systemd, node_python
from tests.contract.shell import HELD, calls, commands

sys.path.insert(0, str(PROJECT / "molecule" / "virtual_hal"))
from testbed import old_programs

Call = tuple[Path, int, list[str]]
YUM = PROJECT / "tests" / "contract" / "el7" / "yum_program.yml"
MANAGER = re.compile(r"\{\{[^{}]*package_manager\b[^{}]*\}\}")
SHELL_LINE = re.compile(r"^#!.*\b(?:ba|da)?sh\b")
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# The beginning of a list that an expression makes: {{ ['getent', 'hosts'] + names }}.
JINJA_LIST = re.compile(r"\{\{\s*\[(.*?)\]", re.DOTALL)
QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,'\"][^,]*)")
SCRIPT_OF_LOGROTATE = re.compile(r"^\s*(?:pre|post|first|last)(?:rotate|action)\s*$(.*?)^\s*endscript\s*$", re.M | re.S)
CRON_LINE = re.compile(r"^(?:@\w+|[\d*/,-]+(?:\s+[\d*/,a-zA-Z-]+){4})\s+(?:[a-z_][\w-]*\s+)?(\S.*)$", re.M)


@functools.cache
def table() -> dict[str, old_programs.Program]:
    """The programs whose options are known. dnf stands for yum, so what is asked of it must be in yum."""
    yum = old_programs.programs(YUM)
    return {**old_programs.programs(), **yum, "dnf": yum["yum"]}


@functools.cache
def refusal(words: tuple[str, ...]) -> str:
    """What the script that the node image has in front of the program says of this call; '' when it lets it pass."""
    script = table()[words[0]].script("/bin/true", str(old_programs.CHECK))
    shell = shutil.which("sh") or "/bin/sh"
    done = subprocess.run([shell, "-c", script, *words], capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    if done.returncode not in (0, 64, 127):
        raise RuntimeError(f"{' '.join(words)}: {said}")
    # Of a value that only the run knows nothing can be said.
    return "" if HELD in said.rpartition("CentOS 7")[2] else said


@rule
def options_are_those_of_centos_7(root: Path) -> Iterator[Finding]:
    """Every call of a program in the table, in tasks, expectations, scripts, units and node code."""
    for path, line, words in every_call(root):
        if said := refusal(tuple(words)):
            yield Finding(path, line, said)


def every_call(root: Path) -> Iterator[Call]:
    """Path, line and words of every call of a program whose options are known."""
    names = frozenset(table())
    for path, line, words in every_command(root):
        for at, call in calls(words, names, line):
            yield path, at, call


def every_command(root: Path) -> Iterator[Call]:
    """Path, line and words of every call of a program."""
    for role in roles(root):
        for task in role_tasks(role):
            yield from _task(task)
        yield from _expectations(role / "expect.yml")
        for path in sorted([*role.glob("files/**/*"), *role.glob("templates/**/*")]):
            if path.is_file():
                yield from _file(path)
    for playbook in playbooks(root):
        if playbook.is_relative_to(root / "playbooks"):
            for task in play_tasks(playbook):
                yield from _task(task)
    for path, first, text in centos7_systemd.units(root):
        for number, _, name, value in centos7_systemd.directives(text):
            if re.fullmatch(r"Exec\w+", name):
                command = value.lstrip("-@+!:").replace(centos7_systemd.HELD, HELD)
                yield from ((path, first + number - 1, words) for _, words in commands(command))
    for path in node_python.sources(root):
        yield from _python(path)


def _held(text: object) -> str:
    return JINJA.sub(HELD, MANAGER.sub("yum", str(text)))


def _script(path: Path, line: int, text: object) -> Iterator[Call]:
    for at, words in commands(_held(text), line):
        yield path, at, words


def _argv(path: Path, line: int, value: Any) -> Iterator[Call]:
    """A list of words, or an expression that begins with one."""
    if isinstance(value, str):
        inside = JINJA_LIST.match(value.strip())
        words = QUOTED.findall(inside.group(1)) if inside else []
        value = [single or double or HELD for single, double, _ in words]
    if isinstance(value, list) and value:
        yield path, line, [_held(word) for word in value]


def _task(task: Task) -> Iterator[Call]:
    arguments = task.arguments
    fields = arguments if isinstance(arguments, Map) else {}
    line = task.body.at(task.module)
    if task.short in ("command", "hal_command", "shell", "raw"):
        if "argv" in fields:
            yield from _argv(task.path, arguments.at("argv"), fields["argv"])
        else:
            yield from _script(task.path, line, fields.get("cmd", "") if fields else arguments or "")
    elif task.short == "cron" and "job" in fields:
        yield from _script(task.path, arguments.at("job"), fields["job"])
    if "validate" in fields:
        yield from _script(task.path, arguments.at("validate"), fields["validate"])


def _expectations(path: Path) -> Iterator[Call]:
    entries = load(path)
    for entry in entries if isinstance(entries, list) else []:
        command = entry.get("command") if isinstance(entry, Map) else None
        if isinstance(command, Map):
            yield from _argv(path, command.at("argv"), command.get("argv"))


def _file(path: Path) -> Iterator[Call]:
    text = text_of(path)
    if path.suffix == ".sh" or SHELL_LINE.match(text):
        yield from _script(path, 1, text)
        return
    for match in SCRIPT_OF_LOGROTATE.finditer(text):
        yield from _script(path, text.count("\n", 0, match.start(1)) + 1, match.group(1))
    if "cron" in path.name:
        for match in CRON_LINE.finditer(text):
            yield from _script(path, text.count("\n", 0, match.start(1)) + 1, match.group(1))


def _python(path: Path) -> Iterator[Call]:
    """Lists that begin with a program's name, and calls of a function that has it: self.systemctl('stop', unit)."""
    try:
        tree = ast.parse(text_of(path))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            words = [_word(element) for element in node.elts]
            if PurePosixPath(words[0]).name in table() and len(words) > 1:
                yield path, node.lineno, words
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith("ctl") and name in table():
                yield path, node.lineno, [name, *(_word(argument) for argument in node.args)]


def _word(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else HELD
