"""The metadata of a package repository (repomd.xml and what it names), from a folder or an address."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from hal_cluster.packages.errors import HalPackagesError
from hal_inventory.bounded import MIB, BoundError, limited
from hal_inventory.bounded import size as in_words

REPO = "{http://linux.duke.edu/metadata/repo}"
TIMEOUT_SECONDS = 60
MOST_FILE, MOST_UNPACKED = 128 * MIB, 1024 * MIB
"""Bytes of a file of metadata as it comes, and unpacked. The longest of CentOS 7 and EPEL, their lists of files, have
10 to 20 MB, and some ten times that unpacked. Who has taken over a mirror writes repomd.xml's checksums, too.
"""
_READERS: dict[str, Callable[..., Any]] = {
    ".xml": io.BufferedReader,
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
WANTED = ("primary", "filelists")  # names, dependencies, files; the latter because packages also require paths


@dataclass(frozen=True)
class Metadata:
    """Metadata at hand: where the repository is, the sha256 of its repomd.xml, and local files by their type."""

    place: str
    sha256: str
    files: dict[str, Path]


def obtain(place: str, folder: Path) -> Metadata:
    """Return a repository's metadata; each file is checked against repomd.xml, downloads go to `folder`."""
    repomd = read(place, "repodata/repomd.xml")
    try:
        root = ElementTree.fromstring(repomd)
    except ElementTree.ParseError as error:
        raise HalPackagesError(f"{place}/repodata/repomd.xml is not metadata: {error}") from None
    files = {}
    for section in root.iter(f"{REPO}data"):
        kind = str(section.get("type"))
        location, checksum = section.find(f"{REPO}location"), section.find(f"{REPO}checksum")
        if kind not in WANTED or location is None or checksum is None:
            continue
        name = str(location.get("href"))
        content = read(place, name)
        algorithm = {"sha": "sha1"}.get(str(checksum.get("type")), str(checksum.get("type")))
        if algorithm not in hashlib.algorithms_available:
            raise HalPackagesError(f"{place}/{name}: its checksum is of an unknown kind, {algorithm}")
        if hashlib.new(algorithm, content).hexdigest() != (checksum.text or "").strip():
            raise HalPackagesError(f"{place}/{name}: is not what repomd.xml says ({algorithm} differs)")
        _refuse_bomb(f"{place}/{name}", content)
        # libsolv knows the compression by the end of the name.
        files[kind] = folder / f"{kind}-{Path(name).name}"
        files[kind].write_bytes(content)
    for kind in WANTED:
        if kind not in files:
            raise HalPackagesError(f"{place}/repodata/repomd.xml names no {kind}")
    return Metadata(place, hashlib.sha256(repomd).hexdigest(), files)


def _refuse_bomb(name: str, content: bytes) -> None:
    """Raise HalPackagesError for what is longer than any honest file when libsolv unpacks it."""
    opened = _READERS.get(Path(name).suffix)
    if opened is None:
        raise HalPackagesError(f"{name}: is packed in a way that nodes do not read; they read {', '.join(_READERS)}")
    left = MOST_UNPACKED
    try:
        with opened(io.BytesIO(content)) as stream:
            while block := stream.read(MIB):
                left -= len(block)
                if left < 0:
                    raise HalPackagesError(f"{name}: more than {in_words(MOST_UNPACKED)} when it is unpacked: not read")
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise HalPackagesError(f"{name}: cannot be unpacked: {error}") from None


def local(place: str) -> Path | None:
    """Return the folder when a place is one: a path or a file:// address."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place)


def read(place: str, name: str, size: int | None = None) -> bytes:
    """Return a file of a repository, its first `size` bytes when given."""
    most = MOST_FILE + 1 if size is None else min(size, MOST_FILE + 1)
    folder = local(place)
    try:
        if folder is not None:
            with (folder / name).open("rb") as stream:
                content = stream.read(most)
        else:
            request = urllib.request.Request(f"{place.rstrip('/')}/{name}")
            if size is not None:
                request.add_header("Range", f"bytes=0-{size - 1}")
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                content = answer.read(most)
        limited(content, MOST_FILE)
        return content
    except BoundError as error:
        raise HalPackagesError(f"{place}/{name}: {error}") from None
    except (OSError, urllib.error.URLError) as error:
        raise HalPackagesError(f"{place}/{name} cannot be read: {error}") from None
