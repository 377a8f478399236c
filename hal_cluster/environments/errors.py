"""What can go wrong, in words for an administrator."""

from __future__ import annotations

from collections.abc import Sequence

from hal_inventory.errors import HalError


class HalEnvironmentsError(HalError):
    """Anything that keeps an environment from being solved, locked or checked. No traceback is needed."""


class FileError(HalEnvironmentsError):
    """A file that cannot be used; `findings`: one line each, with file and line."""

    def __init__(self, findings: Sequence[str]) -> None:
        """Keep the lines."""
        super().__init__("\n".join(findings))
        self.findings = list(findings)
