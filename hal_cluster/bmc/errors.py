"""What can go wrong with a BMC: one error, whose text is one line for an administrator."""

from __future__ import annotations

from enum import Enum

from hal_inventory.errors import HalError
from hal_inventory.printable import one_line


class Fault(str, Enum):
    """What kind of thing went wrong; docs/bmc.md says what to do about each."""

    SILENT = "no answer"
    BUSY = "busy"
    LOGIN = "login refused"
    PASSWORD_CHANGE = "password change required"
    DEFAULT_PASSWORD = "default password"
    CERTIFICATE = "certificate not believed"
    IDENTITY = "another machine"
    IGNORED = "ignored"
    REFUSED = "refused"
    UNSUPPORTED = "not supported"
    CONFIGURATION = "configuration"


class BmcError(HalError):
    """A BMC that did not do what it was asked. The text names it, what was asked, and what came back.

    ``fault`` is the kind. No part ever contains a password. The BMC chooses what came back, so it is made printable.
    """

    def __init__(self, bmc: str, asked: str, answer: str, fault: Fault) -> None:
        answer = one_line(answer)
        super().__init__(f"BMC of {bmc}: {asked}: {answer}")
        self.bmc, self.asked, self.answer, self.fault = bmc, asked, answer, fault

    def __reduce__(self) -> tuple[type[BmcError], tuple[str, str, str, Fault]]:
        """As another process gets it."""
        return type(self), (self.bmc, self.asked, self.answer, self.fault)

    @classmethod
    def of(cls, bmc: str, asked: str, error: Exception) -> BmcError:
        """Return the error for one that nobody foresaw. It has only its type, because its text may contain anything."""
        return cls(bmc, asked, f"what this program does not understand: {type(error).__name__}", Fault.REFUSED)

    @property
    def may_pass(self) -> bool:
        """Whether the same question may be asked again. A command may have been carried out."""
        return self.fault in (Fault.SILENT, Fault.BUSY)
