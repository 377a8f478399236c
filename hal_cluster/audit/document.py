"""The result of an audit over all nodes: the JSON document, and what only shows when nodes are compared."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.audit import repairs, takeover
from hal_cluster.audit.findings import ASIDE, Finding, exit_status, order, unreadable
from hal_inventory.ranges import fold

FORMAT = 1


@dataclass
class Audit:
    """Filled while nodes answer."""

    inventory: list[str] = field(default_factory=list)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    # Groups whose nodes must have the same versions: [("login", "compute")].
    in_step: set[tuple[str, ...]] = field(default_factory=set)
    options: str = ""
    # Whether nodes were looked at that are still to be taken over.
    takeover: bool = False

    def add(self, host: str, payload: Mapping[str, Any]) -> None:
        """Take over what the action says of a host."""
        self.nodes[host] = dict(payload.get("node") or {})
        self.takeover = self.takeover or payload.get("takeover") is True
        self.findings.extend(Finding.read(finding) for finding in payload.get("findings") or [])
        self.in_step.update(tuple(groups) for groups in payload.get("in_step") or [])

    def lost(self, finding: Finding) -> None:
        """A node that gave no answer."""
        self.nodes.setdefault(finding.host, {"roles": []})
        self.findings.append(finding)

    def document(self, seconds: float, now: datetime.datetime | None = None) -> dict[str, Any]:
        """Return the document. A node that was expected and did not answer is a finding."""
        for host in self.expected:
            if host not in self.nodes:
                self.lost(unreadable(host, "it was not looked at: the audit ended before that"))
        if not self.nodes:
            words = "nothing was checked: no node was looked at"
            self.findings.append(Finding("", "nothing-checked", "audit", "unknown", summary=words))
        findings = [*self.findings, *self.out_of_step()]
        # Before a takeover nothing is to be repaired: a person decides what comes first.
        findings = (
            findings
            if self.takeover
            else [
                repairs.with_repair(finding, self.limit([finding.host]) if finding.host else "all", self.options)
                for finding in findings
            ]
        )
        findings.sort(key=order)
        moment = (now or datetime.datetime.now(datetime.timezone.utc)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            **({"takeover": takeover.by_role(self.nodes, findings)} if self.takeover else {}),
            "format": FORMAT,
            "at": moment,
            "inventory": self.inventory,
            "options": self.options,
            "groups": {name: sorted(hosts) for name, hosts in sorted(self.groups.items())},
            "status": exit_status(findings, len(self.nodes)),
            "summary": {**self._summary(findings), "seconds": round(seconds, 1)},
            "nodes": {host: _counts(host, self.nodes[host], findings) for host in sorted(self.nodes)},
            "findings": [finding.document() for finding in findings],
        }

    def limit(self, hosts: Iterable[str]) -> str:
        """Return what --limit takes."""
        return limit(hosts, self.groups)

    def out_of_step(self) -> list[Finding]:
        """Return the packages whose versions differ between nodes that must be in step."""
        return [finding for groups in sorted(self.in_step) for finding in self._differing(groups)]

    def _differing(self, groups: tuple[str, ...]) -> Iterable[Finding]:
        versions: dict[str, dict[str, list[str]]] = {}
        seen: dict[str, set[str]] = {}
        for host, node in self.nodes.items():
            member = [name for name in groups if host in self.groups.get(name, ())]
            for package, version in (node.get("software") or {}).items() if member else ():
                # Nodes may be of two architectures; that is not a difference.
                bare = " ".join(sorted({build.rpartition(".")[0] or build for build in str(version).split()}))
                versions.setdefault(package, {}).setdefault(bare, []).append(host)
                seen.setdefault(package, set()).update(member)
        for package, hosts in sorted(versions.items()):
            if len(hosts) > 1 and len(seen[package]) > 1:
                words = "; ".join(f"{version} on {fold(names)}" for version, names in sorted(hosts.items()))
                yield Finding(
                    *("", "out-of-step", f"package:{package}", "drift", ""),
                    summary=f"{' and '.join(groups)} nodes must have the same version",
                    is_=words,
                )

    def _summary(self, findings: Sequence[Finding]) -> dict[str, int]:
        def total(name: str) -> int:
            return sum(int(node.get(name) or 0) for node in self.nodes.values())

        return {
            "nodes": len(self.nodes),
            "resources": total("resources"),
            "expectations": total("expectations"),
            "watched_files": total("watched_files"),
            "drift": differences(findings),
            "unknown": sum(finding.status == "unknown" for finding in findings),
            "warnings": sum(finding.severity == "warning" and finding.status != ASIDE for finding in findings),
            "aside": sum(finding.status == ASIDE for finding in findings),
        }


def differences(findings: Iterable[Finding]) -> int:
    """How many things differ. What follows from another finding is not counted again."""
    return sum(finding.status == "drift" and not finding.follows for finding in findings)


def limit(hosts: Iterable[str], groups: Mapping[str, Sequence[str]]) -> str:
    """Return a pattern of Ansible for these hosts: a group if there is one, else their names.

    Not a range: Ansible takes hal[03-07] for a part of a group hal.
    """
    names = sorted(set(hosts))
    if len(names) > 2:
        same = [name for name, members in groups.items() if sorted(members) == names]
        if same:
            return min(same, key=lambda name: (name != "all", len(name), name))
    return ",".join(names)


def _counts(host: str, node: Mapping[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    kept = {name: value for name, value in node.items() if name != "software"}
    mine = [finding for finding in findings if finding.host == host]
    return {
        **kept,
        "drift": differences(mine),
        "unknown": sum(finding.status == "unknown" for finding in mine),
    }
