"""The closing step of a run: tell each host what the run did there, and keep a copy of the record that it makes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.callback import CallbackBase
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from hal_cluster.aside import play_aside
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import Store, read_json
from hal_inventory.printable import one_line

# Arguments of hal_record that a spool has.
ARGUMENTS = ("node", "entries", "roles", "reached", "skipped", "windows", "handled")


@dataclass
class Outcome:
    """The outcome: observed resources by host, hosts by what went wrong there, and hosts that the rollout let go."""

    observed: dict[str, int] = field(default_factory=dict)
    problems: dict[str, set[str]] = field(default_factory=dict)
    notes: dict[str, set[str]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)

    def problem(self, reason: str, hosts: Iterable[str]) -> None:
        """Remember a reason for these hosts."""
        self.problems.setdefault(reason, set()).update(hosts)


class Results(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Prints nothing, keeps what hosts answered."""

    def __init__(self, outcome: Outcome) -> None:
        """Answers go to `outcome`."""
        super().__init__()
        self.outcome = outcome
        self.answered: set[str] = set()

    def v2_runner_on_ok(self, result: Any) -> None:
        """The node has stored it."""
        host = result._host.get_name()
        self.answered.add(host)
        self.outcome.observed[host] = int(result._result.get("observed") or 0)
        if result._result.get("released"):
            self.outcome.released.add(host)
        for note in result._result.get("problems") or []:
            self.outcome.notes.setdefault(one_line(str(note)), set()).add(host)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """The node could not store it."""
        self._not_stored(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """The node did not answer."""
        self._not_stored(result)

    def _not_stored(self, result: Any) -> None:
        host = result._host.get_name()
        self.answered.add(host)
        stderr = str(result._result.get("module_stderr") or "").strip().splitlines()[-1:]
        words = " ".join([str(result._result.get("msg") or "no reason given"), *stderr])
        self.outcome.problem(one_line(words), [host])


def seal(
    hosts: Mapping[str, Store],
    run: str,
    logins: Mapping[str, Mapping[str, Any]],
    play: Any,
    passwords: Mapping[str, str],
    rollout: str = "",
) -> Outcome:
    """Give each host its spools, oldest first, in one play for all hosts with the same login.

    `rollout`: the one that holds the hosts, and so lets them go. Connections are those of the run: the same process,
    variables and control sockets.
    """
    outcome = Outcome()
    alike: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for host in hosts:
        login = tuple(sorted((key, value) for key, value in logins.get(host, {}).items()))
        alike.setdefault(login, []).append(host)
    for login, names in alike.items():
        task = {"run": run, "rollout": rollout, "folders": {name: str(hosts[name].folder) for name in names}}
        _play(names, {"hal_record": task, **dict(login)}, play, passwords, outcome)
    return outcome


def _play(names: list[str], task: Mapping[str, Any], play: Any, passwords: Mapping[str, str], outcome: Outcome) -> None:
    results = Results(outcome)
    try:
        play_aside(names, {"name": "Record what was managed", **task}, play, passwords, results)
    except AnsibleError as error:
        outcome.problem(one_line(str(error)), set(names) - results.answered)
        return
    silent = set(names) - results.answered
    if silent:
        outcome.problem("the closing step did not run there", silent)


def requests(store: Store, host: str, run: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return (spool, arguments of hal_record) for everything that a host has not been told, oldest first."""
    calls = []
    for path in store.pending(host, run):
        document = read_json(path)
        missing = [key for key in (*ARGUMENTS, "run") if key not in document]
        if missing:
            raise AuditError(f"{path} has no {missing[0]}: remove it; the next rollout records what it had")
        arguments = {key: document[key] for key in ARGUMENTS}
        calls.append((path, {**arguments, "run": {**document["run"], "now": round(time.time(), 3)}}))
    return calls


def folded(hosts: Iterable[str]) -> str:
    """Hosts as an administrator writes them: hal[01-16],hal-login."""
    names = sorted(hosts)
    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ",".join(names)


def words(outcome: Outcome) -> tuple[list[str], list[str]]:
    """Return (what was done, warnings), a line each."""
    lines = []
    if outcome.observed:
        number, nodes = sum(outcome.observed.values()), len(outcome.observed)
        plural = "s" if nodes > 1 else ""
        lines.append(f"Recorded {number} resources of {nodes} node{plural} ({folded(outcome.observed)})")
    warnings = [f"{folded(hosts)}: not recorded: {reason}" for reason, hosts in sorted(outcome.problems.items())]
    return lines, warnings + [f"{folded(hosts)}: {note}" for note, hosts in sorted(outcome.notes.items())]
