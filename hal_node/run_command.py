# -*- coding: utf-8 -*-
"""AnsibleModule whose run_command returns all that a program printed.

Ansible's own gives up after a second of silence when the program has ended, and looks in that order. What the program
prints between the two looks is lost: status 0 with an empty or cut output, on a node that is busy enough (ansible
issue 51393, open in 2.16). Here a program has not ended as long as something of it is unread.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""

from __future__ import absolute_import, division, print_function

import fcntl
import struct
import termios

from ansible.module_utils import basic

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type


class AnsibleModule(basic.AnsibleModule):  # type: ignore[misc]  # contract: here it is mended
    """Ansible's, except that no output is lost."""

    def run_command(self, args, **more):
        # type: (Any, **Any) -> tuple[int, str, str]
        """Return (status, output, errors); arguments and failures are those of Ansible's run_command."""
        status, output, errors = super(AnsibleModule, self).run_command(
            args, before_communicate_callback=_read_all, **more)
        return status, output, errors


def _read_all(process):
    # type: (Any) -> None
    """Let process.poll() say that it has ended when nothing is left to read. A daemon may keep the streams open."""
    process.stdout, process.stderr = (_unbuffered(stream) for stream in (process.stdout, process.stderr))
    poll = process.poll

    def read_and_ended():
        # type: () -> int | None
        status = poll()  # first: of a program that has ended, everything is there to be read
        return None if _unread(process.stdout) or _unread(process.stderr) else status

    process.poll = read_and_ended


def _unbuffered(stream):
    # type: (Any) -> Any
    """A stream that holds nothing back where nobody sees it: Python 3's do."""
    return stream.detach() if hasattr(stream, "detach") else stream


def _unread(stream):
    # type: (Any) -> int
    """How many bytes wait in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(stream.fileno(), termios.FIONREAD, b"\0" * 4))[0])
