"""Every task says what it manages, so that the record of a node is complete and every finding has an owner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hal_cluster.audit.resources import COMMANDS, MANAGING, READ_ONLY, module_name
from tests.contract.project import Finding, Task, load, roles, rule, tasks_in

SAID = "hal_manages"
WORD = re.compile(r"\w+")


@rule
def every_task_is_known_to_the_record(root: Path) -> Iterator[Finding]:
    """A task uses a module whose resources are known, only looks, or says in vars: hal_manages what it manages."""
    for task in _tasks(root):
        module = module_name(task.module)
        said = (task.body.get("vars") or {}).get(SAID)
        if not task.module or module in MANAGING or module in READ_ONLY or said is not None:
            continue
        if module in COMMANDS:
            if task.body.get("changed_when") is not False:
                yield task.finding(
                    f"{task.short}: changed_when: false if it only looks, else {SAID} in its vars, [] for nothing",
                    task.module,
                )
        else:
            yield task.finding(
                f"{task.module}: the record does not know what it manages;"
                " add it to hal_cluster/audit/resources/table.py",
                task.module,
            )


@rule
def what_is_said_can_be_read(root: Path) -> Iterator[Finding]:
    """hal_manages is a list of names "kind:name" or of {resource, declared}, or one template that gives such a list."""
    for task in _tasks(root):
        variables = task.body.get("vars")
        if not isinstance(variables, dict) or SAID not in variables:
            continue
        said = variables[SAID]
        if not (isinstance(said, str) and said.startswith("{{")) and not (
            isinstance(said, list) and all(_is_resource(one) for one in said)
        ):
            yield task.finding(
                f'{SAID}: a list of "kind:name" or of {{resource: "kind:name", declared: {{...}}}}', "vars"
            )


@rule
def what_lasts_for_one_run_is_not_recorded(root: Path) -> Iterator[Finding]:
    """A task at a place that tempfile made says hal_manages: []; an audit would look for it for good."""
    places: dict[Path, set[str]] = {}
    for task in _tasks(root):
        made = places.setdefault(task.path, set())
        if task.short == "tempfile":
            made.add(str(task.keyword("register")))
            continue
        if module_name(task.module) not in MANAGING or (task.body.get("vars") or {}).get(SAID) == []:
            continue
        words = set(WORD.findall(str(task.arguments)))
        yield from (
            task.finding(f"{one} is a place for this run alone: {SAID}: [] in its vars", task.module)
            for one in sorted(made & words)
        )


def _is_resource(one: Any) -> bool:
    if isinstance(one, dict):
        return set(one) <= {"resource", "declared"} and _is_resource(one.get("resource"))
    return isinstance(one, str) and ":" in one.split("{{")[0]


def _tasks(root: Path) -> Iterator[Task]:
    """Tasks of roles; handlers act and own nothing."""
    for role in roles(root):
        for path in sorted(role.glob("tasks/**/*.yml")):
            yield from tasks_in(path, load(path))
