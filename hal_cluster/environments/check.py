"""Whether a lock file is complete, whole and what its specs ask for. Needs no channel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hal_cluster.environments import lock as locks
from hal_cluster.environments import solve
from hal_cluster.environments.document import Document
from hal_cluster.environments.errors import FileError
from hal_cluster.environments.lock import Lock


def check(path: Path) -> Lock:
    """Return the lock; raise FileError with every finding: file, line, package, what would be right."""
    stat = path.stat() if path.exists() else None
    return _check(path, stat.st_mtime_ns if stat else 0, stat.st_size if stat else 0)


@lru_cache(maxsize=64)
def _check(path: Path, _time: int, _size: int) -> Lock:
    lock = locks.load(path)
    document = Document(path)
    for name, words in solve.unsatisfied(lock):
        if name:
            document.finding(f"{name}: {words}", "packages", name, "depends")
        else:
            document.finding(words, "specs")
    document.refuse()
    return lock


def against_specs(lock: Lock, path: Path, specs: Path) -> list[str]:
    """Return a line for each way in which the lock was made from other specs than those beside it."""
    from hal_cluster.environments import specs as heads

    try:
        asked = heads.load(specs)
    except FileError as error:
        return error.findings
    return [
        f"{path}: {field} is not that of {specs.name}: run hal-environments lock {locks.name_of(path)}"
        for field in ("platform", "virtual", "channels", "specs")
        if getattr(asked, field) != getattr(lock.asked, field)
    ]
