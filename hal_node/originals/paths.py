# -*- coding: utf-8 -*-
"""A path of a node, kept whole and put back: content, mode, owner, times, link target, extended attributes.

ACLs and SELinux contexts are extended attributes, too. Python 2.7 has no calls for them: the C library has.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import base64
import ctypes
import errno
import hashlib
import os
import stat
import tempfile

from ..audit.files import group_name, kind, user_name
from ..audit.node import as_bytes, shown_name
from ..expect.files import NOT_THERE
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

__metaclass__ = type

ABSENT = {'state': 'absent'}
KEPT = ('file', 'directory', 'link')
CHUNK = 1024 * 1024
#: A file system without them, or an attribute that a container may not set.
NO_ATTRIBUTES = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.ENODATA)
#: What is the same after a path was put back.
COMPARED = ('state', 'type', 'mode', 'uid', 'gid', 'target', 'sha256', 'attributes')
#: What Python 2.7 loses of a time.
CLOSE_NANOSECONDS = 2000
_C = ctypes.CDLL(None, use_errno=True)


# ---------------------------------------------------------------- as it is
def status_of(path):
    # type: (bytes) -> os.stat_result | None
    """Return the lstat of a path as bytes, None where nothing is. Raises EnvironmentError."""
    try:
        return os.lstat(path)
    except EnvironmentError as error:
        if error.errno in NOT_THERE:
            return None
        raise


def described(path, content=None):
    # type: (bytes, Any) -> dict[str, Any]
    """Return what is at a path, as bytes: {state: absent}, or type, mode, uid, gid, times, target, sha256, attributes.

    content  what gets each chunk of a regular file's content; None reads it for its hash alone, False not at all
    Raises Unreadable for what is neither file, directory nor link, and EnvironmentError.
    """
    status = status_of(path)
    if status is None:
        return dict(ABSENT)
    out = {'state': 'present', 'type': kind(status.st_mode), 'uid': status.st_uid, 'gid': status.st_gid,
           'owner': user_name(status.st_uid), 'group': group_name(status.st_gid),
           'mode': '%04o' % stat.S_IMODE(status.st_mode), 'size': status.st_size,
           'mtime_ns': _nanoseconds(status, 'mtime'), 'atime_ns': _nanoseconds(status, 'atime')}  # type: dict[str, Any]
    if out['type'] not in KEPT:
        raise Unreadable('%s is %s %s, which cannot be kept' % (
            shown_name(path), 'an' if out['type'][0] in 'aeiou' else 'a', out['type']))
    if out['type'] == 'link':
        out['target'] = base64.b64encode(os.readlink(path)).decode('ascii')
    if out['type'] == 'file' and content is not False:
        out['sha256'] = _read(path, status, content)
    out['attributes'] = read_attributes(path)
    return out


def _nanoseconds(status, name):
    # type: (os.stat_result, str) -> int
    exact = getattr(status, 'st_%s_ns' % name, None)
    return exact if exact is not None else int(getattr(status, 'st_' + name) * 1e9)


def _read(path, status, content):
    # type: (bytes, os.stat_result, Callable[[bytes], object] | None) -> str
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    try:
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino):
            raise Unreadable('%s was replaced while it was read' % shown_name(path))
        while True:
            chunk = os.read(descriptor, CHUNK)
            if not chunk:
                return digest.hexdigest()
            digest.update(chunk)
            if content:
                content(chunk)
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- extended attributes
def read_attributes(path):
    # type: (bytes) -> dict[str, str]
    """Return {name: base64 of its value} of a path, as bytes. Raises EnvironmentError."""
    names = _call(_C.llistxattr, path)
    return {name.decode('ascii', 'replace'): base64.b64encode(_call(_C.lgetxattr, path, name)).decode('ascii')
            for name in names.split(b'\0') if name}


def _call(function, *words):
    # type: (Any, *Any) -> bytes
    """Return the bytes that a function of the C library gives; none where the file system has no attributes."""
    while True:
        size = function(*(words + (None, ctypes.c_size_t(0))))
        if size <= 0:
            return b'' if size == 0 else _failed(words)
        room = ctypes.create_string_buffer(size)
        length = function(*(words + (room, ctypes.c_size_t(size))))
        if length >= 0:
            return room.raw[:length]
        if ctypes.get_errno() != errno.ERANGE:  # ERANGE: it grew meanwhile
            return _failed(words)


def _failed(words):
    # type: (tuple[Any, ...]) -> bytes
    number = ctypes.get_errno()
    if number in NO_ATTRIBUTES:
        return b''
    raise OSError(number, os.strerror(number), words[0])


def _set_attributes(path, wanted):
    # type: (bytes, dict[str, str]) -> None
    """Give a path exactly these attributes. Raises EnvironmentError."""
    now = read_attributes(path)
    for name in sorted(set(now) - set(wanted)):
        if _C.lremovexattr(path, as_bytes(name)) != 0 and not name.startswith('security.'):
            _failed((path,))
    for name, text in sorted(wanted.items()):
        value = base64.b64decode(as_bytes(text))
        if now.get(name) != text and _C.lsetxattr(path, as_bytes(name), value, ctypes.c_size_t(len(value)), 0) != 0:
            _failed((path,))


# ---------------------------------------------------------------- put back
def put_back(path, was, stored=None, content=True):
    # type: (bytes, dict[str, Any], bytes | None, bool) -> None
    """Make a path what it was; a directory keeps what is in it. Raises EnvironmentError.

    path     as bytes
    was      what `described` gave
    stored   path of the kept content of a regular file
    content  False puts back mode, owner and attributes alone
    """
    status = status_of(path)
    if was['state'] == 'absent':
        if status is not None:
            (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(path)
        return
    there = None if status is None else kind(status.st_mode)
    if there == 'directory' and was['type'] != 'directory':
        os.rmdir(path)
    elif there not in (None, 'directory') and was['type'] == 'directory':
        os.unlink(path)
        there = None
    if was['type'] == 'directory':
        if there is None:
            os.mkdir(path, 0o700)
        _as_it_was(path, was)
    elif was['type'] == 'link' or content or there is None:
        _replace(path, was, stored)
    else:
        _as_it_was(path, was)


def _replace(path, was, stored):
    # type: (bytes, dict[str, Any], bytes | None) -> None
    """Make all of it next to the path, then move it there: no reader sees half of it, or one that others may read."""
    folder = tempfile.mkdtemp(b'', b'.hal-originals-', os.path.dirname(path))
    beside = os.path.join(folder, b'new')
    try:
        if was['type'] == 'link':
            os.symlink(base64.b64decode(as_bytes(was['target'])), beside)
        elif stored is None:
            raise Unreadable('its content was not kept')
        else:
            _copy(stored, beside)
        _as_it_was(beside, was)
        os.rename(beside, path)
    finally:
        if status_of(beside) is not None:
            os.unlink(beside)
        os.rmdir(folder)


def _copy(stored, path):
    # type: (bytes, bytes) -> None
    source = os.open(stored, os.O_RDONLY)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            while True:
                chunk = os.read(source, CHUNK)
                if not chunk:
                    break
                while chunk:
                    chunk = chunk[os.write(target, chunk):]
            os.fsync(target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _as_it_was(path, was):
    # type: (bytes, dict[str, Any]) -> None
    """Owner before mode: chown takes set-user bits. Attributes before times, which come last."""
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != (was['uid'], was['gid']):
        os.lchown(path, was['uid'], was['gid'])
    if was['type'] != 'link':
        os.chmod(path, int(was['mode'], 8))
    _set_attributes(path, was.get('attributes') or {})
    set_times(path, was)


def set_times(path, was):
    # type: (bytes, dict[str, Any]) -> None
    """Give a path the times that it had; Python 2.7 cannot do it for links, and has microseconds."""
    if hasattr(os, 'fsencode'):
        os.utime(path, ns=(was['atime_ns'], was['mtime_ns']), follow_symlinks=False)
    elif was['type'] != 'link':
        os.utime(path, (was['atime_ns'] / 1e9, was['mtime_ns'] / 1e9))


def same(was, now):
    # type: (dict[str, Any], dict[str, Any]) -> bool
    """Say whether a path is what it was: of a file whose content counts, its time as well."""
    written = 'sha256' in was and 'sha256' in now
    if written and abs(was['mtime_ns'] - now['mtime_ns']) > CLOSE_NANOSECONDS:
        return False
    return all(was.get(name) == now.get(name) for name in COMPARED)
