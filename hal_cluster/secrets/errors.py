"""What can go wrong: one root error, whose text is one line for an administrator and never holds a secret."""

from __future__ import annotations

from hal_inventory.errors import HalError


class SecretError(HalError):
    """A secret that cannot be made, stored or read."""
