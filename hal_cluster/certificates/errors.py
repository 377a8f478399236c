"""What can go wrong: one root error, whose text is one line for an administrator."""

from __future__ import annotations

from hal_inventory.errors import HalError


class CertificateError(HalError):
    """A certificate that cannot be issued or revoked, or a node that is not who it should be."""
