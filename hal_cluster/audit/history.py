"""What became of each audit: one line of JSON for each in hal_audit_dir/history.jsonl, the oldest first.

It has numbers, nodes and roles. The findings of the last audit are in last.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store, write
from hal_cluster.lock import locked
from hal_inventory.bounded import parsed
from hal_inventory.ranges import fold

MOST = 2000
"""Audits that are kept: more than five years of nights. The oldest go."""

MOST_NAMES = 500
"""Nodes with findings that are kept of one audit. How many more there were is kept, too."""


def entry(document: Mapping[str, Any], roles: Sequence[str] = ()) -> dict[str, Any]:
    """Return what is kept of a document (findings.schema.json); `roles` if only these were asked."""
    findings = [Finding.read(finding) for finding in document["findings"]]
    counts: Mapping[str, Mapping[str, Any]] = document["nodes"]
    wrong = {
        host: [count["drift"], count["unknown"]]
        for host, count in sorted(counts.items())
        if count["drift"] or count["unknown"]
    }
    kept = dict(list(wrong.items())[:MOST_NAMES])
    return {
        "at": document["at"],
        "status": document["status"],
        "inventory": document["inventory"],
        "only": sorted(roles),
        "nodes": fold(counts),
        "wrong": kept,
        "more": len(wrong) - len(kept),
        "roles": sorted({finding.role or "no role" for finding in findings if finding.severity != "warning"}),
        "summary": document["summary"],
    }


def add(store: Store, audit: Mapping[str, Any]) -> None:
    """Keep an entry; AuditError when it cannot be kept, and the file is as it was."""
    path = store.folder / "history.jsonl"
    with locked(store.folder / "history.lock", AuditError, "the history of audits"):
        lines = _lines(path)
        lines.append(json.dumps(audit, sort_keys=True, separators=(",", ":")))
        write(path, "".join(f"{line}\n" for line in lines[-MOST:]).encode())


def read(stores: Iterable[Store]) -> list[dict[str, Any]]:
    """Return the entries of these stores, the oldest first; AuditError names a line that cannot be read."""
    audits: dict[str, dict[str, Any]] = {}
    for path in sorted({store.folder / "history.jsonl" for store in stores}):
        for number, line in enumerate(_lines(path), 1):
            audits[line] = _entry(line, f"{path}:{number}")
    return sorted(audits.values(), key=lambda audit: str(audit["at"]))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise AuditError(f"{path} cannot be read: {error}. Move it away: the next audit begins another") from None


def _entry(line: str, where: str) -> dict[str, Any]:
    wanted = {"at": str, "status": int, "nodes": str, "wrong": dict, "more": int, "roles": list, "summary": dict}
    try:
        audit = parsed(line)
    except ValueError as error:
        raise AuditError(f"{where} cannot be read: {error}. Take the line out") from None
    if not isinstance(audit, dict) or any(not isinstance(audit.get(name), kind) for name, kind in wanted.items()):
        raise AuditError(f"{where} is not of an audit. Take the line out")
    return audit
