"""Tests from a list: each promise of a role has a fault that breaks it, in `tests/faults.yml` of a scenario.

    - promise: chronyd runs                # id in expect.yml, of one item: "no second daemon sets the clock [ntpd]"
      node: hal01
      plant: systemctl stop chronyd        # a shell command on the node
      undo: systemctl start chronyd

    - promise: slurm.conf cannot be changed by users
      node: hal01
      keep: [/etc/slurm/slurm.conf]        # put back afterwards, or removed if it was not there
      plant: chmod 0666 /etc/slurm/slurm.conf

    - promise: clock is close to its server
      node: hal01
      declared: {time_max_offset_seconds: -1}   # or: the node stays, and what was declared is another thing

    - promise: memory of the model
      node: hal01
      first: cp /root/meminfo /run/ && mount --bind /run/meminfo /proc/meminfo   # what a container does not have
      plant: sed -i s/268435456/251658240/ /run/meminfo
      undo: umount /proc/meminfo

`declared` is above role vars; with `plant` it is so before, too. `role`: where it is not the scenario's.
`finds: unknown`: where the fault keeps the promise from being read; otherwise it has to be *fail*. One fault at a time
is planted, asked for and undone, in the order of the list and in one run of Ansible. Right before, the promise has to
hold: what never fits a container proves nothing. At the end all that held at the beginning holds again.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import strategy
from running.ansible_run import JSON_OUTPUT, of_scenario

NAME = "faults.yml"
FIELDS = {"promise", "role", "node", "keep", "first", "plant", "undo", "declared", "finds"}
FIRST = "{node} at first"
KEPT = "/run/hal-fault.tar"
# Tries, a second apart. Only what does not come takes as many.
BREAKS = 30  # a daemon hears of it first
HOLDS = 90  # daemons and mounts come back
SAVE = f"""for path in {{paths}}; do [ ! -e "$path" ] && [ ! -L "$path" ] || printf '%s\\n' "$path"; done |
  tar --create --absolute-names --xattrs --acls --file {KEPT}.new --files-from -
mv {KEPT}.new {KEPT}
"""
# Nothing is removed, nor planted, that was not saved whole.
SAVED = f"tar --list --absolute-names --file {KEPT} >/dev/null"
PUT_BACK = f"""{SAVED}
rm -rf -- {{paths}}
tar --extract --absolute-names --preserve-permissions --same-owner --xattrs --acls --file {KEPT}
rm {KEPT}
"""

Fault = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What tasks returned: play -> task -> result."""


class File(pytest.File):
    """A list of faults; nothing is planted before its first test runs."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each fault, and one for all promises afterwards."""
        for number, fault in enumerate(self.faults):
            yield Planted.from_parent(self, name=f"{fault['role']}: {fault['promise']} ({number})", number=number)
        yield Undone.from_parent(self, name="all promises hold again")

    @cached_property
    def faults(self) -> Sequence[Fault]:
        """The list; the role of each is said."""
        scenario = self.path.parents[1].name
        faults = [{"role": scenario, **fault} for fault in yaml.safe_load(self.path.read_text(encoding="utf-8"))]
        for fault in faults:
            if not {"promise", "node"} <= set(fault) <= FIELDS or not {"plant", "declared"} & set(fault):
                raise self.CollectError(f"{self.path}: {fault}: has promise, node, plant or declared; {sorted(FIELDS)}")
        return faults

    @cached_property
    def results(self) -> Results:
        """What came of all of them: one run of Ansible."""
        ansible = of_scenario(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as playbook:
            json.dump(list(plays(self.faults)), playbook)
            playbook.flush()
            done = ansible.playbook(playbook.name, environment={**strategy.environment(), **JSON_OUTPUT})
        return results_of(done.stdout)


def results_of(printed: str) -> Results:
    """What Ansible's JSON says; nothing where it has none, so that each test fails and none begins the run again."""
    try:
        played = json.loads(printed[printed.index("{\n") :])["plays"]
        return {
            play["play"]["name"]: {
                task["task"]["name"]: result for task in play["tasks"] for result in task["hosts"].values()
            }
            for play in played
        }
    except (ValueError, KeyError):
        return {"": {"run": {"failed": True, "msg": printed[-2000:]}}}


def plays(faults: Sequence[Fault]) -> Iterator[Mapping[str, Any]]:
    """A look at each node, a play for each fault, and another look at each node."""
    looks = {
        node: list(dict.fromkeys(fault["role"] for fault in faults if fault["node"] == node))
        for node in dict.fromkeys(fault["node"] for fault in faults)
    }
    for node, roles in looks.items():
        look = {"name": "look", "hal_expect": {"roles": roles, "report_only": True}, "register": "at_first"}
        yield _play(FIRST.format(node=node), node, [look])
    for number, fault in enumerate(faults):
        paths = " ".join(map(shlex.quote, fault.get("keep", [])))
        promise = {"role": fault["role"], "limit_ids": [fault["promise"]]}
        declared, saved = fault.get("declared", {}), SAVED if paths else ":"
        tasks = [
            *([_shell("save", SAVE.format(paths=paths))] if paths else []),
            *([_shell("first", f"{saved}\n{fault['first']}")] if "first" in fault else []),
            _ask("before", promise, "(said | unique) == ['pass']", HOLDS, declared if "plant" in fault else {}),
            *([_shell("plant", f"{saved}\n{fault['plant']}")] if "plant" in fault else []),
            _ask("ask", promise, f"'{finds(fault)}' in said", BREAKS, declared),
            *([_shell("put back", PUT_BACK.format(paths=paths))] if paths else []),
            *([_shell("undo", fault["undo"])] if "undo" in fault else []),
        ]
        yield _play(str(number), fault["node"], tasks)
    for node, roles in looks.items():
        again = "said.count('pass') >= at_first.results | selectattr('status', 'eq', 'pass') | length"
        yield _play(node, node, [_ask("look", {"roles": roles}, again, HOLDS)])


def finds(fault: Fault) -> str:
    """What hal_expect is to say of the promise."""
    return str(fault.get("finds", "fail"))


def _ask(
    name: str, what: Mapping[str, Any], until: str, tries: int, declared: Fault | None = None
) -> Mapping[str, Any]:
    return {
        "name": name,
        "hal_expect": {**what, "report_only": True},
        # The task's: a play's variables are below a role's.
        "vars": {**(declared or {}), "said": "{{ asked.results | map(attribute='status') }}"},
        "register": "asked",
        "until": until,
        "retries": tries,
        "delay": 1,
        "ignore_errors": True,  # what is not so is told by its test
    }


def _play(name: str, node: str, tasks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {"name": name, "hosts": node, "gather_facts": False, "tasks": tasks}


def _shell(name: str, command: str) -> Mapping[str, Any]:
    # As it is written: ${#x} of a shell is a comment of a template. What fails is told by its test, the others go on.
    cmd = f"{{% raw %}}set -eu\n{command}{{% endraw %}}"
    return {"name": name, "ansible.builtin.shell": {"cmd": cmd}, "ignore_errors": True}


class Broken(Exception):
    """A test's message, without a traceback of ours."""


class _Item(pytest.Item):
    parent: File

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The message alone."""
        return str(excinfo.value) if excinfo.errisinstance(Broken) else str(super().repr_failure(excinfo, style))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands."""
        return self.path, None, self.name


class Planted(_Item):
    """One fault: it could be planted, the promise noticed it, and it could be undone."""

    def __init__(self, *, number: int, **more: Any) -> None:
        super().__init__(**more)
        self._number = number

    def runtest(self) -> None:
        """Look at what came of it."""
        results = self.parent.results
        if said := unnoticed(self.parent.faults[self._number], results.get("") or results.get(str(self._number), {})):
            raise Broken(said)


class Undone(_Item):
    """Nothing of the faults is left."""

    def runtest(self) -> None:
        """Every promise of every node's roles that held at first."""
        results = self.parent.results
        nodes = dict.fromkeys(fault["node"] for fault in self.parent.faults)
        looks = {
            node: [results.get(name, {}).get("look", {}) for name in (FIRST.format(node=node), node)] for node in nodes
        }
        if wrong := [f"{node}: {line}" for node, (first, last) in looks.items() for line in left(first, last)]:
            raise Broken("\n".join(wrong))


def unnoticed(fault: Fault, tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """Why a fault's tasks prove nothing of its promise; empty when they do."""
    for name, result in tasks.items():
        if result.get("unreachable") or (result.get("failed") and name not in {"before", "ask"}):
            return f"{name} on {fault['node']}: {result.get('stderr') or result.get('msg')}"
    did = fault.get("plant") or f"{fault['declared']} is declared"
    before, after = (tasks.get(name, {}).get("results") or [] for name in ("before", "ask"))
    if {result["status"] for result in before} != {"pass"}:
        return "\n".join([f"{fault['node']}: does not hold before: {did}", *_seen(before)])
    if finds(fault) not in [result["status"] for result in after]:
        return "\n".join([f"{fault['node']}: not {finds(fault)} after: {did}", *_seen(after)])
    return ""


def _seen(results: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    seen = [
        f"{result['id']}: {result['status']}, observed {result['observed']!r} {result['reason']}" for result in results
    ]
    return seen or ["nothing was asked"]


def left(first: Mapping[str, Any], last: Mapping[str, Any]) -> Sequence[str]:
    """What held at first and does not at last, a line each; or that nobody knows."""
    held = _held(first)
    if not held:
        return ["nothing held at first"]
    if last.get("unreachable"):
        return [str(last.get("msg", "was not asked"))]
    gone = held - _held(last)
    return (
        _seen([result for result in last.get("results", []) if (result["role"], result["id"]) in gone]) if gone else []
    )


def _held(look: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Role and id of each promise that holds."""
    return {(result["role"], result["id"]) for result in look.get("results", []) if result["status"] == "pass"}
