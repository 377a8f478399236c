"""What a mirror of channels has: exactly the packages that lock files name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.environments.check import check
from hal_cluster.environments.errors import FileError


def mirrored(paths: Sequence[Path], places: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return {problems, packages}: a line for each fault, and each package once, as hal_channel_mirror takes it.

    `places`: where channels are read, by alias, if elsewhere.
    """
    problems: list[str] = []
    packages: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in paths:
        try:
            lock = check(path)
        except FileError as error:
            problems += error.findings
            continue
        for package in lock.packages.values():
            url = (places or {}).get(package.channel, lock.asked.channels[package.channel]).rstrip("/")
            entry = {
                "channel": package.channel, "subdir": package.subdir, "file": package.file,
                "url": f"{url}/{package.subdir}/{package.file}",
                "size": package.size, "sha256": package.sha256,
            }  # fmt: skip
            known = packages.setdefault((package.channel, package.subdir, package.file), entry)
            if known != entry:
                what = "address" if known["url"] != entry["url"] else "checksum or size"
                problems.append(
                    f"{path}: {package.name}: {package.file} of {package.channel} has another {what} in another lock"
                    " file"
                )
    return {"problems": problems, "packages": [packages[key] for key in sorted(packages)]}
