"""What a role promises is data that can be read, and proving it changes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import PROJECT, Finding, role_tasks, roles, rule

LOCATION = re.compile(r"^(?P<path>.+?):(?P<line>\d+): (?P<text>.+)$")


@rule
def verify_only_reads(root: Path) -> Iterator[Finding]:
    """tasks/verify.yml calls hal_expect and nothing else, so audit and health check can run it at any time."""
    for role in roles(root):
        calls = [task for task in role_tasks(role) if task.path.name == "verify.yml" and task.module]
        for task in calls:
            if task.module != "hal_expect":
                yield task.finding(f"{task.module} in verify.yml; only hal_expect, which changes nothing", task.module)
        if (role / "tasks" / "verify.yml").is_file() and not any(task.module == "hal_expect" for task in calls):
            yield Finding(role / "tasks" / "verify.yml", 1, "hal_expect is not called; it evaluates expect.yml")


@rule
def every_role_ends_in_verify(root: Path) -> Iterator[Finding]:
    """The last thing tasks/main.yml does is to prove itself."""
    for role in roles(root):
        path = role / "tasks" / "main.yml"
        tasks = [task for task in role_tasks(role) if task.path == path and task.module and not task.outer]
        if path.is_file() and not (tasks and "verify.yml" in str(tasks[-1].arguments)):
            yield Finding(
                path,
                tasks[-1].line if tasks else 1,
                "the last task does not include verify.yml; a rollout ends in its proof",
            )


@rule
def expectations_are_valid(root: Path) -> Iterator[Finding]:
    """Each expect.yml holds entries that hal_expect understands."""
    paths = [role / "expect.yml" for role in roles(root) if (role / "expect.yml").is_file()]
    if not paths:
        return
    check = subprocess.run(
        [sys.executable, "-m", "hal_expect", *map(str, paths)], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if check.returncode == 0:
        return
    lines = [line for line in (check.stdout + check.stderr).splitlines() if line.strip()]
    matches = [(match, line) for line in lines if (match := LOCATION.match(line))]
    if not matches:
        yield Finding(
            paths[0], 1, f"python -m hal_expect ends with {check.returncode}: {lines[-1] if lines else 'no output'}"
        )
    for match, _ in matches:
        where = Path(match["path"])
        yield Finding(where if where.is_absolute() else root / where, int(match["line"]), match["text"])
