"""What a role sets is read by somebody, and what it reads is set by somebody."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hal_inventory.variables import MADE_IN_A_RUN
from tests.contract.project import (
    Finding,
    Task,
    load_map,
    play_tasks,
    playbooks,
    role_tasks,
    roles,
    rule,
    strings,
    text_of,
    without_comment,
)

PRIVATE = re.compile(r"\b__[a-z]\w*")
WORD = re.compile(r"\w+")
READERS = ("tasks/**/*.yml", "handlers/**/*.yml", "vars/**/*.yml", "defaults/**/*.yml", "templates/**/*", "*.yml")
# Who else reads the variables of a role.
OTHERS = ("playbooks/**/*.yml", "plugins/**/*.py", "inventory/**/*.yml", "hal_*/**/*.py")


@rule
def what_is_read_is_set(root: Path) -> Iterator[Finding]:
    """Each private variable in a role's files comes from its vars, a task's vars, a loop, a register or a set_fact."""
    known = {name for role in roles(root) for name, _, _ in _set(role)}
    known |= {name.strip() for role in roles(root) for path in _files(role) for name in _inside(text_of(path))}
    for role in roles(root):
        for path in _files(role):
            seen: set[str] = set()
            for number, line in enumerate(_text(path).splitlines(), 1):
                for name in PRIVATE.findall(line):
                    if name not in known | seen and not name.endswith("__"):
                        seen.add(name)
                        yield Finding(path, number, f"{name} is set nowhere")


@rule
def what_is_set_is_read(root: Path) -> Iterator[Finding]:
    """Each default, each private variable and each registered result is read in another place than where it is set."""
    read: Counter[str] = Counter()
    for role in roles(root):
        for path in _files(role):
            read.update(WORD.findall(_without_names(path)))
    for pattern in OTHERS:
        for path in root.glob(pattern):
            read.update(WORD.findall(text_of(path)) if "/.venv/" not in str(path) else ())
    for role in roles(root):
        for name, path, line in _set(role):
            if not read[name]:
                yield Finding(path, line, f"{name} is read nowhere; take it away, or use it")


@rule
def groups_made_in_a_run_may_have_variables(root: Path) -> Iterator[Finding]:
    """Each group that a playbook makes is in MADE_IN_A_RUN, so that group_vars of that name are not refused."""
    for path in playbooks(root):
        for task in play_tasks(path):
            for name in _groups_made(task):
                if name not in MADE_IN_A_RUN:
                    yield task.finding(
                        f'group "{name}" is in no model; name it in hal_inventory.variables.MADE_IN_A_RUN'
                    )


def _groups_made(task: Task) -> Iterator[str]:
    """The names in a task that makes groups; of an expression those in quotes, each with the text around."""
    key = {"add_host": "groups", "group_by": "key"}.get(task.short)
    for text in strings((task.arguments or {}).get(key, [])) if key else ():
        expressions = re.findall(r"{{.*?}}", text)
        quoted = re.findall(r"'(\w+)'", " ".join(expressions))
        names = [re.sub(r"{{.*?}}", name, text) for name in quoted] if expressions else text.split(",")
        yield from (name.strip() for name in names or [text])


def _inside(text: str) -> list[str]:
    """What Jinja sets itself, and what a template is given."""
    found = re.findall(r"{%-?\s*(?:set|for|macro)\s+([\w, ]+)|'(__\w+)':", text)
    return ",".join(word for words in found for word in words).split(",")


def _files(role: Path) -> list[Path]:
    return sorted({path for pattern in READERS for path in role.glob(pattern) if path.is_file()})


def _set(role: Path) -> Iterator[tuple[str, Path, int]]:
    """(name, file, line) of what a role sets."""
    for path in sorted([*role.glob("defaults/**/*.yml"), *role.glob("vars/**/*.yml")]):
        values = load_map(path)
        yield from ((str(name), path, values.at(name)) for name in values)
    for task in role_tasks(role):
        for name in _names(task):
            yield name, task.path, task.line


def _names(task: Task) -> Iterator[str]:
    body = task.body
    yield from [str(body["register"])] if "register" in body else []
    control = body.get("loop_control") or {}
    yield from (str(control[key]) for key in ("loop_var", "index_var") if key in control)
    given = [body.get("vars"), task.arguments if task.short == "set_fact" else None]
    yield from (str(name) for one in given if isinstance(one, dict) for name in one if str(name).startswith("__"))


def _without_names(path: Path) -> str:
    """The text of a file without the names where they are set."""
    if path.suffix != ".yml":
        return _text(path)
    text = re.sub(r"\b(?:register|loop_var|index_var): *\w+", "", _text(path))
    return re.sub(r"(^|[{,])( *(?:- )?)\w+:(?= |$)", r"\1\2", text, flags=re.M)


def _text(path: Path) -> str:
    """The text of a file, of YAML without comments."""
    text = text_of(path)
    return "\n".join(map(without_comment, text.splitlines())) if path.suffix == ".yml" else text
