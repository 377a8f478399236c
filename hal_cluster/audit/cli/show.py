"""``hal-audit show``: the record of one node, as the controller has it."""

from __future__ import annotations

import argparse
from typing import Any

from hal_cluster.audit.cli.sources import Inventory
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import task_title
from hal_inventory.output import Answer, Facts, Table
from hal_inventory.output import show as print_answer
from hal_inventory.printable import printable
from hal_inventory.suggest import did_you_mean


def show(options: argparse.Namespace) -> int:
    """Print the record and return the exit status."""
    inventory = Inventory(options.sources)
    nodes = inventory.nodes()
    if options.node not in nodes:
        raise AuditError(f'no node "{options.node}"{did_you_mean(options.node, nodes, kind="nodes")}')
    store = inventory.store(options.node)
    if not store.record(options.node).is_file():
        raise AuditError(f"{options.node} has no record here: it was never rolled out from this controller")
    record = store.read_record(options.node)
    recorded = record.get("entries")
    every = [entry for entry in recorded if isinstance(entry, dict)] if isinstance(recorded, list) else []
    entries = [entry for entry in every if not options.roles or entry.get("role") in options.roles]
    print_answer(Answer({**record, "entries": entries}, [_head(record), _table(entries)]), as_json=options.as_json)
    return 0


def _head(record: dict[str, Any]) -> Facts:
    roles = record.get("roles")
    return Facts(
        [
            ("node", printable(str(record.get("node")))),
            ("recorded", printable(f"{record.get('sealed_at')}, {record.get('serial')} times")),
            ("commit", printable(str(record.get("commit") or "(none)"))),
            ("roles", printable(", ".join(sorted(roles)) if isinstance(roles, dict) else "") or "(none)"),
        ]
    )


def _table(entries: list[dict[str, Any]]) -> Table:
    rows = [
        [
            str(entry.get("resource")) + (" (orphaned)" if entry.get("orphaned") else ""),
            str(entry.get("role")),
            str(entry.get("commit") or ""),
            str(entry.get("converged_at") or ""),
            str(entry.get("source") or ""),
            task_title(str(entry.get("task") or "")),
        ]
        for entry in entries
    ]
    # These are the node's own words, so each cell is cut to the length of a line.
    rows = [[printable(cell) for cell in row] for row in rows]
    return Table(["resource", "role", "commit", "since", "source", "task"], rows)
