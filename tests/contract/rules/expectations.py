"""What a role promises is data that can be read, and proving it changes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.contract import declared
from tests.contract.project import PROJECT, Finding, role_tasks, roles, rule

# A file that is only at a site's controller, such as a key: what is made of it cannot be worked out here.
UNKNOWN = re.compile(r"undefined|has no attribute|has no element")
ELSEWHERE = re.compile(r"\bis (file|directory|exists)\b")
# What is read of a service, and the argument that has it so.
WORDS = {"running": "state", "enabled": "enabled"}
TRUE = {"started": True, "restarted": True, "stopped": False, True: True, False: False}
LOCATION = re.compile(r"^(?P<path>.+?):(?P<line>\d+): (?P<text>.+)$")


@rule
def verify_only_reads(root: Path) -> Iterator[Finding]:
    """tasks/verify.yml calls hal_expect and nothing else, so audit and health check can run it at any time."""
    for role in roles(root):
        calls = [task for task in role_tasks(role) if task.path.name == "verify.yml" and task.module]
        for task in calls:
            if task.module != "hal_expect":
                yield task.finding(f"{task.module} in verify.yml; only hal_expect, which changes nothing", task.module)
            elif "not ansible_check_mode" not in str(task.keyword("when")):
                yield task.finding("without when: not ansible_check_mode it asks for what check mode did not make")
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
        [sys.executable, "-m", "hal_cluster.expect", *map(str, paths)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if check.returncode == 0:
        return
    lines = [line for line in (check.stdout + check.stderr).splitlines() if line.strip()]
    matches = [(match, line) for line in lines if (match := LOCATION.match(line))]
    if not matches:
        yield Finding(
            paths[0],
            1,
            f"python -m hal_cluster.expect ends with {check.returncode}: {lines[-1] if lines else 'no output'}",
        )
    for match, _ in matches:
        where = Path(match["path"])
        yield Finding(where if where.is_absolute() else root / where, int(match["line"]), match["text"])


@rule
def values_can_be_worked_out(root: Path) -> Iterator[Finding]:
    """Where an expectation applies, its templates name only what the role has: else it is unknown on every node."""
    for one in declared.promised(root):
        if UNKNOWN.search(one.fault):
            part, _, words = one.fault.partition(": ")
            word = re.search(r"'[^']+'(?: object)? (?:is undefined|has no [^.]+)", words)
            yield Finding(one.path, one.line, f"{part}, on {one.host}: {word[0] if word else words}")


@rule
def the_site_is_not_refused(root: Path) -> Iterator[Finding]:
    """What tasks/validate.yml refuses is not what this project's own site declares."""
    for one in declared.refused(root):
        if not ELSEWHERE.search(one.condition):
            yield Finding(one.path, one.line, f"{one.host} of this site is refused: {one.condition}")


@rule
def services_are_promised(root: Path) -> Iterator[Finding]:
    """A unit that a role starts is expected to run, and one that it enables to start at boot; none that it stops."""
    expected: dict[tuple[str, str, str], set[Any]] = defaultdict(set)
    done: dict[tuple[str, str, str], set[Any]] = defaultdict(set)
    for call in declared.of_project(root).calls:
        if call.module.rpartition(".")[2] == "systemd_service" and "name" in call.arguments:
            for read, argument in WORDS.items():
                # None: how it is shows only in a run.
                done[call.role, _unit(call.arguments["name"]), read].add(call.arguments.get(argument))
    for one in declared.promised(root):
        question = one.question or {}
        asked = question.get("service") or {}
        if asked.get("read") in WORDS and "equal" in question:
            key = (one.path.parent.name, _unit(asked["name"]), asked["read"])
            expected[key].add(question["equal"])
            if done[key] and None not in done[key] and question["equal"] not in {TRUE.get(how) for how in done[key]}:
                yield Finding(one.path, one.line, f"{key[1]}: the role does not have it {key[2]}: {question['equal']}")
    for resource in declared.of_project(root).resources:
        for read in WORDS if resource.kind == "service" else ():
            key = (resource.role, resource.key, read)
            # A module of our own can be what starts it.
            managed = {TRUE.get(how) for how in (*done[key], resource.declared.get(WORDS[read]))}
            if True in managed and True not in expected[key]:
                yield resource.finding(f"{resource.key}: no expectation says that it is {read}; add one to expect.yml")


@rule
def packages_are_promised_as_they_are_installed(root: Path) -> Iterator[Finding]:
    """A package that is expected to be installed is not one that the role removes, and the other way round."""
    kept = {(one.role, one.key): not one.absent for one in declared.of_project(root).resources if one.kind == "package"}
    for one in declared.promised(root):
        question = one.question or {}
        asked = question.get("package") or {}
        right = kept.get((one.path.parent.name, str(asked.get("name"))))
        if asked.get("read") == "installed" and right is not None and question.get("equal", right) != right:
            yield Finding(one.path, one.line, f"{asked['name']}: the role does not have it installed: {not right}")


@rule
def files_are_promised_as_they_are_written(root: Path) -> Iterator[Finding]:
    """Owner, group, mode and type that are expected of a file are those that the role gives it."""
    files = {(one.role, one.key): one for one in declared.of_project(root).resources if one.kind == "file"}
    for one in declared.promised(root):
        question = one.question or {}
        asked = question.get("file") or {}
        resource = files.get((one.path.parent.name, str(asked.get("path"))))
        given = resource.declared.get(str(asked.get("read"))) if resource else None
        if given is not None and "equal" in question and question["equal"] != given:
            yield Finding(
                one.path,
                one.line,
                f"{asked['path']}: expected {asked['read']} {question['equal']}, the role gives {given}",
            )


def _unit(name: str) -> str:
    return name if "." in name else f"{name}.service"
