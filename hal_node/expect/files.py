# -*- coding: utf-8 -*-
"""Reader `file`: one property of a path. Also the lines a `select` keeps, which `command` shares.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import grp
import hashlib
import os
import pwd
import stat

from .matchers import regex
from .process import read_guarded
from .values import Reading, Unreadable, lines_of, missing, present, to_bytes, to_text

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

__metaclass__ = type

MOST_CONTENT = 4 * 1024 * 1024  # bytes; compare larger files by sha256
KINDS = (
    (stat.S_ISREG, 'file'), (stat.S_ISDIR, 'directory'), (stat.S_ISLNK, 'link'), (stat.S_ISSOCK, 'socket'),
    (stat.S_ISFIFO, 'fifo'), (stat.S_ISBLK, 'block'), (stat.S_ISCHR, 'char'),
)
NOT_THERE = (errno.ENOENT, errno.ENOTDIR)


def read_files(requests):
    # type: (list[dict[str, Any]]) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order."""
    return read_guarded(read_file, requests)


def read_file(request):
    # type: (dict[str, Any]) -> Reading
    """Return the Reading of one {path, read, select}. Raises Unreadable."""
    path = request['path']
    what = request.get('read') or 'content'
    if not path.startswith('/'):
        raise Unreadable('path has to be absolute: %s' % path)
    try:
        return _read(path, what, request.get('select'))
    except (IOError, OSError) as error:
        if error.errno in NOT_THERE:  # it went away between two calls, or is a link to nothing
            return missing('%s does not exist' % path, False if what == 'exists' else None)
        raise Unreadable('%s: %s' % (path, os.strerror(error.errno) if error.errno else error))


def _read(path, what, select):
    # type: (str, str, str | None) -> Reading
    itself = os.lstat(to_bytes(path))
    is_link = stat.S_ISLNK(itself.st_mode)
    if what == 'exists':
        return present(True)
    if what == 'type':
        return present(_kind(itself.st_mode))
    if what == 'target':
        if not is_link:
            return Reading(has_value=False, note='%s is a %s, not a link' % (path, _kind(itself.st_mode)))
        return present(to_text(os.readlink(to_bytes(path))))
    try:
        status = os.stat(to_bytes(path))
    except OSError as error:
        if is_link and error.errno in NOT_THERE:
            target = to_text(os.readlink(to_bytes(path)))
            return Reading(has_value=False, note='%s is a link to %s, which does not exist' % (path, target))
        raise
    if what == 'mode':
        return present('%04o' % stat.S_IMODE(status.st_mode), scale='mode')
    if what == 'owner':
        return _named(status.st_uid, lambda: pwd.getpwuid(status.st_uid).pw_name)
    if what == 'group':
        return _named(status.st_gid, lambda: grp.getgrgid(status.st_gid).gr_name)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable('%s is a %s, so it has no %s' % (path, _kind(status.st_mode), what))
    if what == 'size':
        return present(status.st_size)
    if what == 'sha256':
        return present(_sha256(path))
    if what == 'content':
        return text_reading(_content(path), select, path)
    if what == 'lines':
        return text_reading(_content(path), select, path, as_lines=True)
    raise Unreadable('a file has no "%s" to read' % what)


def text_reading(text, select, source, as_lines=False):
    # type: (str, str | None, str, bool) -> Reading
    """Return the Reading of a text: whole, or as its lines, or just what `select` keeps of them."""
    lines = lines_of(text)
    if select is None:
        if as_lines:
            return present(lines)
        return present(text, lines)
    pattern = regex(select)
    kept = []
    for line in lines:
        hit = pattern.match(line.strip())
        if hit:
            kept.append((hit.group(1) or '') if pattern.groups else line.strip())
    if not kept:
        return Reading(exists=False, has_value=False, items=[], note='no line of %s matches "%s"' % (source, select))
    return present(kept[0] if len(kept) == 1 and not as_lines else kept, kept)


def _kind(mode):
    # type: (int) -> str
    for test, name in KINDS:
        if test(mode):
            return name
    return 'unknown kind of file'


def _named(number, look_up):
    # type: (int, Callable[[], str]) -> Reading
    try:
        return present(to_text(look_up()), also=[number])
    except KeyError:  # no such user: the number is all there is
        return present(number)


def _open(path):
    # type: (str) -> int
    # Without O_NONBLOCK a FIFO that took the file's place since would block.
    return os.open(to_bytes(path), os.O_RDONLY | os.O_NONBLOCK)


def _content(path):
    # type: (str) -> str
    """Return the file as text, without the NUL that ends device tree properties. The kernel says size 0 in /proc."""
    descriptor = _open(path)
    try:
        chunks, size = [], 0
        while True:
            chunk = os.read(descriptor, 1024 * 1024)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
            if size > MOST_CONTENT:
                raise Unreadable('%s is larger than %d bytes: compare its sha256' % (path, MOST_CONTENT))
    finally:
        os.close(descriptor)
    text = to_text(b''.join(chunks).rstrip(b'\0'))  # type: str
    return text[:-1] if text.endswith('\n') else text


def _sha256(path):
    # type: (str) -> str
    digest = hashlib.sha256()
    descriptor = _open(path)
    try:
        while True:
            chunk = os.read(descriptor, 1024 * 1024)
            if not chunk:
                return digest.hexdigest()
            digest.update(chunk)
    finally:
        os.close(descriptor)
