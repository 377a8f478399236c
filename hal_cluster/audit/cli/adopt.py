"""``hal-audit adopt``: a record for nodes that were set up by other means. It comes from check mode, after a review."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.audit.cli import playbook
from hal_cluster.audit.cli.sources import Inventory
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import task_title
from hal_cluster.audit.recording import Run
from hal_cluster.audit.store import Store, read_json, write_json
from hal_inventory.output import Answer, Table
from hal_inventory.output import show as print_answer
from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

# What ansible-playbook prints.
TASK = re.compile(r"^TASK \[(.*)\] \**$")
FATAL = re.compile(r"^(?:fatal|failed): \[([^\]\s]+)")
Proposals = Mapping[str, Mapping[str, Any]]


def adopt(options: argparse.Namespace) -> int:
    """Propose, or accept what was proposed; return the exit status."""
    inventory = Inventory(options.sources)
    nodes = inventory.nodes(options.limit)
    if not nodes:
        raise AuditError(f'"{options.limit or "all"}" selects no node')
    stores = {node: inventory.store(node) for node in nodes}
    if options.accept:
        return _accept(options, stores)
    for node, store in stores.items():
        store.proposal(node).unlink(missing_ok=True)
    command = [
        playbook.program("ansible-playbook"),
        *playbook.arguments(options.sources, options.limit, options.rest),
        "--check",
        str(playbook.PROJECT / "playbooks" / "site.yml"),
    ]
    extra = {
        "HAL_PROVENANCE": "propose",
        "ANSIBLE_CALLBACK_PLUGINS": str(playbook.PROJECT / "plugins" / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "hal_printable,hal_preload,hal_provenance,hal_rollout",
    }
    done = playbook.call(command, extra)
    proposals = _proposals(stores)
    if not proposals:
        raise AuditError(f"check mode proposed nothing: {playbook.reason(done.returncode, done.stdout, done.stderr)}")
    silent = sorted(set(nodes) - set(proposals))
    stopped = stops(done.stdout)
    for node, proposal in proposals.items():
        # Nobody knows whether a role in which check mode ended is as declared.
        proposal["stopped"] = sorted(task.partition(" : ")[0] for task, nodes in stopped.items() if node in nodes)
        write_json(stores[node].proposal(node), proposal)
    answer = Answer(dict(proposals), [*_parts(proposals), "\n".join(_closing(proposals, silent, stopped))])
    print_answer(answer, as_json=options.as_json)
    return 0


def spool(proposal: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Return what the node is told: what it has as declared. A role counts as rolled out if all of it is so."""
    whole = {entry["role"] for entry in proposal["adoptable"]} - {entry["role"] for entry in proposal["differs"]}
    whole -= set(proposal.get("stopped") or ())
    roles = {name: role for name, role in proposal["roles"].items() if name in whole}
    return {
        "format": proposal["format"],
        "node": proposal["node"],
        "run": {**run.document(), "commit": proposal["run"].get("commit", "")},
        "entries": proposal["adoptable"],
        "roles": roles,
        "reached": [],
        "skipped": [],
        "windows": [],
        "handled": [],
    }


def _accept(options: argparse.Namespace, stores: Mapping[str, Store]) -> int:
    proposals = {node: proposal for node, proposal in _proposals(stores).items() if proposal["adoptable"]}
    if not proposals:
        raise AuditError("nothing was proposed for these nodes yet: run hal-audit adopt first, and read it")
    run = Run.begin("", time.time())
    for node, proposal in proposals.items():
        write_json(stores[node].spool(run.id, node), spool(proposal, run))
    tree = Path(tempfile.mkdtemp(prefix="hal-audit-"))
    try:
        task = {"run": run.id, "folders": {node: str(stores[node].folder) for node in proposals}}
        command = [
            playbook.program("ansible"),
            *playbook.arguments(options.sources, "", options.rest),
            ",".join(proposals),
            "--tree",
            str(tree),
            "-m",
            "hal_record",
            "-a",
            json.dumps(task),
        ]
        done = playbook.call(command, {"ANSIBLE_CALLBACKS_ENABLED": ""})
        results = {node: _result(tree / node) for node in proposals}
    finally:
        shutil.rmtree(tree)
    good = sorted(
        node for node, result in results.items() if result.get("observed") is not None and not result.get("failed")
    )
    for node in good:
        stores[node].proposal(node).unlink(missing_ok=True)
    for node in sorted(set(proposals) - set(good)):
        stores[node].done(stores[node].spool(run.id, node))
        words = results[node].get("msg") or playbook.reason(done.returncode, done.stdout, done.stderr)
        print(one_line(f"{node}: not recorded: {words}"), file=sys.stderr)
    number = sum(len(proposals[node]["adoptable"]) for node in good)
    if options.as_json:
        sys.stdout.write(json.dumps({"recorded": good, "resources": number}) + "\n")
    elif good:
        print(f"Recorded {number} resources of {len(good)} node{'s' if len(good) > 1 else ''} ({fold(good)})")
    return 0 if len(good) == len(proposals) else 1


def _result(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except AuditError:
        return {}


def _proposals(stores: Mapping[str, Store]) -> dict[str, dict[str, Any]]:
    return {node: read_json(store.proposal(node)) for node, store in stores.items() if store.proposal(node).is_file()}


def stops(text: str) -> dict[str, list[str]]:
    """Return task -> nodes for which a run of ansible-playbook ended there."""
    stopped: dict[str, list[str]] = {}
    task = ""
    for line in text.splitlines():
        heading = TASK.match(line)
        task = heading[1] if heading else task
        fatal = FATAL.match(line)
        if fatal:
            stopped.setdefault(task, []).append(fatal[1])
    return stopped


def _parts(proposals: Proposals) -> list[str | Table]:
    parts: list[str | Table] = []
    for name, title in (
        ("differs", "Not as declared: a rollout changes these"),
        ("adoptable", "As declared: these can be recorded"),
    ):
        gathered: dict[tuple[str, str, str], list[str]] = {}
        for node, proposal in proposals.items():
            for entry in proposal[name]:
                key = (str(entry["role"]), str(entry["resource"]), task_title(str(entry["task"])))
                gathered.setdefault(key, []).append(node)
        rows = [[fold(nodes), *key] for key, nodes in sorted(gathered.items())]
        if rows:
            parts += [title, Table(["nodes", "role", "resource", "task"], rows)]
    return parts


def _closing(proposals: Proposals, silent: Sequence[str], stopped: Mapping[str, Sequence[str]]) -> list[str]:
    adoptable = sum(len(proposal["adoptable"]) for proposal in proposals.values())
    differs = sum(len(proposal["differs"]) for proposal in proposals.values())
    lines = [
        f"{len(proposals)} node{'s' if len(proposals) > 1 else ''}: {adoptable} resources are as declared, {differs}"
        " are not.",
        "Nothing is recorded yet: hal-audit adopt --accept records those that are.",
    ]
    if silent:
        lines.append(f"Nothing could be proposed for {fold(silent)}.")
    lines.extend(
        f'Check mode ended on {fold(nodes)} at "{task}": what comes after it is in no list.'
        for task, nodes in stopped.items()
    )
    return lines
