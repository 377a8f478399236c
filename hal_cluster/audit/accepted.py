"""What is right although nobody declares it: audit_accepted and audit_packages_accepted, as a site writes them.

Knows nothing of Ansible. An acceptance that is over no longer counts, and what it covered is a finding again.
"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Accepted
from hal_inventory.suggest import did_you_mean

PATHS, PACKAGES = "audit_accepted", "audit_packages_accepted"
FIELDS: Mapping[str, tuple[str, ...]] = {
    PATHS: ("path", "reason", "until", "nodes", "as_of", "missing"),
    PACKAGES: ("name", "reason", "until", "nodes"),
}
MOMENT = "%Y-%m-%dT%H:%M:%SZ"


def in_force(entries: Iterable[Any], name: str, host: str, today: datetime.date | None = None) -> list[Accepted]:
    """Return what holds on a host today. Raises AuditError for an entry that cannot be used, for any host."""
    return [acceptance for acceptance in _of(entries, name, host) if not _over(acceptance, today)]


def over(entries: Iterable[Any], name: str, host: str, today: datetime.date | None = None) -> list[Accepted]:
    """Return what held on a host until a day that is over."""
    return [acceptance for acceptance in _of(entries, name, host) if _over(acceptance, today)]


def covering(accepted: Sequence[Accepted], path: str, when: int | None = 0) -> Accepted | None:
    """Return the acceptance of a path that was last changed at `when`, 0 if nobody knows; None if there is none.

    One with `as_of` covers the path as it was at that moment, and not what changed later. `when` is None for a path
    that is missing. Nobody knows when it went, so only an acceptance that says `missing` covers it.
    """
    for acceptance in accepted:
        as_it_was = not acceptance.as_of or (acceptance.missing if when is None else when <= moment(acceptance.as_of))
        if fnmatch.fnmatchcase(path, acceptance.pattern) and as_it_was:
            return acceptance
    return None


def moment(text: str) -> float:
    """Return the seconds since the epoch of a moment as acceptances have it. Raises ValueError."""
    return datetime.datetime.strptime(text, MOMENT).replace(tzinfo=datetime.timezone.utc).timestamp()


def day(text: str) -> datetime.date:
    """Return a day as acceptances have it. Raises ValueError."""
    return datetime.datetime.strptime(text, "%Y-%m-%d").date()


def _over(acceptance: Accepted, today: datetime.date | None) -> bool:
    return bool(acceptance.until) and day(acceptance.until) < (today or datetime.date.today())


def _of(entries: Iterable[Any], name: str, host: str) -> list[Accepted]:
    acceptances = []
    for entry in entries:
        accepted, nodes = _read(entry, name)
        if nodes is None or host in nodes:
            acceptances.append(accepted)
    return acceptances


def _read(entry: Any, name: str) -> tuple[Accepted, Any]:
    """Return an entry, and the nodes that it is for; None for all."""
    key = FIELDS[name][0]
    if not isinstance(entry, Mapping) or not entry.get(key) or not entry.get("reason"):
        raise AuditError(f"{name}: each entry needs {key} and reason, unlike {entry!r}")
    where = f"{name}: {entry[key]}"
    for field in entry:
        if field not in FIELDS[name]:
            raise AuditError(f"{where}: no field {field!r}{did_you_mean(str(field), FIELDS[name], kind='fields')}")
    until = str(entry.get("until") or "")  # YAML makes a date of a day without quotes
    as_of = entry.get("as_of") or ""
    as_of = as_of.strftime(MOMENT) if isinstance(as_of, datetime.datetime) else str(as_of)
    try:
        if until:
            day(until)
    except ValueError:
        raise AuditError(f"{where}: until is {until!r}; write the last day on which it holds: 2027-01-31") from None
    try:
        if as_of:
            moment(as_of)
    except ValueError:
        raise AuditError(f"{where}: as_of is {as_of!r}; write a moment, UTC: 2026-11-26T08:00:00Z") from None
    missing = entry.get("missing", False)
    if not isinstance(missing, bool):
        raise AuditError(f"{where}: missing is {missing!r}; write true or false")
    try:
        nodes = NodeSet(str(entry["nodes"]), resolver=RESOLVER_NOGROUP) if entry.get("nodes") else None
    except NodeSetException as error:
        raise AuditError(f"{where}: nodes is {entry['nodes']!r}: {error}") from None
    return Accepted(str(entry[key]), str(entry["reason"]), until, as_of, missing), nodes
