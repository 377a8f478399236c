"""Programs that need a newer C library than the node image has: they get one of their own, and nothing else sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed.errors import VirtualNodesError
from testbed.run import capture

MAGIC = b"\x7fELF"
PATCHELF = "patchelf"
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "ppc64le": "ld64.so.2"}
TRIPLETS = {"x86_64": "x86_64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}


def tool(debs: Mapping[str, Path], work: Path) -> Path:
    """Return patchelf, unpacked from its package: nothing has to be installed for it."""
    capture(["dpkg-deb", "--extract", debs[PATCHELF], work])
    return work / "usr/bin/patchelf"


def folder(name: str) -> str:
    """Return where the libraries of a package's own are on the node."""
    return f"/usr/libexec/{name}-libraries"


def is_elf(path: Path) -> bool:
    """Tell whether a file is a program or library."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == MAGIC


def own_libraries(name: str, arch: str, debs: Iterable[Path], root: Path, work: Path) -> None:
    """Put the libraries of these packages into the package's own folder below root."""
    place = root / folder(name).lstrip("/")
    place.mkdir(parents=True)
    for deb in debs:
        unpacked = work / "private" / deb.name
        unpacked.mkdir(parents=True)
        capture(["dpkg-deb", "--extract", deb, unpacked])
        for source in sorted((unpacked / "usr/lib" / TRIPLETS[arch]).glob("*.so*")):
            if is_elf(source):
                os.replace(source, place / source.name)
    if not (place / LOADERS[arch]).is_file():
        raise VirtualNodesError(f"{name}: private: these packages bring no {LOADERS[arch]}: libc6 is missing")


def lead_to(name: str, arch: str, files: Iterable[Path], patchelf: Path) -> None:
    """Make programs start with the package's own loader, and find its libraries before the node's."""
    for path in files:
        if is_elf(path):
            mode = path.stat().st_mode
            command: list[str | Path] = [patchelf, "--force-rpath", "--set-rpath", folder(name)]
            if has_loader(path):
                command += ["--set-interpreter", f"{folder(name)}/{LOADERS[arch]}"]
            capture([*command, path])
            path.chmod(mode)


def has_loader(path: Path) -> bool:
    """Tell whether a file is a program that a loader starts (it has a segment PT_INTERP); little endian, 64 bits."""
    with path.open("rb") as stream:
        head = stream.read(64)
        start, size, number = (
            int.from_bytes(head[at : at + length], "little") for at, length in ((32, 8), (54, 2), (56, 2))
        )
        stream.seek(start)
        table = stream.read(size * number)
    return any(int.from_bytes(table[at : at + 4], "little") == 3 for at in range(0, len(table), size))
