"""Where built things are kept, and the name that says what they were built from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder for built things: HAL_CACHE_DIR, else hal/ in the user's cache folder."""
    chosen = os.environ.get("HAL_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hal"


def content_hash(folders: Iterable[Path], *words: str) -> str:
    """Return 12 hex digits that change when a file below the folders, its executable bit or a word does."""
    digest = hashlib.sha256("\0".join(words).encode())
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files:
            if "__pycache__" in path.parts:
                continue
            name = path.name if path == folder else str(path.relative_to(folder))
            executable = os.access(path, os.X_OK)
            digest.update(f"\0{name}\0{executable}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time build a thing; others wait and then find it built."""
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def made_once(target: Path, lock: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache. Where it is missing, `make` it beside its place, and put it there whole."""
    if not target.is_dir():
        with locked(lock):
            if not target.is_dir():
                new = target.with_suffix(".new")
                shutil.rmtree(new, ignore_errors=True)
                make(new)
                new.rename(target)
    return target
