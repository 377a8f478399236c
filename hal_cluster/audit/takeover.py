"""What a rollout would change on nodes that are not taken over yet, by role: it helps to decide which comes first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from hal_cluster.audit.findings import Finding
from hal_cluster.audit.repairs import is_known
from hal_cluster.audit.roles import ROLES

PERMISSIONS = ("_ok", "_confirm", "_confirmed")
NEW = frozenset({"missing"})
FIRST_SENTENCE = re.compile(r"(.+?\.)(?:\s|$)", re.DOTALL)


def by_role(nodes: Mapping[str, Mapping[str, Any]], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return a summary of each role; the role of which a rollout would change least comes first."""
    roles = {role for node in nodes.values() for role in node.get("planned") or ()}
    roles |= {finding.role for finding in findings if finding.role}
    summaries = [_summary(role, nodes, [finding for finding in findings if finding.role == role]) for role in roles]
    return sorted(
        summaries,
        key=lambda summary: (
            summary["other"] + summary["unread"],
            summary["new"],
            summary["promises"],
            summary["role"],
        ),
    )


def _summary(role: str, nodes: Mapping[str, Mapping[str, Any]], mine: Sequence[Finding]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(int((node.get(name) or {}).get(role, 0)) for node in nodes.values())

    def resources(findings: Iterable[Finding]) -> set[tuple[str, str]]:
        return {(finding.host, finding.resource) for finding in findings}

    declared = [
        finding for finding in mine if finding.cause == "declaration" and not finding.resource.startswith("role:")
    ]
    unknown = resources(finding for finding in mine if finding.status == "unknown")
    unread = resources(finding for finding in declared if finding.status == "unknown")
    new = resources(finding for finding in declared if finding.status == "drift" and finding.kind in NEW)
    other = resources(finding for finding in declared if finding.status == "drift" and finding.kind not in NEW) - new
    promises = [
        finding for finding in mine if finding.resource.startswith("expectation:") and finding.status == "drift"
    ]
    return {
        "role": role,
        "nodes": sorted(
            {host for host, node in nodes.items() if role in (node.get("planned") or ())}
            | {finding.host for finding in mine}
        ),
        "same": max(0, total("planned") - len(new | other | unread)),
        "new": len(new),
        "other": len(other),
        "unknown": len(unknown),
        "unread": len(unread),
        "promises": len(resources(finding for finding in promises if not finding.follows)),
        "in_a_run": total("in_a_run"),
        "permissions": permissions(role),
    }


@cache
def permissions(role: str) -> dict[str, str]:
    """Return the variables that permit a role something dangerous, with the first sentence of their meaning."""
    if not is_known(role):
        return {}
    with (ROLES / role / "meta" / "argument_specs.yml").open("rb") as stream:
        options = yaml.safe_load(stream)["argument_specs"]["main"].get("options") or {}
    return {name: _meaning(option) for name, option in sorted(options.items()) if name.endswith(PERMISSIONS)}


def _meaning(option: Mapping[str, Any]) -> str:
    said = option.get("description") or ""
    words = " ".join(str(said[0] if isinstance(said, list) and said else said).split())
    first = FIRST_SENTENCE.match(words)
    return first[1] if first else words
