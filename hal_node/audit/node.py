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

__metaclass__ = type

ROOT = '/'
STATE = '/var/lib/hal'
MOST_TEXT = 4 * 1024 * 1024  # bytes of a table such as /etc/passwd
OUTPUT_SECONDS = 30
ISO = '%Y-%m-%dT%H:%M:%SZ'
ESCAPE = 'hal_escape'


def _escape(error):
    """Show bytes that are no UTF-8 as \\xNN. Python 2.7 has backslashreplace for encoding only."""
    wrong = bytearray(error.object[error.start:error.end])
    return u''.join(u'\\x%02x' % byte for byte in wrong), error.end


codecs.register_error(ESCAPE, _escape)


def shown_name(name):
    """Return a path as text; what is no UTF-8 in it, and what would break a line, is escaped."""
    text = name.decode('utf-8', ESCAPE) if isinstance(name, bytes) else name
    return ''.join(char if char >= ' ' and char != '\x7f' else '\\x%02x' % ord(char) for char in text)


def as_bytes(text):
    """Return what the system calls take under every Python and locale."""
    return text if isinstance(text, bytes) else text.encode('utf-8', 'surrogatepass' if str is not bytes else 'strict')


class Node:
    """Where files are, what time it is, how programs run."""

    def __init__(self, root=None, runner=run, clock=time.time):
        self.root = ROOT if root is None else root
        self.clock = clock
        self._runner = runner

    def path(self, path):
        """Return the bytes of an absolute path, below the root."""
        return as_bytes(self.root.rstrip('/')) + as_bytes(path)

    def native(self, path):
        """Return the text of an absolute path, below the root."""
        return self.path(path) if str is bytes else os.fsdecode(self.path(path))

    def state(self, name=''):
        """Return the path of a file of ours."""
        return self.path(os.path.join(STATE, name) if name else STATE)

    def now(self):
        return self.clock()

    def run(self, argv, timeout_seconds=20):
        """Return (exit status, output, errors). Raises Unreadable."""
        return self._runner([argv[0]] + [as_bytes(word) for word in argv[1:]], timeout_seconds)

    def text(self, path):
        """Return a small file as text, None if there is none. Raises Unreadable."""
        try:
            content = small_file(self.path(path), MOST_TEXT)
        except EnvironmentError as error:
            if error.errno in (2, 20):  # ENOENT, ENOTDIR
                return None
            raise Unreadable('%s: %s' % (path, os.strerror(error.errno) if error.errno else error))
        if content is None:
            raise Unreadable('%s is not a regular file of at most %d bytes' % (path, MOST_TEXT))
        return to_text(content)

    def machine_id(self):
        try:
            return (self.text('/etc/machine-id') or '').strip()
        except Unreadable:
            return ''


def output(argv, node):
    """Return the output of a program, which gets half a minute. Raises Unreadable, also if it fails."""
    status, out, err = node.run(argv, OUTPUT_SECONDS)
    if status != 0:
        raise Unreadable('%s ended with status %d' % (argv[0], status), ' '.join((err or out).split())[:200])
    return out


def folders_open(path, node):
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
    """Say whether everybody may read a file."""
    try:
        return bool(os.stat(node.path(path)).st_mode & stat.S_IROTH) and folders_open(path, node)
    except EnvironmentError:
        return False


def changed_at(path):
    """Return when a path was last changed in any way, in whole seconds, 0 if it is not there."""
    try:
        return int(os.lstat(path).st_ctime)
    except EnvironmentError:
        return 0


def small_file(path, most):
    """Return the bytes of a regular file; None if it is something else (never waits for a FIFO) or over `most`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        chunks, size = [], 0
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
    return time.strftime(ISO, time.gmtime(epoch))


def from_iso(text):
    """Return the seconds since the epoch of an iso() text, None if it is none."""
    try:
        return calendar.timegm(time.strptime(text, ISO))
    except (TypeError, ValueError):
        return None
