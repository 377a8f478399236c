"""A stranger finds the same files in every role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.contract.project import Finding, role_tasks, roles, rule, text_of, without_comment

PARTS = {
    "defaults/main.yml": "the role's public variables, each with its reason",
    "meta/main.yml": "who it is for and what it depends on",
    "meta/argument_specs.yml": "types and meanings of its variables",
    "tasks/main.yml": "what it does",
    "tasks/verify.yml": "the call of hal_expect that proves it",
    "expect.yml": "what must be true on a node, as data",
    "README.md": "its purpose, what it will not do, an example",
}

CALLS = ("import_tasks", "include_tasks")


@rule
def has_every_part(root: Path) -> Iterator[Finding]:
    """Each role has the same parts, so that a stranger finds anything in two guesses: those of PARTS."""
    for role in roles(root):
        for part, meaning in PARTS.items():
            if not (role / part).is_file():
                yield Finding(role, 1, f"no {part}; it holds {meaning}")


@rule
def has_a_scenario(root: Path) -> Iterator[Finding]:
    """Each role is proven by a molecule scenario of its name."""
    for role in roles(root):
        if not (root / "molecule" / role.name / "molecule.yml").is_file():
            yield Finding(
                role, 1, f"no scenario; molecule/{role.name}/molecule.yml with converge.yml and tests/ proves it"
            )


@rule
def templates_say_who_writes_them(root: Path) -> Iterator[Finding]:
    """Whoever opens a file on a node reads at its top that a role writes it, and which."""
    for role in roles(root):
        for path in sorted((role / "templates").glob("*")):
            top = "\n".join(text_of(path).splitlines()[:3])
            if not re.search(rf"Written by (?:Ansible, )?(?:the )?role \W?{role.name}\b", top):
                yield Finding(path, 1, f'its first lines do not say: Written by the role "{role.name}"')


@rule
def every_file_is_used(root: Path) -> Iterator[Finding]:
    """Files of tasks are reached from tasks/main.yml or from a playbook; templates are named by the role."""
    outside = [path for part in ("playbooks", "molecule", "hal_cluster") for path in (root / part).rglob("*.yml")]
    called = "\n".join(text_of(path) for path in outside)
    for role in roles(root):
        reached, new = set(), {"main"}
        new |= {path.stem for path in role.glob("tasks/*.yml") if re.search(rf"tasks_from: {path.stem}\b", called)}
        named = {path.name: [t for t in role_tasks(role) if t.path == path] for path in role.glob("tasks/*.yml")}
        while new:
            reached |= new
            calls = [t for stem in new for t in named.get(f"{stem}.yml", []) if t.short in CALLS]
            new = {stem for t in calls for stem in _stems(role, t.arguments)} - reached
        for path in sorted(role.glob("tasks/*.yml")):
            if path.stem not in reached:
                yield Finding(path, 1, "no task and no playbook comes here; import it, or take it away")
        texts = [path for path in role.rglob("*") if path.is_file() and path.suffix in (".yml", ".j2")]
        lines = "\n".join(without_comment(line) for path in texts for line in text_of(path).splitlines())
        for path in sorted((role / "templates").rglob("*")):
            if path.is_file() and path.name not in lines:
                yield Finding(path, 1, "the role names this file nowhere; use it, or take it away")


def _stems(role: Path, arguments: Any) -> set[str]:
    """The files of tasks that an import leads to; a name with a variable in it can lead to any that fits."""
    name = str(arguments.get("file", "") if isinstance(arguments, dict) else arguments)
    pattern = re.sub(r"{{.*?}}", "*", name)
    return {path.stem for path in role.glob(f"tasks/{pattern}")} if pattern else set()
