"""Paths of folders in the model: their plain form, and which of them are the system's own."""

from __future__ import annotations

import re

# What CentOS 7 needs to boot, to run, or to let administrators in (rpm -ql filesystem). Sites have folders of their own
# in /usr, /usr/local, /opt and /var: those are free.
_OF_THE_SYSTEM = re.compile(
    r"/|/(usr|var|var/lib)"
    r"|/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|var/lock|var/run)(/.*)?"
    r"|/usr/(bin|include|lib|lib64|libexec|sbin|share|src)(/.*)?"
)


def plain(path: str) -> str:
    """Return the plain form of an absolute path: without ``..``, ``.``, and doubled or trailing slashes."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return "/" + "/".join(steps)


def is_of_the_system(path: str) -> bool:
    """Tell whether a file system at an absolute path, however written, would hide what a node needs to run."""
    return _OF_THE_SYSTEM.fullmatch(plain(path)) is not None
