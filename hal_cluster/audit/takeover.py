"""What a rollout would change on nodes that are not taken over yet, by role: for who decides which role comes first."""

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
    """Return a summary of each role, that of which a rollout would change least first."""
    roles = {role for node in nodes.values() for role in node.get("planned") or ()}
    roles |= {one.role for one in findings if one.role}
    found = [_summary(role, nodes, [one for one in findings if one.role == role]) for role in roles]
    return sorted(found, key=lambda one: (one["other"] + one["unread"], one["new"], one["promises"], one["role"]))


def _summary(role: str, nodes: Mapping[str, Mapping[str, Any]], mine: Sequence[Finding]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(int((node.get(name) or {}).get(role, 0)) for node in nodes.values())

    def resources(found: Iterable[Finding]) -> set[tuple[str, str]]:
        return {(one.host, one.resource) for one in found}

    declared = [one for one in mine if one.cause == "declaration" and not one.resource.startswith("role:")]
    unknown = resources(one for one in mine if one.status == "unknown")
    unread = resources(one for one in declared if one.status == "unknown")
    new = resources(one for one in declared if one.status == "drift" and one.kind in NEW)
    other = resources(one for one in declared if one.status == "drift" and one.kind not in NEW) - new
    promises = [one for one in mine if one.resource.startswith("expectation:") and one.status == "drift"]
    return {
        "role": role,
        "nodes": sorted(
            {host for host, node in nodes.items() if role in (node.get("planned") or ())} | {one.host for one in mine}
        ),
        "same": max(0, total("planned") - len(new | other | unread)),
        "new": len(new),
        "other": len(other),
        "unknown": len(unknown),
        "unread": len(unread),
        "promises": len(resources(one for one in promises if not one.follows)),
        "in_a_run": total("in_a_run"),
        "permissions": permissions(role),
    }


@cache
def permissions(role: str) -> dict[str, str]:
    """Return the variables by which a role is permitted what is dangerous, with the first sentence of their meaning."""
    if not is_known(role):
        return {}
    with (ROLES / role / "meta" / "argument_specs.yml").open("rb") as stream:
        options = yaml.safe_load(stream)["argument_specs"]["main"].get("options") or {}
    return {name: _meaning(one) for name, one in sorted(options.items()) if name.endswith(PERMISSIONS)}


def _meaning(option: Mapping[str, Any]) -> str:
    said = option.get("description") or ""
    words = " ".join(str(said[0] if isinstance(said, list) and said else said).split())
    first = FIRST_SENTENCE.match(words)
    return first[1] if first else words
