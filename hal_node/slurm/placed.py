# -*- coding: utf-8 -*-
"""New configuration files of Slurm: they wait in a folder, and come in place when a daemon takes them.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import stat

from ansible.module_utils.common.text.converters import to_bytes
from ..files import content_of, replace_content
from .conf import SlurmConfError, parse
from .process import job_steps

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

MODE = 0o644
# slurm.conf(5), StateSaveLocation: the default.
STATE = "/var/spool"
PROC = "/proc"


def text_of(path):
    # type: (str) -> str
    """Return the text of a file, "" when it is not there."""
    return (content_of(path) or b"").decode("utf-8", "replace")


class Files(object):
    """Configuration files in place, and those that wait for them in `folder`; without one they are the same.

    planned: in check mode, {path: content} of what would have been written by now; None for content that is not known.
    """

    def __init__(self, paths, folder, planned):
        # type: (list[str], str | None, dict[str, Any]) -> None
        self.paths = paths
        self.folder = folder
        self.planned = planned

    def waiting(self, path):
        # type: (str) -> str
        """Return where the new one of a file waits."""
        return os.path.join(self.folder, os.path.basename(path)) if self.folder else path

    def new(self, path):
        # type: (str) -> bytes | None
        """Return the new bytes of a file; without a new one those in place, None when there is none either."""
        waiting = self.waiting(path)
        content = content_of(waiting)
        if self.planned.get(waiting) is not None:
            content = to_bytes(self.planned[waiting])
        return content_of(path) if content is None else content

    def differing(self):
        # type: () -> list[str]
        """Return the files that are not in place as they are to be, as root's and readable for all."""
        return [path for path in self.paths if self.new(path) is not None and (
            self.new(path) != content_of(path) or os.path.islink(path) or not _readable_alone(path))]

    def place(self, module):
        # type: (Any) -> list[str]
        """Put them in place; return those that were not. Nothing is done in check mode."""
        paths = self.differing() if self.folder else []
        for path in paths if not module.check_mode else ():
            replace_content(module, path, self.new(path))  # type: ignore[arg-type]  # differing() has no None
            os.chmod(path, MODE)
            if os.geteuid() == 0:
                os.chown(path, 0, 0)
        return paths


def _readable_alone(path):
    # type: (str) -> bool
    state = os.stat(path)
    return stat.S_IMODE(state.st_mode) == MODE and (os.geteuid() != 0 or (state.st_uid, state.st_gid) == (0, 0))


def at_stake(daemon, conf):
    # type: (str, str) -> str
    """Return what a daemon that does not run has of jobs on this node, in words; "" for nothing.

    conf: the text of the slurm.conf in place. One that cannot be read says nothing of where the state is: then the
    default counts.
    """
    if daemon == "slurmctld":
        state = os.path.join(_state_folder(conf), "job_state")
        return "%s has jobs that slurmctld saved" % state if os.path.exists(state) else ""
    if daemon == "slurmd":
        return "steps of jobs run here without slurmd" if job_steps(PROC) else ""
    return ""


def _state_folder(conf):
    # type: (str) -> str
    try:
        parameters = parse(conf).parameters  # type: dict[str, tuple[str, str]]
        return parameters.get("statesavelocation", ("", STATE))[1]
    except SlurmConfError:
        return STATE
