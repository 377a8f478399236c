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
            found = check(path)
        except FileError as error:
            problems += error.findings
            continue
        for one in found.packages.values():
            url = (places or {}).get(one.channel, found.asked.channels[one.channel]).rstrip("/")
            entry = {
                "channel": one.channel, "subdir": one.subdir, "file": one.file, "url": f"{url}/{one.subdir}/{one.file}",
                "size": one.size, "sha256": one.sha256,
            }  # fmt: skip
            known = packages.setdefault((one.channel, one.subdir, one.file), entry)
            if known != entry:
                what = "address" if known["url"] != entry["url"] else "checksum or size"
                problems.append(
                    f"{path}: {one.name}: {one.file} of {one.channel} has another {what} in another lock file"
                )
    return {"problems": problems, "packages": [packages[key] for key in sorted(packages)]}
