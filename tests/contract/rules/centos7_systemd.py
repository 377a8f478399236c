"""Units, drop-ins and timers, as systemd 219 of CentOS 7.7 reads them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.contract.project import PROJECT, Finding, Map, Task, play_tasks, playbooks, role_tasks, roles, rule, text_of

TABLE = PROJECT / "tests" / "contract" / "el7" / "systemd_219.yml"
UNIT_FILE = re.compile(r"\.(?:service|socket|timer|path|mount|automount|swap|slice|target|scope)(?:\.j2)?$")
TEXT_FILES = (".j2", ".conf", ".service", ".socket", ".timer", ".path", ".mount", ".automount", ".slice", ".target")
JINJA_BLOCK = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
JINJA_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
HELD = "\0"  # where a template's value was: nothing is said of it
SECTION = re.compile(r"^\[([^\]]+)\]\s*$")
DIRECTIVE = re.compile(r"^\s*([^=\s]+)\s*=\s*(.*)$")
SPECIFIER = re.compile(r"%(.)")
BOOLEANS = frozenset(["yes", "no", "true", "false", "on", "off", "1", "0"])
# Sections that only a unit has: a file with one of them is a unit, whatever its name.
OF_UNITS = frozenset(["Unit", "Service", "Socket", "Timer", "Mount", "Automount", "Swap", "Slice", "Scope", "Install"])
SYSTEMD = "systemd 219 (CentOS 7)"


@dataclass(frozen=True)
class Known:
    """What systemd 219 reads."""

    sections: dict[str, frozenset[str]]
    values: dict[str, frozenset[str]]
    specifiers: frozenset[str]
    exec_prefixes: str


@functools.cache
def known() -> Known:
    """The table, with what was backported."""
    table: dict[str, Any] = yaml.safe_load(TABLE.read_text())
    sections = {
        name: frozenset([*text.split(), *table["backported"].get(name, "").split()])
        for name, text in table["sections"].items()
    }
    return Known(
        sections,
        {name: frozenset(text.split()) for name, text in table["values"].items()},
        frozenset(table["specifiers"].split()),
        table["exec_prefixes"],
    )


def units(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Every unit and drop-in that roles and playbooks write: path, first line, text."""
    for role in roles(root):
        for path in sorted([*role.glob("templates/**/*"), *role.glob("files/**/*")]):
            if path.is_file() and path.suffix in TEXT_FILES and is_unit(path.name, text_of(path)):
                yield path, 1, text_of(path)
        yield from _written_in_tasks(role_tasks(role))
    for playbook in playbooks(root):
        if playbook.is_relative_to(root / "playbooks"):
            yield from _written_in_tasks(play_tasks(playbook))


def is_unit(name: str, text: str) -> bool:
    """By its name, or by the sections it has."""
    found = {match.group(1) for line in text.splitlines() if (match := SECTION.match(line))}
    return bool(UNIT_FILE.search(name)) or bool(found & OF_UNITS)


def _written_in_tasks(tasks: Iterator[Task]) -> Iterator[tuple[Path, int, str]]:
    for task in tasks:
        arguments = task.arguments
        if task.short not in ("copy", "blockinfile", "hal_files") or not isinstance(arguments, Map):
            continue
        listed = arguments.get("files")
        for one in (arguments, *(listed if isinstance(listed, list) else ())):
            text = one.get("content", one.get("block")) if isinstance(one, Map) else None
            if isinstance(text, str) and is_unit("", text):
                yield task.path, one.at("content" if "content" in one else "block") + 1, text


def plain(text: str) -> str:
    """A template without Jinja, line for line."""

    def emptied(filler: str) -> Any:
        return lambda match: filler + "\n" * match.group().count("\n")

    return JINJA_VALUE.sub(emptied(HELD), JINJA_BLOCK.sub(emptied(""), text))


def directives(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, section, name and value; continued lines are joined."""
    section, joined, start = "", "", 0
    for number, line in enumerate(plain(text).splitlines(), 1):
        if not joined and (not line.strip() or line.lstrip().startswith(("#", ";"))):
            continue
        start = start if joined else number
        joined += line
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        if match := SECTION.match(joined):
            section = match.group(1)
        elif match := DIRECTIVE.match(joined):
            yield start, section, match.group(1), match.group(2).strip()
        joined = ""


@rule
def directives_are_those_of_219(root: Path) -> Iterator[Finding]:
    """Each section and each directive in it was there in systemd 219."""
    for path, first, text in units(root):
        for line, section, name, _ in directives(text):
            at = first + line - 1
            if section.startswith("X-") or HELD in name:
                continue
            if section not in known().sections:
                yield Finding(path, at, f"[{section}] is no section that {SYSTEMD} reads")
            elif name not in known().sections[section]:
                elsewhere = sorted(other for other, names in known().sections.items() if name in names)
                instead = f"; it belongs to [{elsewhere[0]}]" if elsewhere else ""
                yield Finding(path, at, f"{name}= in [{section}]: not in {SYSTEMD}{instead}")


@rule
def values_are_those_of_219(root: Path) -> Iterator[Finding]:
    """Values, specifiers and programs are written as systemd 219 understands them."""
    for path, first, text in units(root):
        for line, section, name, value in directives(text):
            if section in known().sections:
                for found in _value(name, value):
                    yield Finding(path, first + line - 1, f"{name}={value.replace(HELD, '...')}: {found}")


def _value(name: str, value: str) -> Iterator[str]:
    table = known()
    allowed = table.values.get(name)
    boolean = allowed is not None and "yes" in allowed and value in BOOLEANS
    if allowed and value and HELD not in value and value not in allowed and not boolean:
        yield f"{SYSTEMD} knows {', '.join(sorted(allowed))}"
    for letter in SPECIFIER.findall(value.replace("%%", "")):
        if letter.isalpha() and letter not in table.specifiers:
            yield f"%{letter} is not in {SYSTEMD}"
    if re.fullmatch(r"Exec\w+", name) and value:
        program = value.lstrip(table.exec_prefixes)
        if program[0] in "+!:":
            yield f"{program[0]} before a program is not in {SYSTEMD}"
        elif program[0] not in "/%" + HELD:
            yield f"{SYSTEMD} wants the program's whole path"
