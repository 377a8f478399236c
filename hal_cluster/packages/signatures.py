"""Who signed a package, as rpm reads it from the header. Whether the signature holds is checked by the mirror."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.repodata import local, read

# A package has one of these; older ones sign header and payload together, newer ones the header.
TAGS = ("RSAHEADER", "DSAHEADER", "SIGPGP", "SIGGPG")
QUERY = "".join(f"%|{tag}?{{%{{{tag}:pgpsig}} }}|" for tag in TAGS) + "\n"
KEY_ID = re.compile(r"Key ID ([0-9a-fA-F]{16})\b")
AT_ONCE = 8


def keys_of(place: str, files: Sequence[tuple[str, int]]) -> list[str | None]:
    """Return the id of the key that signed each file of a repository; None for an unsigned one.

    `files`: path below the repository, and where its header ends. Only the headers are fetched.
    """
    if not files:
        return []
    if shutil.which("rpm") is None:
        raise HalPackagesError("rpm is not installed here; it reads who signed a package: install your system's rpm")
    folder = local(place)
    if folder is not None:
        return _query([folder / file for file, _ in files])
    with tempfile.TemporaryDirectory(prefix="hal-packages-") as kept:
        heads = [Path(kept) / f"{number}.rpm" for number in range(len(files))]

        def fetch(number: int) -> None:
            file, end = files[number]
            heads[number].write_bytes(read(place, file, end))

        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            list(pool.map(fetch, range(len(files))))
        return _query(heads)


def _query(paths: Sequence[Path]) -> list[str | None]:
    argv = ["rpm", "--query", "--package", "--nosignature", "--nodigest", "--queryformat", QUERY, *map(str, paths)]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(paths):
        raise HalPackagesError(f"rpm cannot read the packages: {done.stderr.strip() or done.stdout.strip()}")
    return [match[1].upper() if (match := KEY_ID.search(line)) else None for line in lines]
