"""How nodes are reached that this project has never touched: as their administrator does today, with host keys checked.

Only the host keys that the administrator's ssh believes today are believed. The site's authorities do not matter here.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

USUAL = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")


def known_hosts(given: str) -> list[Path]:
    """Return the files of host keys that are believed: the given one, or those that ssh takes by itself."""
    names = (given,) if given else USUAL
    return [Path(os.path.abspath(os.path.expanduser(name))) for name in names]


def known_as(names: Sequence[str], files: Iterable[Path]) -> str:
    """Return the first of a node's names for which a file has a host key, also a hashed one; else the first name.

    Then ssh refuses that name, and says so.
    """
    present = [file for file in files if file.is_file()]
    for name in names:
        if any(_has(name, file) for file in present):
            return name
    return names[0]


def _has(name: str, file: Path) -> bool:
    argv = ["ssh-keygen", "-F", name, "-f", str(file)]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def options(names: Sequence[str], given: str = "") -> str:
    """Return options of ssh for one node: which host keys are believed, and under which name it is known there."""
    files = known_hosts(given)
    words = ["-o StrictHostKeyChecking=yes", f"-o HostKeyAlias={shlex.quote(known_as(names, files))}"]
    if given:
        believed = str(files[0]).replace("%", "%%")  # ssh would take a single % for a token
        words = ["-o " + shlex.quote(f'UserKnownHostsFile="{believed}"'), "-o GlobalKnownHostsFile=none", *words]
    return " ".join(words)
