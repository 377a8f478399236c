"""What a channel has, read from its index; and a lock beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from hal_cluster.environments.errors import HalEnvironmentsError
from hal_cluster.environments.lock import Lock
from hal_inventory.bounded import BoundError, limited, parsed

TIMEOUT_SECONDS = 60
MOST_INDEX = 1024**3
"""Bytes of an index, which comes unpacked. Those of the largest channels, conda-forge's above all, have a few hundred
MB. A mirror that somebody has taken over would go on until the controller's memory is full.
"""


def unlike(locked: Lock, places: Mapping[str, str]) -> list[str]:
    """Return a line for each package that its channel does not have as locked; raise when a channel cannot be read."""
    lines: list[str] = []
    for alias, subdir in sorted({(package.channel, package.subdir) for package in locked.packages.values()}):
        have = index(places.get(alias, locked.asked.channels[alias]), subdir)
        for package in locked.packages.values():
            if (package.channel, package.subdir) != (alias, subdir):
                continue
            offered = have.get(package.file)
            if offered is None:
                lines.append(f"{package.name}: {alias} has no {subdir}/{package.file}")
                continue
            for field, value in (("sha256", package.sha256), ("size", package.size)):
                if offered.get(field) not in (None, value):
                    lines.append(f"{package.name}: {alias} has {field} {offered[field]}, locked is {value}")
    return lines


def index(channel: str, subdir: str) -> Mapping[str, Mapping[str, Any]]:
    """Return a channel's packages of one subdirectory by file name."""
    try:
        content = parsed(fetch(channel, subdir), MOST_INDEX)
        return {**content.get("packages", {}), **content.get("packages.conda", {})}
    except (ValueError, AttributeError) as error:
        raise HalEnvironmentsError(f"{channel}/{subdir}: its index cannot be read: {error}") from None


def fetch(channel: str, subdir: str) -> bytes:
    """Return the index of a channel's subdirectory, as JSON."""
    address = f"{channel.rstrip('/')}/{subdir}/repodata.json"
    try:
        with urlopen(address, timeout=TIMEOUT_SECONDS) as stream:
            content: bytes = stream.read(MOST_INDEX + 1)
            limited(content, MOST_INDEX)
            if getattr(stream, "length", None):  # a read of so many bytes does not mind
                raise OSError("it is cut off")
    except BoundError as error:
        raise HalEnvironmentsError(f"{address}: {error}") from None
    except (URLError, OSError, ValueError) as error:
        raise HalEnvironmentsError(f"{address} cannot be read: {error}") from None
    return content
