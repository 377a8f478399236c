"""Filter of the role firewall: its direct rules beside those of others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def hal_firewall_keeping(ours: str, there: str, kept: Iterable[str]) -> str:
    """Return what hal_firewall.shares.keeping returns; AnsibleFilterError where that cannot be told."""
    from hal_firewall.errors import FirewallError
    from hal_firewall.shares import keeping

    try:
        return keeping(ours, there, kept)
    except FirewallError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"hal_firewall_keeping": hal_firewall_keeping}
