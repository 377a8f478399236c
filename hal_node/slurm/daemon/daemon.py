# -*- coding: utf-8 -*-
"""One daemon on this node: its unit, its files, the record of what it read, and the slurmctld that it asks.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.module_utils.common.text.converters import to_text

from ..conf import SlurmConfError, parse
from ..placed import Files, text_of
from .record import Record
from .slurmctld import Slurmctld
from .unit import Unit

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


class Daemon(object):
    """What everything else here is about. Its attributes are those of the module hal_slurm_daemon."""

    def __init__(self, module):
        # type: (Any) -> None
        params = module.params
        self.module = module
        self.name = params["name"]  # type: str
        self.node = params["node"]  # type: str
        self.files = params["files"]  # type: list[str]
        self.unit_files = params["unit_files"]  # type: list[str]
        self.version = params["version"]  # type: str
        self.phase = params["phase"]  # type: str
        self.restart_ok = params["restart_ok"]  # type: bool
        self.announced = params["announced"] or ""  # type: str
        self.wait_seconds = params["wait_seconds"]  # type: int
        planned = params["planned"] if module.check_mode else []
        self.planned = {entry["path"]: entry.get("content") for entry in planned}
        self.record = Record(params["record_dir"] if self.name != "slurmdbd" else None, self.files)
        self.new_files = Files(self.files, params["staged_dir"] if self.record.folder else None, self.planned)
        self.unit = Unit(module, self.name)
        self.slurmctld = Slurmctld(module, self.record)

    def texts(self):
        # type: () -> dict[str, str]
        """Return {file name: text} of the files in place."""
        return {os.path.basename(path): text_of(path) for path in self.files}

    def new_text(self, path):
        # type: (str) -> str
        """Return a file's new text; in check mode the one that would be written."""
        return to_text(self.new_files.new(path) or b"", errors="replace")  # type: ignore[no-any-return]  # Ansible has no types

    def new_texts(self):
        # type: () -> dict[str, str]
        """Return {file name: new text}."""
        return {os.path.basename(path): self.new_text(path) for path in self.files}

    def recorded(self):
        # type: () -> dict[str, str] | None
        """Return {file name: text} that it read, or None when that is not known."""
        return self.record.read(self.unit.started)

    def note(self):
        # type: () -> None
        """Note that it runs with the files as they are now; not in check mode."""
        if not self.module.check_mode:
            self.record.note()

    @property
    def accounting(self):
        # type: () -> bool
        """Whether the slurm.conf in place has slurmdbd keep accounts; False for one that cannot be read."""
        try:
            parameters = parse(text_of(self.files[0])).parameters  # type: dict[str, tuple[str, str]]
        except SlurmConfError:
            return False
        return parameters.get("accountingstoragetype", ("", ""))[1].endswith("/slurmdbd")
