"""What nodes keep from before the first rollout, and the plan of giving a role back, in lines for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hal_cluster.confirmation import code_of_prints
from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

SHOWN = 40
"""So many lines of one kind are shown; the rest is counted."""


def lost_lines(results: Mapping[str, Mapping[str, Any]], *, check: bool = False) -> list[str]:
    """Return what is changed and cannot be given back, a line each with its nodes.

    `results`: those of module hal_originals with state=kept, by node. Empty if all of it can be given back.
    `check`: also what would be kept. Tasks that decide in the run what they replace are named if there is another line.
    """
    lost = _folded({host: said.get("lost") or [] for host, said in results.items()})
    lines = [f"{nodes}: {words}" for words, nodes in lost]
    counted = {host: [f"{len(said.get('kept') or [])} things would be kept"] for host, said in results.items()}
    if check:
        lines = [f"{nodes}: {words}" for words, nodes in _folded(counted) if words[0] != "0"] + lines
    late = _folded({host: said.get("uncovered") or [] for host, said in results.items()}) if lines else []
    late_lines = [f"{nodes}: {task} decides in the run what it replaces: not kept by now" for task, nodes in late]
    return _cut(lines) + _cut(late_lines)


def plan_of(
    results: Mapping[str, Mapping[str, Any]],
    role: str,
    *,
    changed_ok: bool = False,
    queue: Mapping[str, Any] | None = None,
    unasked_ok: bool = False,
) -> dict[str, Any]:
    """Return {text, code, refused}: what giving back a role does on nodes, and why it is refused.

    `code` confirms exactly this plan, and is empty if nothing is kept; `refused` has lines.

    results     those of module hal_originals with state=planned, by node
    changed_ok  what others changed may be lost
    queue       what squeue said at the node of slurmctld; empty if it was not asked
    unasked_ok  what jobs need may stop although Slurm did not say whether one runs
    """
    if not any(said.get("kept") for said in results.values()):
        nodes = fold(sorted(results))
        return {"text": f"{nodes}: nothing is kept that role {role} replaced", "code": "", "refused": []}
    lines: list[str] = []
    for host, said in results.items():
        if "fingerprint" not in said:
            lines.append(f"{host}: {one_line(str(said.get('msg') or 'it did not answer'))}")
    steps = {host: [f"{thing}: {what}" for thing, what in said.get("steps") or []] for host, said in results.items()}
    lines += [f"{nodes}: {words}" for words, nodes in _folded(steps)] or ["all is as it was"]
    for name, words in (("stays", "stays: "), ("changed_since", "changed by others: ")):
        lines += [f"{nodes}: {words}{line}" for line, nodes in _folded(_by_host(results, name))]
    refused = (
        [f"{nodes}: {line}" for line, nodes in _folded(_by_host(results, "changed_since"))] if not changed_ok else []
    )
    if refused:
        refused[-1] += ": look at it first, because it will be lost; -e giveback_changed_ok=true permits that"
    jobs = {host: [", ".join(said["jobs"])] for host, said in results.items() if said.get("jobs")}
    refused += [f"{nodes}: jobs run there, and {words} would stop: drain it first" for words, nodes in _folded(jobs)]
    serving = {host: [", ".join(said["serving"])] for host, said in results.items() if said.get("serving")}
    why = _in_queue(queue or {}, unasked_ok)
    refused += [f"{nodes}: {words} would stop there, and {why}" for words, nodes in _folded(serving) if why]
    prints = [str(said.get("fingerprint") or said.get("msg") or "") for said in results.values()]
    prints.append(hashlib.sha256(json.dumps([role, changed_ok, unasked_ok]).encode()).hexdigest())
    return {"text": "\n".join(lines), "code": code_of_prints(prints), "refused": refused}


def _in_queue(asked: Mapping[str, Any], unasked_ok: bool) -> str:
    """Return why what jobs need may not stop; '' if Slurm has no job, or there is no Slurm."""
    if asked.get("skipped") or not asked:
        return ""
    if asked.get("rc") != 0:
        said = one_line(str(asked.get("stderr") or asked.get("msg")))
        words = (
            f"Slurm does not say whether jobs run ({said}): make sure that none does, and give giveback_unasked_ok=true"
        )
        return "" if unasked_ok else words
    jobs = str(asked.get("stdout") or "").split()
    words = f"{len(jobs)} jobs run" if len(jobs) != 1 else f"job {one_line(jobs[0])} runs"
    return f"{words}: wait until they end, or end them" if jobs else ""


def _by_host(results: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, list[str]]:
    return {host: list(said.get(name) or []) for host, said in results.items()}


def _folded(said: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return (line, the nodes that say it as a range), in the order in which they were said first."""
    hosts: dict[str, list[str]] = {}
    for host, lines in said.items():
        for line in lines:
            hosts.setdefault(one_line(str(line)), []).append(host)
    return [(line, fold(dict.fromkeys(names))) for line, names in hosts.items()]


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
