"""Filter of the role firewall: the files of its zones, and its direct rules beside those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from hal_inventory.errors import HalError


def hal_firewall_files(zones: Iterable[Mapping[str, Any]], there: str, kept: Iterable[str]) -> list[dict[str, str]]:
    """Return the files of these zones as module hal_files takes them; direct rules beside those of others.

    `zones`: of lookup hal_firewall.
    AnsibleFilterError where `hal_cluster.rules.firewall.shares.keeping` cannot tell what to keep.
    Each file has path and content. They are written in one call, so that firewalld reads all before one is replaced.
    `there`: the direct.xml that the node has, empty where it has none. `kept`: regular expressions over a whole rule of
    others; chains and passthrough elements stay all.
    """
    from hal_cluster.rules.firewall.shares import FILE, keeping

    kept = list(kept)
    try:
        return [
            {
                "path": f"/etc/firewalld/{zone['path']}",
                "content": keeping(zone["xml"], there, kept) if zone["path"] == FILE else zone["xml"],
            }
            for zone in zones
        ]
    except HalError as error:
        raise AnsibleFilterError(str(error)) from None


def hal_firewall_losses(seen: str, declared: Iterable[str], kept: str) -> list[str]:
    """Return what would go or be closed, a line each, from what the role's script look.sh printed.

    AnsibleFilterError where that is not whole: see `hal_cluster.rules.firewall.there`.
    What would go are services, rules, zones and ports. `declared`: lines of the script `open` that will be in force.
    `kept`: a regular expression over whole lines that others may have.
    """
    from hal_cluster.rules.firewall.there import look, losses

    try:
        return losses(look(seen), declared, kept)
    except HalError as error:
        raise AnsibleFilterError(str(error)) from None


def hal_firewall_unread(seen: str) -> list[str]:
    """Return a sentence for each thing of firewalld that look.sh could not read; AnsibleFilterError as for losses.

    Such are files that are not whole, and what firewalld has in force where it does not say so.
    """
    from hal_cluster.rules.firewall.there import look, unread

    try:
        return unread(look(seen))
    except HalError as error:
        raise AnsibleFilterError(str(error)) from None


def hal_firewall_seen(seen: str, name: str) -> list[str]:
    """Return the lines of one section of what look.sh printed; AnsibleFilterError where it is not there."""
    from hal_cluster.rules.firewall.there import look

    try:
        return list(look(seen).of(name))
    except HalError as error:
        raise AnsibleFilterError(str(error)) from None


def hal_firewall_said(lines: Iterable[str]) -> str:
    """Return such lines for a message: the first ones, each cut, and how many more.

    `lines`: of hal_firewall_losses. The text is one printable line.
    """
    from hal_inventory.printable import few

    return few(lines, 20)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_firewall_files": hal_firewall_files,
            "hal_firewall_losses": hal_firewall_losses,
            "hal_firewall_unread": hal_firewall_unread,
            "hal_firewall_seen": hal_firewall_seen,
            "hal_firewall_said": hal_firewall_said,
        }
