# -*- coding: utf-8 -*-
"""The node as the audit sees it: paths, clock, programs. Tests give it another root and other programs.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import calendar
import codecs
import os
import stat
import time

from ..expect.process import run
from ..expect.values import Unreadable, to_text

MYPY = False
if MYPY:
    from typing import Any, Callable, Sequence  # noqa: F401  in comments

__metaclass__ = type

ROOT = '/'
STATE = '/var/lib/hal'
MOST_TEXT = 4 * 1024 * 1024  # bytes of a table such as /etc/passwd
OUTPUT_SECONDS = 30
ISO = '%Y-%m-%dT%H:%M:%SZ'
ESCAPE = 'hal_escape'
PYTHON_2 = isinstance(b'', type(''))
SURROGATES = 'strict' if PYTHON_2 else 'surrogatepass'


def _escape(error):
    # type: (Any) -> tuple[str, int]
    """Show bytes that are not UTF-8 as \\xNN. Python 2.7 has backslashreplace for encoding only."""
    wrong = bytearray(error.object[error.start:error.end])
    return u''.join(u'\\x%02x' % byte for byte in wrong), error.end


codecs.register_error(ESCAPE, _escape)


def shown_name(name):
    # type: (str | bytes) -> str
    """Return a path as text; what is not UTF-8 in it, and what would break a line, is escaped."""
    text = name.decode('utf-8', ESCAPE) if isinstance(name, bytes) else name
    return ''.join(char if char >= ' ' and char != '\x7f' else '\\x%02x' % ord(char) for char in text)


def as_bytes(text):
    # type: (str | bytes) -> bytes
    """Return what the system calls take under every Python and locale."""
    return text if isinstance(text, bytes) else text.encode('utf-8', SURROGATES)


class Node:
    """Where files are, what time it is, how programs run."""

    def __init__(self, root=None, runner=run, clock=time.time):
        # type: (str | None, Callable[[list[Any], float], tuple[int, str, str]], Callable[[], float]) -> None
        self.root = ROOT if root is None else root
        self.clock = clock
        self._runner = runner

    def path(self, path):
        # type: (str | bytes) -> bytes
        """Return the bytes of an absolute path, below the root."""
        return as_bytes(self.root.rstrip('/')) + as_bytes(path)

    def native(self, path):
        # type: (str) -> str
        """Return the text of an absolute path, below the root."""
        whole = self.path(path)  # type: Any
        return '%s' % (whole if PYTHON_2 else os.fsdecode(whole))

    def state(self, name=''):
        # type: (str) -> bytes
        """Return the path of a file of ours."""
        return self.path(os.path.join(STATE, name) if name else STATE)

    def now(self):
        # type: () -> float
        return self.clock()

    def run(self, argv, timeout_seconds=20):
        # type: (Sequence[str | bytes], float) -> tuple[int, str, str]
        """Return (exit status, output, errors). Raises Unreadable."""
        return self._runner([argv[0]] + [as_bytes(word) for word in argv[1:]], timeout_seconds)

    def text(self, path):
        # type: (str) -> str | None
        """Return a small file as text, None if there is none. Raises Unreadable."""
        try:
            content = small_file(self.path(path), MOST_TEXT)
        except EnvironmentError as error:
            if error.errno in (2, 20):  # ENOENT, ENOTDIR
                return None
            raise Unreadable('%s: %s' % (path, os.strerror(error.errno) if error.errno else error))
        if content is None:
            raise Unreadable('%s is not a regular file of at most %d bytes' % (path, MOST_TEXT))
        return to_text(content)  # type: ignore[no-any-return]  # of bytes: text

    def machine_id(self):
        # type: () -> str
        try:
            return (self.text('/etc/machine-id') or '').strip()
        except Unreadable:
            return ''


def output(argv, node):
    # type: (list[str], Node) -> str
    """Return the output of a program, which gets half a minute. Raises Unreadable, also if it fails."""
    status, out, err = node.run(argv, OUTPUT_SECONDS)
    if status != 0:
        raise Unreadable('%s ended with status %d' % (argv[0], status), ' '.join((err or out).split())[:200])
    return out


def folders_open(path, node):
    # type: (str, Node) -> bool
    """Say whether everybody may pass the folders above a file, those that links lead through as well."""
    root = os.path.realpath(as_bytes(node.root) or b'/').rstrip(b'/') + b'/'
    parents = set()
    for folder in (os.path.dirname(node.path(path)), os.path.realpath(os.path.dirname(node.path(path)))):
        while folder.startswith(root) and folder not in parents:  # above / is /
            parents.add(folder)
            folder = os.path.dirname(folder)
    try:
        return all(os.stat(folder).st_mode & stat.S_IXOTH for folder in parents)
    except EnvironmentError:
        return False


def everybody_reads(path, node):
    # type: (str, Node) -> bool
    """Say whether everybody may read a file."""
    try:
        return bool(os.stat(node.path(path)).st_mode & stat.S_IROTH) and folders_open(path, node)
    except EnvironmentError:
        return False


def changed_at(path):
    # type: (bytes) -> int
    """Return when a path was last changed in any way, in whole seconds, 0 if it is not there."""
    try:
        return int(os.lstat(path).st_ctime)
    except EnvironmentError:
        return 0


def small_file(path, most):
    # type: (str | bytes, int) -> bytes | None
    """Return the bytes of a regular file; None if it is something else (never waits for a FIFO) or over `most`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        chunks, size = [], 0  # type: tuple[list[bytes], int]
        while True:
            chunk = os.read(descriptor, 1024 * 1024)
            if not chunk:
                return b''.join(chunks)
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                return None
    finally:
        os.close(descriptor)


def iso(epoch):
    # type: (float) -> str
    return time.strftime(ISO, time.gmtime(epoch))


def from_iso(text):
    # type: (Any) -> int | None
    """Return the seconds since the epoch of an iso() text, None for any other text."""
    try:
        return calendar.timegm(time.strptime(text, ISO))
    except (TypeError, ValueError):
        return None
