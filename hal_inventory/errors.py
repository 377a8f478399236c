"""What can go wrong: the root of all errors at the controller, and findings that say where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hal_inventory.printable import printable


class HalError(Exception):
    """The root of every error of ours at the controller. Its text is for an administrator: no traceback is needed."""


class HalInventoryError(HalError):
    """Anything that keeps the site model from being used."""


@dataclass(frozen=True, order=True)
class Finding:
    """One fault of a file. Prints as ``file:line: field: message``; a line of 0 means the file as a whole."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return printable(": ".join(part for part in (place, self.field, self.message) if part), None)

    def as_dict(self) -> dict[str, str | int]:
        """Return the finding as plain data, for --json."""
        return {"file": self.file, "line": self.line, "field": self.field, "message": self.message}


class FindingsError(HalInventoryError):
    """One or more faults of files; ``findings`` is sorted and without repeats."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(sorted(set(findings)))
        super().__init__("\n".join(str(finding) for finding in self.findings))


class ClusterFileError(FindingsError):
    """A cluster.yml that cannot be used."""


class SourceFileError(FindingsError):
    """An inventory source (the small file that names a cluster.yml) that cannot be used."""


class UsersFileError(FindingsError):
    """A users.yml that cannot be used."""


class RangeError(HalInventoryError):
    """A range such as ``hal[01-16]`` that cannot be expanded."""


class ExpressionError(HalInventoryError):
    """An expression such as ``gpu and not hal05`` that cannot be read, or that names something unknown."""


class UnknownNameError(HalInventoryError):
    """A slice, node, service or source that does not exist."""


class RenumberError(HalInventoryError):
    """A network that cannot be moved to where a source wants it; ``network`` is its name."""

    def __init__(self, network: str, message: str) -> None:
        self.network = network
        super().__init__(message)
