"""The metadata of a package repository (repomd.xml and what it names), from a folder or an address."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from hal_packages.errors import HalPackagesError

REPO = "{http://linux.duke.edu/metadata/repo}"
TIMEOUT_SECONDS = 60
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
        raise HalPackagesError(f"{place}/repodata/repomd.xml is no metadata: {error}") from None
    files = {}
    for data in root.iter(f"{REPO}data"):
        kind = str(data.get("type"))
        location, checksum = data.find(f"{REPO}location"), data.find(f"{REPO}checksum")
        if kind not in WANTED or location is None or checksum is None:
            continue
        name = str(location.get("href"))
        content = read(place, name)
        algorithm = {"sha": "sha1"}.get(str(checksum.get("type")), str(checksum.get("type")))
        if algorithm not in hashlib.algorithms_available:
            raise HalPackagesError(f"{place}/{name}: its checksum is of an unknown kind, {algorithm}")
        if hashlib.new(algorithm, content).hexdigest() != (checksum.text or "").strip():
            raise HalPackagesError(f"{place}/{name}: is not what repomd.xml says ({algorithm} differs)")
        # libsolv knows the compression by the end of the name.
        files[kind] = folder / f"{kind}-{Path(name).name}"
        files[kind].write_bytes(content)
    for kind in WANTED:
        if kind not in files:
            raise HalPackagesError(f"{place}/repodata/repomd.xml names no {kind}")
    return Metadata(place, hashlib.sha256(repomd).hexdigest(), files)


def local(place: str) -> Path | None:
    """Return the folder when a place is one: a path or a file:// address."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place)


def read(place: str, name: str, size: int | None = None) -> bytes:
    """Return a file of a repository, its first `size` bytes when given."""
    folder = local(place)
    try:
        if folder is not None:
            with (folder / name).open("rb") as stream:
                return stream.read(-1 if size is None else size)
        request = urllib.request.Request(f"{place.rstrip('/')}/{name}")
        if size is not None:
            request.add_header("Range", f"bytes=0-{size - 1}")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read() if size is None else answer.read(size)
            return content
    except (OSError, urllib.error.URLError) as error:
        raise HalPackagesError(f"{place}/{name} cannot be read: {error}") from None
