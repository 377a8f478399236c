"""The user certificates that were issued: a line each, in the order of their serial numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import write


@dataclass(frozen=True)
class Issued:
    """One certificate: times are in UTC, as 2026-11-21T08:00:00Z."""

    serial: int
    user: str
    principals: tuple[str, ...]
    key: str
    fingerprint: str
    issued: str
    until: str

    def valid(self, now: datetime) -> bool:
        """Whether it has not run out yet."""
        return when(self.until) > now


def when(text: str) -> datetime:
    """Read a time of the register."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def stamp(moment: datetime) -> str:
    """Write a time for the register."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Register:
    """The file; it only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Issued]:
        """Yield what was issued; CertificateError names the line that cannot be read."""
        if not self.path.exists():
            return
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                yield Issued(**{**entry, "principals": tuple(entry["principals"])})
            except (ValueError, TypeError, KeyError):
                raise CertificateError(f"{self.path}:{number}: cannot be read; restore it from its backup") from None

    def next_serial(self) -> int:
        """Return a number that no certificate has: 0 is what certificates without one have."""
        return max((issued.serial for issued in self), default=0) + 1

    def add(self, issued: Issued) -> None:
        """Append a certificate; when this returns, it is there after a loss of power, too.

        CertificateError when the disk is full: half a line would be in the way of all that comes later.
        """
        there = self.path.read_bytes() if self.path.exists() else b""
        write(self.path, there + f"{json.dumps(asdict(issued))}\n".encode(), 0o600)
