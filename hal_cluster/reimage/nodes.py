"""Nodes by ssh: which host key one shows, and since when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.first_contact import shown
from hal_cluster.certificates.keygen import fingerprint
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.remote import Run

_MOST_BOOT_ID = 100
"""Characters: the kernel's has 36. What a node says there is kept in its record."""


class Ssh:
    """Implements world.Nodes. ``addresses``: by node; ``boot_id``: the command that prints a boot's own text."""

    def __init__(self, addresses: Mapping[str, str], run_on: Callable[[str], Run], boot_id: str) -> None:
        self._addresses, self._run_on, self._boot_id = addresses, run_on, boot_id

    def host_key(self, node: str) -> str:
        """Return the fingerprint of the ed25519 key that somebody at the node's address shows, "" when nobody does."""
        with suppress(CertificateError):
            for key in shown(self._addresses[node]):
                if key.split()[0] == "ssh-ed25519":
                    return fingerprint(key)
        return ""

    def boot_id(self, node: str) -> str:
        """Return what differs from boot to boot, "" when it does not let us in."""
        with suppress(Trouble):
            done = self._run_on(node)(["/bin/sh", "-c", self._boot_id])
            return done.out.strip()[:_MOST_BOOT_ID] if done.status == 0 else ""
        return ""
