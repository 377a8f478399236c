"""What can go wrong: each a sentence for an administrator."""

from __future__ import annotations

from hal_inventory.errors import HalError


class ReimageError(HalError):
    """What was asked for is refused, and nothing was changed."""


class Trouble(HalError):
    """Something did not do what it was asked. ``passes``: it may pass, so it is worth asking again."""

    def __init__(self, reason: str, *, passes: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.passes = reason, passes


class Conflict(HalError):
    """The record was written by somebody else since it was read: an abort, or another run."""


class Gone(HalError):
    """What was begun is not known any more, however it ended: it is begun anew."""
