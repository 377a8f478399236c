"""Every package that a role declares is in its site's lock file, for the repositories and architecture of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hal_cluster.packages.check import against_declared
from hal_cluster.packages.declared import declared
from hal_cluster.packages.errors import LockFileError
from hal_cluster.packages.lock import load
from hal_inventory import errors
from tests.contract.project import Finding, rule


def lock_files(root: Path) -> list[Path]:
    """The lock files of all sites."""
    return sorted((root / "inventory").glob("*/packages.lock.yml"))


@rule
def declared_packages_are_locked(root: Path) -> Iterator[Finding]:
    """Names of package tasks, as every node gets them, are locked; addresses and keys are the declared ones."""
    for path in lock_files(root):
        try:
            report = against_declared(load(path), declared([str(path.parent / "hal.yml")], root))
        except LockFileError as error:
            yield from (_finding(root, one) for one in error.findings)
        else:
            yield from (_finding(root, one) for one in report.findings)


def _finding(root: Path, found: errors.Finding) -> Finding:
    return Finding(root / found.file, found.line, f"{found.field}: {found.message.replace(f'{root}/', '')}")
