"""``hal-audit originals``: what nodes keep from before roles changed it. The nodes are asked: it never leaves them."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.audit.cli import playbook
from hal_cluster.audit.cli.run import check_roles
from hal_cluster.audit.cli.sources import Inventory
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import read_json
from hal_inventory.output import Answer, Table
from hal_inventory.output import show as print_answer
from hal_inventory.printable import one_line
from hal_inventory.ranges import expand_list, fold
from hal_inventory.suggest import did_you_mean

HEADINGS = ("nodes", "what", "roles", "before", "now", "kept")


def originals(options: argparse.Namespace) -> int:
    """Print what is kept; return the exit status, 1 if a node did not answer."""
    check_roles(options.roles)
    nodes = _nodes(options)
    with tempfile.TemporaryDirectory(prefix="hal-audit-") as folder:
        command = [
            playbook.program("ansible"),
            *playbook.arguments(options.sources, "", options.rest),
            ",".join(nodes),
            *("--tree", folder, "-m", "hal_originals", "-a", json.dumps({"state": "listed"})),
        ]
        done = playbook.call(command, {"ANSIBLE_CALLBACKS_ENABLED": ""})
        said = {
            node: _answer(Path(folder) / node, playbook.reason(done.returncode, done.stdout, done.stderr))
            for node in nodes
        }
    kept = {
        node: _of_roles(answer["originals"], options.roles) for node, answer in said.items() if "originals" in answer
    }
    for node in sorted(set(nodes) - set(kept)):
        print(one_line(f"{node}: {said[node].get('msg') or 'it did not answer'}"), file=sys.stderr)
    print_answer(
        Answer(kept, [Table(HEADINGS, rows(kept)) if any(kept.values()) else "Nothing is kept"]),
        as_json=options.as_json,
    )
    return 0 if len(kept) == len(nodes) else 1


def rows(kept: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[list[str]]:
    """Return a row for each thing; nodes on which it is the same are one range."""
    same: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for node, entries in kept.items():
        for entry in entries:
            key = (
                str(entry["thing"]),
                ", ".join(map(str, entry["roles"])) or "-",
                str(entry["was"]),
                str(entry["now"]),
            )
            same.setdefault(key, []).append((node, str(entry["kept_at"])))
    return [
        [fold([node for node, _when in where]), *key, min(when for _node, when in where)]
        for key, where in sorted(same.items())
    ]


def _nodes(options: argparse.Namespace) -> list[str]:
    every = Inventory(options.sources).nodes()
    named = every if options.nodes in ("", "all") else expand_list(options.nodes)
    for node in named:
        if node not in every:
            raise AuditError(f'no node "{node}"{did_you_mean(node, every, kind="nodes")}')
    return sorted(set(named))


def _answer(path: Path, reason: str) -> dict[str, Any]:
    try:
        return read_json(path)
    except AuditError:
        return {"msg": reason}


def _of_roles(entries: Any, roles: Sequence[str]) -> list[dict[str, Any]]:
    every = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [entry for entry in every if not roles or set(roles) & set(entry.get("roles") or ())]
