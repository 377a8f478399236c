"""Archives that no job of this project makes: who was root of a node writes what he likes. And what a restore asks."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

KINDS = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
    "odd": b"Z",
    "old": tarfile.AREGTYPE,
    "contiguous": tarfile.CONTTYPE,
}


@dataclass(frozen=True)
class Member:
    """One member; `fields` are those of tarfile.TarInfo, as uid, uname, mtime, pax_headers."""

    name: str
    kind: str = "file"
    content: bytes = b""
    target: str = ""
    mode: int = 0o644
    fields: Mapping[str, Any] = field(default_factory=dict)


def folders(path: str) -> list[Member]:
    """Return the members of a folder and of those above it: `a/b` is a, then a/b."""
    parts = path.split("/")
    return [Member("/".join(parts[: number + 1]), "folder", mode=0o755) for number in range(len(parts))]


def write(path: Path, members: Iterable[Member], manifest: Mapping[str, Any] | bytes | None) -> Path:
    """Write a tar file: the manifest, with the digests of all files, and the members as they are."""
    members = list(members)
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        if manifest is not None:
            files = {one.name: hashlib.sha256(one.content).hexdigest() for one in members if one.kind == "file"}
            whole = manifest if isinstance(manifest, bytes) else json.dumps({"files": files, **manifest}).encode()
            _add(archive, Member("MANIFEST.json", content=whole))
        for one in members:
            _add(archive, one)
    return path


def _add(archive: tarfile.TarFile, one: Member) -> None:
    header = tarfile.TarInfo(one.name)
    header.type, header.mode, header.linkname = KINDS[one.kind], one.mode, one.target
    header.size, header.mtime = len(one.content), 1000
    for name, value in one.fields.items():
        setattr(header, name, value)
    archive.addfile(header, io.BytesIO(one.content))


def manifest(*sources: str, **more: Any) -> dict[str, Any]:
    """Return what a manifest of hal-mgmt1 says; the digests of files are added."""
    listed = [{"name": name, "kind": "files"} for name in sources]
    return {"format": 1, "site": "hal", "node": "hal-mgmt1", "made": int(time.time()), "sources": listed, **more}


def request(archive: Path, folder: Path, sha256: Any = "", signature: Any = "", **more: Any) -> dict[str, Any]:
    """Return what playbooks/restore.yml gives to backup_open.py: for hal-mgmt1, an archive that nobody signed.

    `sha256`, `signature`: what the store wrote beside it; nothing, when neither is given.
    """
    beside = archive.with_name(f"{archive.name}.json")
    beside.unlink(missing_ok=True)
    if sha256 or signature:
        digest = sha256 or hashlib.sha256(archive.read_bytes()).hexdigest()
        beside.write_text(json.dumps({"sha256": digest, "signature": signature}))
    asked = {"archive": str(archive), "folder": str(folder), "site": "hal", "node": "hal-mgmt1"}
    return {
        **asked,
        "signers": str(folder / "signers"),
        "sources": [],
        "names": [],
        "permitted": ["restore_unsigned_ok"],
        **more,
    }


def sent(content: bytes) -> IO[bytes]:
    """Return a stream as the store gets it from a sender."""
    stream = tempfile.TemporaryFile()  # noqa: SIM115 - who reads it closes it
    stream.write(content)
    stream.seek(0)
    return stream
