"""``hal-audit history``: when the site was clean, and when it was not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hal_cluster.audit import history as kept
from hal_cluster.audit.cli.sources import Inventory
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import CLEAN, DRIFT
from hal_inventory.output import Answer, Table
from hal_inventory.output import show as print_answer
from hal_inventory.ranges import fold
from hal_inventory.suggest import did_you_mean

MOST_ROLES = 4
NOT_KEPT = "not kept"


def history(options: argparse.Namespace) -> int:
    """Print what became of the audits, the newest last; AuditError when there was none."""
    inventory = Inventory(options.sources)
    every = kept.read(inventory.store(node) for node in inventory.nodes())
    if not every:
        raise AuditError("no audit is kept here; hal-audit run makes the first one")
    if options.node:
        every = list(_of_node(every, options.node))
    shown = every[-options.last :]
    parts = [_table(shown, options.node)]
    print_answer(Answer(shown, [*parts, *_left_out(len(every) - len(shown))]), as_json=options.as_json)
    return CLEAN


def _of_node(every: Sequence[Mapping[str, Any]], node: str) -> Iterator[dict[str, Any]]:
    """Yield the audits that looked at a node."""
    seen = {text: _names(text) for text in {str(audit["nodes"]) for audit in every}}
    known = frozenset().union(*seen.values())
    if node not in known:
        raise AuditError(f'no audit looked at a node "{node}"{did_you_mean(node, sorted(known), kind="nodes")}')
    yield from (dict(audit) for audit in every if node in seen[str(audit["nodes"])])


def _names(text: str) -> frozenset[str]:
    from ClusterShell.NodeSet import NodeSet, NodeSetParseError

    try:
        return frozenset(NodeSet(text))
    except NodeSetParseError as error:
        raise AuditError(f"the history of audits has names that are not of nodes: {error}") from None


def _table(shown: Sequence[Mapping[str, Any]], node: str) -> Table:
    numbers = ["differences", "unknown"]
    if node:
        rows = [[_moment(audit), _of(audit, node), *_counts(audit, node), _asked(audit)] for audit in shown]
        return Table(["utc", node, *numbers, "roles asked"], rows, numbers=frozenset(numbers))
    rows = [
        [
            *(_moment(audit), _verdict(int(audit["status"])), str(len(_names(str(audit["nodes"]))))),
            *(str(audit["summary"].get(name, "")) for name in ("drift", "unknown")),
            _where(audit),
            _few([str(role) for role in audit["roles"]]),
            _asked(audit),
        ]
        for audit in shown
    ]
    return Table(
        ["utc", "verdict", "nodes", *numbers, "on", "roles", "roles asked"],
        rows,
        numbers=frozenset({"nodes", *numbers}),
    )


def _moment(audit: Mapping[str, Any]) -> str:
    return str(audit["at"])[:16].replace("T", " ")


def _verdict(status: int) -> str:
    return {CLEAN: "clean", DRIFT: "drift"}.get(status, "not all seen")


def _of(audit: Mapping[str, Any], node: str) -> str:
    """Return the verdict on one node. It is lost for a node that was left out of a long list."""
    if node in audit["wrong"]:
        return _verdict(DRIFT if audit["wrong"][node][0] else -1)
    return NOT_KEPT if audit["more"] else _verdict(CLEAN)


def _counts(audit: Mapping[str, Any], node: str) -> list[str]:
    unknown = ["", ""] if audit["more"] else ["0", "0"]
    return [str(number) for number in audit["wrong"].get(node, unknown)]


def _where(audit: Mapping[str, Any]) -> str:
    more = f" and {audit['more']} more" if audit["more"] else ""
    return fold(audit["wrong"]) + more


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_ROLES} more" if len(names) > MOST_ROLES else ""
    return ", ".join(names[:MOST_ROLES]) + more


def _asked(audit: Mapping[str, Any]) -> str:
    return _few([str(role) for role in audit.get("only") or []]) or "all"


def _left_out(number: int) -> list[str]:
    return [f"{number} earlier audit{'' if number == 1 else 's'}: --last N shows more"] if number > 0 else []
