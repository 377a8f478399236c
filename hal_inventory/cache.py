"""A cache by content: JSON files in ~/.cache/hal/inventory (HAL_CACHE_DIR names another place for ~/.cache/hal), each
with a checksum. Imports nothing slow.

If anything is wrong with it (not ours, damaged, not writable), it counts as empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

MAX_ENTRIES = 256


def folder() -> Path:
    """Return the cache's folder, which need not exist."""
    chosen = os.environ.get("HAL_CACHE_DIR")
    if not chosen:
        chosen = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hal")
    return Path(chosen) / "inventory"


@cache
def code_version() -> bytes:
    """Return a hash over this package's code, so that each version computes its own results."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        digest.update(b"%s %d " % (os.fsencode(path.relative_to(root)), len(content)))
        digest.update(content)
    return digest.digest()


def cached(parts: Iterable[bytes], compute: Callable[[], Any]) -> Any:
    """Return the result kept for these parts, or compute and keep it. It always comes back as JSON has it."""
    digest = hashlib.sha256(code_version())
    for part in parts:
        digest.update(b"%d " % len(part))
        digest.update(part)
    name = digest.hexdigest() + ".json"
    where = folder()
    body = _read(where, name)
    if body is not None:
        return json.loads(body)
    body = json.dumps(compute(), separators=(",", ":")).encode()
    with contextlib.suppress(OSError):
        _write(where, name, body)
    return json.loads(body)


def _ours(status: os.stat_result) -> bool:
    """Tell whether only we can have written it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(where: Path, name: str) -> bytes | None:
    try:
        if not _ours(os.stat(where)):
            return None
        with open(os.open(where / name, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
            if not _ours(os.fstat(stream.fileno())):
                return None
            content = stream.read()
    except OSError:
        return None
    checksum, _, body = content.partition(b"\n")
    return body if checksum == hashlib.sha256(body).hexdigest().encode() else None


def _write(where: Path, name: str, body: bytes) -> None:
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _ours(os.stat(where)):
        return
    handle, temporary = tempfile.mkstemp(dir=where, prefix=".new-")
    try:
        with open(handle, "wb") as stream:
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        os.replace(temporary, where / name)
    except OSError:
        os.unlink(temporary)
        raise
    _prune(where)


def _prune(where: Path) -> None:
    """Drop the oldest entries when there are too many."""
    entries = sorted(where.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in entries[:-MAX_ENTRIES]:
        path.unlink(missing_ok=True)
