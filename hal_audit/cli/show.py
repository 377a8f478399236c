"""``hal-audit show``: the record of one node, as the controller has it."""

from __future__ import annotations

import argparse
from typing import Any

from hal_audit.cli.sources import Inventory
from hal_audit.errors import AuditError
from hal_audit.findings import task_title
from hal_audit.store import read_json
from hal_inventory.cli.output import Answer, Facts, Table
from hal_inventory.cli.output import show as print_answer
from hal_inventory.suggest import did_you_mean


def show(options: argparse.Namespace) -> int:
    """Print the record and return the exit status."""
    inventory = Inventory(options.sources)
    nodes = inventory.nodes()
    if options.node not in nodes:
        raise AuditError(f'no node "{options.node}"{did_you_mean(options.node, nodes, kind="nodes")}')
    path = inventory.store(options.node).record(options.node)
    if not path.is_file():
        raise AuditError(f"{options.node} has no record here: it was never rolled out from this controller")
    record = read_json(path)
    entries = [one for one in record.get("entries", []) if not options.roles or one.get("role") in options.roles]
    print_answer(Answer({**record, "entries": entries}, [_head(record), _table(entries)]), as_json=options.as_json)
    return 0


def _head(record: dict[str, Any]) -> Facts:
    roles = record.get("roles") or {}
    return Facts(
        [
            ("node", str(record.get("node"))),
            ("recorded", f"{record.get('sealed_at')}, {record.get('serial')} times"),
            ("commit", str(record.get("commit") or "(none)")),
            ("roles", ", ".join(sorted(roles)) or "(none)"),
        ]
    )


def _table(entries: list[dict[str, Any]]) -> Table:
    rows = [
        [
            str(one.get("resource")) + (" (orphaned)" if one.get("orphaned") else ""),
            str(one.get("role")),
            str(one.get("commit") or ""),
            str(one.get("converged_at") or ""),
            str(one.get("source") or ""),
            task_title(str(one.get("task") or "")),
        ]
        for one in entries
    ]
    return Table(["resource", "role", "commit", "since", "source", "task"], rows)
