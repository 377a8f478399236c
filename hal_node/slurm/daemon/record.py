# -*- coding: utf-8 -*-
"""Copies of the files that a daemon reads, as the running one read them.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ..placed import text_of

MYPY = False
if MYPY:
    from typing import Sequence  # noqa: F401  in comments


class Record(object):
    """Copies of `paths` in `folder`. A drop-in of the unit writes them at every start. No folder, no copies."""

    def __init__(self, folder, paths):
        # type: (str | None, Sequence[str]) -> None
        self.folder = folder
        self.paths = paths

    def copy(self, path):
        # type: (str) -> str
        """Return the place of the copy of a file."""
        return os.path.join(self.folder or "", os.path.basename(path))

    @property
    def conf(self):
        # type: () -> str | None
        """The copy of slurm.conf, None where there is none."""
        path = self.copy("slurm.conf")
        return path if self.folder and os.path.exists(path) else None

    def read(self, started):
        # type: (float) -> dict[str, str] | None
        """Return {file name: text} that a daemon of that start read, or None when the copies are not its own."""
        # The drop-in copies just before the start, so older copies are of an earlier process.
        if not self.conf or os.path.getmtime(self.conf) < started - 30:
            return None
        return {os.path.basename(path): text_of(self.copy(path)) for path in self.paths}

    def note(self):
        # type: () -> None
        """Note that the daemon runs with the files as they are now."""
        if not self.folder:
            return
        if not os.path.isdir(self.folder):
            os.makedirs(self.folder, 0o755)
        for path in self.paths:
            temporary = self.copy(path) + ".new"
            with open(temporary, "wb") as stream:
                stream.write(text_of(path).encode("utf-8"))
            os.rename(temporary, self.copy(path))
