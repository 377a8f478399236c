"""Versions of drivers and toolkits: 440.33.01, 10.2, 10.2.89."""

from __future__ import annotations

import re
from typing import TypeAlias

from hal_cluster.rules.errors import RuleError
from hal_inventory.printable import printable

Version: TypeAlias = tuple[int, ...]

_DRIVER = re.compile(r"\d{2,4}(\.\d{1,3}){1,2}", re.ASCII)
_TOOLKIT = re.compile(r"(\d{1,2}\.\d{1,2})(?:\.\d{1,3})?", re.ASCII)


class HalCudaError(RuleError):
    """A version or a table that cannot be used. No traceback is needed."""


class VersionError(HalCudaError):
    """A text that is not a version; the message says what one looks like."""


def driver_version(value: object) -> Version:
    """Return a driver's version, comparable; VersionError for anything else."""
    if isinstance(value, str) and _DRIVER.fullmatch(value):
        return _padded(value)
    raise VersionError(f"{shown(value)} is not a version of a driver; write one such as 440.33.01{_quotes(value)}")


def toolkit_release(value: object) -> tuple[str, str | None]:
    """Return (release, exact version or None) of 10.2 or 10.2.89; VersionError for anything else."""
    match = _TOOLKIT.fullmatch(value) if isinstance(value, str) else None
    if match:
        return match[1], match[0] if match[0] != match[1] else None
    raise VersionError(f"{shown(value)} is not a release of CUDA; write one such as 10.2 or 10.2.89{_quotes(value)}")


def order(release: str) -> Version:
    """Return a key that sorts releases as they came out: 9.2 before 10.0."""
    return _padded(release)


def shown(value: object) -> str:
    """Return a value for a message: quoted, on one line, not too long."""
    return f'"{printable(value if isinstance(value, str) else repr(value), 40)}"'


def _padded(value: str) -> Version:
    parts = [int(part) for part in value.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def _quotes(value: object) -> str:
    return ", in quotes" if isinstance(value, (int, float)) else ""
