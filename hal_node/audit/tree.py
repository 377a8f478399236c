# -*- coding: utf-8 -*-
"""What /etc and /boot hold, whoever put it there: one line of text a path, kept in the record.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.

    d 755 0:0                                         a folder: mode, owner and group as numbers
    l 0:0 ../proc/self/mounts                         a link, and where it leads; it is not followed
    f 644 0:0 1523 1795233600123456 131077 5e88...    a file: size, change time in microseconds, inode, keyed hash
    p 600 0:0                                         a FIFO, or s, b, c: never opened

A file of the size, change time and inode that are kept is not read again. The kernel sets that time at each change of a
file, and no program can choose it but by turning the node's clock back; an audit that is `deep` reads all.
"""
from __future__ import absolute_import, division, print_function

import errno
import os
import re
import stat

from .files import NETWORK
from .node import shown_name
from .secrets import hasher
from ..expect.mounts import parse as parse_mounts
from ..expect.process import read_guarded
from ..expect.values import Unreadable, is_text, present

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

ROOTS = ('/etc', '/boot', '/boot/efi')
MOST_PATHS = 20000  # of one root; CentOS 7 has some 3,000
MOST_HASHED = 1024 * 1024 * 1024  # bytes: no kernel and no initramfs is so large
HANG_SECONDS = 600  # a starved node reads slowly; what is mounted below the roots is not looked at
#: A file may change again in the moment in which it is read: so young a change time proves nothing.
FRESH_SECONDS = 2
DIGITS = 32  # of a hash: 128 bits. Without its key nobody finds other content for a hash
#: Where a hash would be, of a content that could not be read.
UNREAD = '-'
TYPES = ((stat.S_ISREG, 'f'), (stat.S_ISDIR, 'd'), (stat.S_ISLNK, 'l'), (stat.S_ISFIFO, 'p'), (stat.S_ISSOCK, 's'),
         (stat.S_ISBLK, 'b'), (stat.S_ISCHR, 'c'))
LINE = re.compile(r'(?:l \d+:\d+ .*|f [0-7]+ \d+:\d+ \d+ (?:\d+|-) \d+ (?:[0-9a-f]+|-)|[dpsbc?] [0-7]+ \d+:\d+)\Z',
                  re.DOTALL)


def wrong(tree):
    # type: (Any) -> str
    """Return what is wrong with the shape of what is kept, '' if nothing."""
    if not isinstance(tree, dict):
        return '"tree" is not a mapping'
    for name in ('paths', 'databases'):
        if not isinstance(tree.get(name), dict):
            return '"tree.%s" is not a mapping' % name
    for path, line in tree['paths'].items():
        if not path.startswith('/') or not is_text(line) or LINE.match(line) is None:
            return '"tree.paths" has a line that is not ours'
    if not all(isinstance(table, dict) and all(is_text(words) for words in table.values())
               for table in tree['databases'].values()):
        return '"tree.databases" has what is not a mapping of texts'
    return '' if is_text(tree.get('key_id')) else '"tree.key_id" is not text'


class Tree:
    """{path: line} of all that was seen, {path: change time}, and what could not be seen."""

    def __init__(self, paths, times, problems, whole):
        # type: (dict[str, str], dict[str, float], list[str], bool) -> None
        self.paths = paths
        self.times = times
        self.problems = problems
        #: Whether a path that is not here is not there.
        self.whole = whole


def walk(node, key, before=None, deep=False):
    # type: (Node, bytes, dict[str, str] | None, bool) -> Tree
    """Return the Tree. Never raises for what is on the node.

    before  {path: line} that was kept with the same key: files with its stamps are not read
    deep    read them all the same
    """
    try:
        mounts = parse_mounts(node.text('/proc/self/mountinfo') or '')
    except Unreadable:
        mounts = {}
    walker = _Walk(node, key, {} if deep else before or {}, mounts)
    tree = Tree({}, {}, [], True)
    answers = read_guarded(lambda root: present(walker.below(root)), list(ROOTS), HANG_SECONDS, 2)
    for root, answer in zip(ROOTS, answers):
        if isinstance(answer, Unreadable):
            tree.problems.append('%s: %s' % (root, answer.reason))
            tree.whole = False
            continue
        tree.problems.extend(answer.value['problems'])
        tree.whole = tree.whole and answer.value['whole']
        for path, (line, when) in answer.value['paths'].items():
            tree.paths[path], tree.times[path] = line, when
    return tree


class _Walk:
    def __init__(self, node, key, before, mounts):
        # type: (Node, bytes, dict[str, str], dict[str, dict[str, Any]]) -> None
        self.node = node
        self.key = key
        self.before = before
        self.mounts = mounts
        self.cut = len(node.path('/')) - 1
        self.now = node.now()

    def below(self, root):
        # type: (str) -> dict[str, Any]
        """Return {paths: {path: [line, change time]}, problems, whole} of a root and all that is below it."""
        paths, problems, whole = {}, [], True
        todo = [self.node.path(root)]
        while todo:
            path = todo.pop()
            shown = shown_name(path[self.cut:])
            try:
                status = os.lstat(path)
                line = self.line(path, shown, status)
                content = os.listdir(path) if stat.S_ISDIR(status.st_mode) and self._mine(shown, root) else ()
            except EnvironmentError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    problems.append('%s: %s' % (shown, os.strerror(error.errno) if error.errno else error))
                    whole = False
                continue
            paths[shown] = [line, status.st_ctime]
            todo.extend(os.path.join(path, name) for name in content
                        if not self._elsewhere(shown_name(os.path.join(path, name)[self.cut:])))
            if len(paths) > MOST_PATHS:
                problems.append('%s: more than %d files; not all were looked at' % (root, MOST_PATHS))
                whole = False
                break
        return {'paths': paths, 'problems': problems, 'whole': whole}

    def _mine(self, shown, root):
        # type: (str, str) -> bool
        """Say whether to look into a folder: not where something else is mounted."""
        return shown == root or shown not in self.mounts

    def _elsewhere(self, shown):
        # type: (str) -> bool
        """Say whether asking for a path may wait for another machine."""
        return self.mounts.get(shown, {}).get('fstype', '').split('.')[0] in NETWORK

    def line(self, path, shown, status):
        # type: (bytes, str, os.stat_result) -> str
        letter = next((letter for test, letter in TYPES if test(status.st_mode)), '?')
        owner = '%d:%d' % (status.st_uid, status.st_gid)
        if letter == 'l':
            return 'l %s %s' % (owner, shown_name(os.readlink(path)))
        line = '%s %o %s' % (letter, stat.S_IMODE(status.st_mode), owner)
        if letter != 'f':
            return line
        fresh = status.st_ctime > self.now - FRESH_SECONDS
        stamps = '%d %s %d' % (status.st_size, '-' if fresh else '%d' % (status.st_ctime * 1000000), status.st_ino)
        kept = self.before.get(shown, '').split(' ')
        if not fresh and kept[0] == 'f' and ' '.join(kept[3:6]) == stamps and kept[6] != UNREAD:
            return '%s %s %s' % (line, stamps, kept[6])
        return '%s %s %s' % (line, stamps, self._digest(path, status))

    def _digest(self, path, status):
        # type: (bytes, os.stat_result) -> str
        """Return the keyed hash of a file's content, UNREAD without a key, or if it is not a regular file any more."""
        if not self.key or status.st_size > MOST_HASHED:
            return UNREAD
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | getattr(os, 'O_NOFOLLOW', 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return UNREAD
            digest = hasher(self.key)
            while True:
                chunk = os.read(descriptor, 1024 * 1024)
                if not chunk:
                    return digest.hexdigest()[:DIGITS]
                digest.update(chunk)
        finally:
            os.close(descriptor)
