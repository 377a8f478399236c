"""Filter of the role firewall: the files of its zones, and its direct rules beside those of others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def hal_firewall_files(zones: Iterable[Mapping[str, Any]], there: str, kept: Iterable[str]) -> list[dict[str, str]]:
    """Return the files of these zones as module hal_files takes them; direct rules beside those of others.

    `zones`: of lookup hal_firewall. AnsibleFilterError where `hal_firewall.shares.keeping` cannot tell what to keep.
    """
    from hal_firewall.errors import FirewallError
    from hal_firewall.shares import FILE, keeping

    kept = list(kept)
    try:
        return [
            {
                "path": f"/etc/firewalld/{zone['path']}",
                "content": keeping(zone["xml"], there, kept) if zone["path"] == FILE else zone["xml"],
            }
            for zone in zones
        ]
    except FirewallError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"hal_firewall_files": hal_firewall_files}
