"""A variable's name says whose it is and whether others may set it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, Map, Task, load_map, role_tasks, roles, rule

# What a role tells its caller; everything else that it sets is private.
RESULTS = ("_declared", "_pending", "_required")
CALLS = ("include_role", "import_role", "include_tasks", "import_tasks")


@rule
def public_variables_carry_the_role(root: Path) -> Iterator[Finding]:
    """Defaults begin with the role's name. Options may also be the site's own hal_ variables."""
    for role in roles(root):
        defaults = role / "defaults" / "main.yml"
        for name in load_map(defaults):
            if not str(name).startswith(f"{role.name}_"):
                yield Finding(
                    defaults,
                    load_map(defaults).at(name),
                    f"{name}; a public variable of this role begins with {role.name}_",
                )
        path = role / "meta" / "argument_specs.yml"
        for entry in (load_map(path).get("argument_specs") or {}).values():
            options = entry.get("options") if isinstance(entry, Map) else None
            if not isinstance(options, Map):
                continue
            for name in options:
                if not str(name).startswith((f"{role.name}_", "hal_")):
                    text = f"{name}; a public variable of this role begins with {role.name}_"
                    yield Finding(path, options.at(name), text)


@rule
def private_variables_carry_the_role(root: Path) -> Iterator[Finding]:
    """What is in vars/, registered, set, looped over or given to one task begins with __<role>_."""
    for role in roles(root):
        for path in sorted((role / "vars").glob("*.yml")):
            for name in load_map(path):
                yield from _private(role, path, load_map(path).at(name), name)
        for task in role_tasks(role):
            yield from _task(role, task)


def _private(role: Path, path: Path, line: int, name: object) -> Iterator[Finding]:
    if not str(name).startswith(f"__{role.name}_"):
        yield Finding(path, line, f"{name}; a private variable of this role begins with __{role.name}_")


def _task(role: Path, task: Task) -> Iterator[Finding]:
    body = task.body
    if isinstance(body.get("register"), str):
        yield from _private(role, task.path, body.at("register"), body["register"])
    control = body.get("loop_control") or {}
    for key in ("loop_var", "index_var", "extended_allitems_var"):
        if isinstance(control, Map) and key in control:
            yield from _private(role, task.path, control.at(key), control[key])
    looped = "loop" in body or any(str(key).startswith("with_") for key in body)
    if task.short in CALLS and looped and "loop_var" not in control:
        yield task.finding(
            f"a loop over included tasks uses item, which their own loops hide; set loop_var: __{role.name}_...", "loop"
        )
    arguments = task.arguments
    if task.short == "set_fact" and isinstance(arguments, Map):
        for name in arguments:
            result = str(name).startswith(f"{role.name}_") and str(name).endswith(RESULTS)
            if name != "cacheable" and not result:
                yield from _private(role, task.path, arguments.at(name), name)
    variables = body.get("vars")
    if isinstance(variables, Map) and task.short not in ("include_role", "import_role"):
        for name in variables:
            # hal_manages is read by the record of what roles manage.
            if not str(name).startswith("ansible_") and name != "hal_manages":
                yield from _private(role, task.path, variables.at(name), name)
