"""Secrets have one place, one alias, and are never printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.contract.project import (
    Finding,
    Map,
    Task,
    all_tasks,
    files,
    load_map,
    role_tasks,
    roles,
    rule,
    strings,
    text_lines,
    text_of,
    without_comment,
)

VAULT = re.compile(r"\bvault_[a-z]\w*")
# The last word of a variable that holds a secret. What names a file or an address of one is no secret.
SECRET = re.compile(
    r"\b(?:(?:__)?[a-z]\w*_(?:password|passphrase|secret|token|private_key|munge_key|api_key|credentials)|munge_key)\b"
)
HARMLESS = re.compile(r"^(?:/|https?://|file://|\{\{)|^$")
JINJA = re.compile(r"\{[{%].*?[%}]\}")
CONDITION = re.compile(r"^\s*(?:- )?(?:when|that|changed_when|failed_when|until): (.*)")
PRINTS = ("debug", "fail", "assert")
RENDERS = ("template", "copy", "lineinfile", "blockinfile", "hal_files")
TEMPLATE = re.compile(r"'([^']+\.j2)'")
PRIVATE_KEY = re.compile("-----BEGIN [A-Z ]*PRIVATE" + " KEY-----")


def _variable_files(root: Path) -> list[Path]:
    found = [*(root / "inventory").rglob("*.yml"), *(root / "molecule").glob("*/group_vars/**/*.yml")]
    return sorted(
        {
            *found,
            *(path for role in roles(root) for part in ("defaults", "vars") for path in (role / part).glob("*.yml")),
        }
    )


def _is_vault(path: Path) -> bool:
    return path.stem.startswith("vault") or text_of(path).startswith("$ANSIBLE_VAULT")


@rule
def vault_variables_are_aliased_once(root: Path) -> Iterator[Finding]:
    """A vault_* variable gets the name that tasks know in one place: a role's defaults, or the inventory."""
    seen: dict[tuple[str, str], str] = {}
    # Roles first: what a role's defaults alias is aliased for every site.
    for path in sorted(_variable_files(root), key=lambda path: (path.relative_to(root).parts[0] != "roles", path)):
        if _is_vault(path):
            continue
        kind, site = path.relative_to(root).parts[:2]
        site = "" if kind == "roles" else f"{kind}/{site}"
        for number, line in text_lines(path):
            for name in VAULT.findall(without_comment(line)):
                earlier = seen.get(("", name)) or seen.get((site, name))
                if earlier:
                    yield Finding(path, number, f"{name} is already aliased at {earlier}; use that alias")
                seen.setdefault((site, name), f"{path.relative_to(root)}:{number}")


@rule
def tasks_do_not_know_the_vault(root: Path) -> Iterator[Finding]:
    """Tasks and templates use the alias, so a site may keep its secrets elsewhere. Messages may name the variable."""
    for path in files(root):
        parts = path.relative_to(root).parts
        if parts[0] not in ("roles", "playbooks") or "defaults" in parts or path.suffix == ".md":
            continue
        for number, line in text_lines(path):
            code = without_comment(line)
            evaluated = " ".join(JINJA.findall(code))
            if condition := CONDITION.match(code):
                evaluated += condition.group(1)
            for name in VAULT.findall(evaluated):
                yield Finding(path, number, f"{name} is used here; use the variable that is its alias")


@rule
def secrets_are_not_written_down(root: Path) -> Iterator[Finding]:
    """A variable that holds a secret is an alias of a vault_* variable or is looked up, never a literal."""
    for path in _variable_files(root):
        if _is_vault(path):
            continue
        variables = load_map(path)
        for name, value in variables.items():
            if SECRET.fullmatch(str(name)) and isinstance(value, str) and not HARMLESS.search(value):
                yield Finding(
                    path,
                    variables.at(name),
                    f'{name} is written down; alias "{{{{ vault_{name} }}}}"',
                )
    for path in files(root):
        for number, line in text_lines(path):
            if PRIVATE_KEY.search(line):
                yield Finding(path, number, "a private key is committed; keep it in the vault or in the state folder")


def _secret_names(value: Any) -> set[str]:
    return {name for text in strings(value) for name in SECRET.findall(text)}


def _used(task: Task) -> set[str]:
    """Secret variables that a task's arguments or its template use."""
    arguments = task.arguments
    used = _secret_names(arguments if not isinstance(arguments, Map) else list(arguments.values()))
    used |= (
        _secret_names(task.body.get("vars"))
        | _secret_names(task.body.get("environment"))
        | _secret_names(task.body.get("loop"))
    )
    source = arguments.get("src") if isinstance(arguments, Map) else None
    sources = [source] if isinstance(source, str) and "{{" not in source else []
    for name in [*sources, *(name for text in strings(arguments) for name in TEMPLATE.findall(text))]:
        path = task.path.parents[1] / "templates" / name
        if path.is_file():
            used |= set(SECRET.findall(text_of(path)))
    return used


def _modes(task: Task) -> list[str]:
    """The mode of each file that a task writes."""
    if not isinstance(task.arguments, Map):
        return [""]
    listed = task.arguments.get("files")
    if isinstance(listed, list):
        return [str(one.get("mode", "0644")) for one in listed if isinstance(one, Map)]
    return [str(task.arguments.get("mode", ""))]


@rule
def tasks_with_secrets_are_silent(root: Path) -> Iterator[Finding]:
    """A task that handles a secret has no_log: true; one that writes it to a file has diff: false as well."""
    for task in all_tasks(root):
        if not task.module or task.short in (
            *PRINTS,
            "hal_expect",
            "include_role",
            "import_role",
            "include_tasks",
            "import_tasks",
        ):
            continue
        used = sorted(_used(task))
        if not used:
            continue
        if task.keyword("no_log") is not True:
            yield task.finding(f"uses {', '.join(used)} without no_log: true; its arguments would be in the log")
        if task.short in RENDERS and task.keyword("diff") is not False:
            yield task.finding(f"writes {', '.join(used)} without diff: false; --diff would show it")


@rule
def a_file_with_a_secret_is_not_for_all(root: Path) -> Iterator[Finding]:
    """Its mode, which the task names, gives nothing to other users."""
    for task in all_tasks(root):
        used = sorted(_used(task)) if task.short in RENDERS else []
        for mode in {mode for mode in _modes(task) if used and not mode.endswith("0")}:
            text = f"writes {', '.join(used)} with the mode {mode or 'that umask gives'}"
            yield task.finding(f'{text}: other users may read it; mode: "0600"')


@rule
def no_secret_is_on_a_command_line(root: Path) -> Iterator[Finding]:
    """Every user reads what a program was called with in the list of processes. Its input nobody sees."""
    for task in all_tasks(root):
        if task.short not in ("command", "hal_command", "shell", "raw", "script"):
            continue
        given = task.arguments
        words = [value for key, value in given.items() if key != "stdin"] if isinstance(given, Map) else given
        for name in sorted(_secret_names(words)):
            yield task.finding(f"{name} would be in the list of processes; give it by stdin", task.module)


@rule
def silent_results_are_not_printed(root: Path) -> Iterator[Finding]:
    """What a no_log task registers, and secrets themselves, appear in no message."""
    for role in roles(root):
        tasks = list(role_tasks(role))
        hidden = {
            str(task.body["register"]) for task in tasks if task.keyword("no_log") is True and "register" in task.body
        }
        for task in tasks:
            if task.short not in PRINTS or task.keyword("no_log") is True:
                continue
            said = (
                [task.arguments.get(key) for key in ("msg", "fail_msg", "success_msg", "var")]
                if isinstance(task.arguments, Map)
                else []
            )
            shown = {name for name in hidden for text in strings(said) if re.search(rf"\b{name}\b", text)}
            for name in sorted(shown | _printed_secrets(said)):
                yield task.finding(f"prints {name}, which is secret; say what is wrong without it", task.module)


def _printed_secrets(said: list[Any]) -> set[str]:
    """Secrets inside {{ }} of a message; naming the variable in prose is fine."""
    inside = [part for text in strings(said) for part in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL)]
    return {name for part in inside for name in SECRET.findall(part)}
