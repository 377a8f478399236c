# -*- coding: utf-8 -*-
"""Files as they are: type, owner, mode, content, link target, ACL, immutable flag.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import array
import errno
import fcntl
import grp
import hashlib
import os
import platform
import pwd
import re
import stat
import time

from .node import as_bytes, folders_open, shown_name
from .secrets import hasher, keyed
from ..expect.files import KINDS, NOT_THERE
from ..expect.mounts import parse as parse_mounts
from ..expect.process import read_guarded
from ..expect.values import Unreadable, present, to_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from ..expect.values import Reading  # noqa: F401
    from .node import Node  # noqa: F401

__metaclass__ = type

LARGE = 64 * 1024 * 1024  # bytes; above it content is compared only if the size is the recorded one
MOST_HASHED = 1024 * 1024 * 1024
HASH_SECONDS = 15  # less than what a guarded read may take
MOST_KEPT = 64 * 1024  # bytes of a text whose diff an audit can show
MOST_HANGS = 3  # of one file system; then the rest of it is not asked
IMMUTABLE = 0x10  # FS_IMMUTABLE_FL
#: FS_IOC_GETFLAGS is _IOR('f', 1, long), and PowerPC counts directions otherwise.
GET_FLAGS = 0x40086601 if platform.machine().startswith(('ppc', 'mips', 'sparc', 'alpha')) else 0x80086601
NETWORK = ('nfs', 'nfs4', 'gpfs', 'cifs', 'smb3', 'lustre', 'ceph', 'glusterfs', 'beegfs', 'fuse', '9p', 'autofs')
ACL_WORDS = 500  # paths in a call of getfacl


def observe_files(requests, node, key):
    # type: (list[dict[str, Any]], Node, bytes) -> list[Reading | Unreadable]
    """Return [present({attributes}) or Unreadable] of [{path, secret, hash, size, sha1, keep}], in order.

    hash    'sha256', 'keyed', or None: whichever is right for the file as it is now
    size    the recorded one; None while sealing
    sha1    whether to say the checksum that Ansible has of rendered content
    keep    whether to return small readable text as `content`, unless keep/<sha256> is there
    """
    def read(request):
        # type: (dict[str, Any]) -> Reading
        reachable = folders_open(request['path'], node)
        return present(_caught(node.path(request['path']), dict(request, reachable=reachable), key))

    results = {}  # type: dict[int, Reading | Unreadable]
    for positions in _by_file_system([request['path'] for request in requests], node):
        answers = read_guarded(read, [requests[position] for position in positions], most_hangs=MOST_HANGS)
        for position, answer in zip(positions, answers):
            results[position] = answer
    return [results[position] for position in range(len(requests))]


def _by_file_system(paths, node):
    # type: (list[str], Node) -> list[list[int]]
    """Return lists of positions: one for each network file system, since all of it hangs, and one for the rest."""
    try:
        mounts = parse_mounts(node.text('/proc/self/mountinfo') or '')
    except Unreadable:
        mounts = {}
    remote = sorted((path for path, mount in mounts.items() if mount['fstype'].split('.')[0] in NETWORK),
                    key=len, reverse=True)
    groups = {}  # type: dict[str, list[int]]
    for position, path in enumerate(paths):
        where = next((point for point in remote if path == point or path.startswith(point.rstrip('/') + '/')), '')
        groups.setdefault(where, []).append(position)
    return [groups[where] for where in sorted(groups)]


def _caught(path, request, key):
    # type: (bytes, dict[str, Any], bytes) -> dict[str, Any]
    try:
        return file_attributes(path, request, key)
    except EnvironmentError as error:
        if error.errno in NOT_THERE:
            return {'state': 'absent'}
        raise Unreadable('%s: %s' % (request['path'], os.strerror(error.errno) if error.errno else error))


def file_attributes(path, request, key):
    # type: (bytes, dict[str, Any], bytes) -> dict[str, Any]
    """Return the attributes of one path. Raises Unreadable and EnvironmentError."""
    status = os.lstat(path)
    out = {'state': 'present', 'type': kind(status.st_mode), 'owner': user_name(status.st_uid),
           'group': group_name(status.st_gid), 'since': status.st_mtime}
    if out['type'] == 'link':
        out['target'] = shown_name(os.readlink(path))
        return out
    out['mode'] = '%04o' % stat.S_IMODE(status.st_mode)
    if out['type'] not in ('file', 'directory'):
        return out  # a FIFO or a device is not opened
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | getattr(os, 'O_NOFOLLOW', 0))
    except EnvironmentError as error:
        if error.errno in NOT_THERE:
            raise
        raise Unreadable('%s: %s' % (request['path'], os.strerror(error.errno or 0)))
    try:
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino):
            raise Unreadable('%s was replaced while it was read' % request['path'])
        out['immutable'] = immutable(descriptor)
        if out['type'] == 'file':
            _content(descriptor, opened, out, request, key)
    finally:
        os.close(descriptor)
    return out


def _content(descriptor, status, out, request, key):
    # type: (int, os.stat_result, dict[str, Any], dict[str, Any], bytes) -> None
    out['size'] = status.st_size
    protected = bool(request.get('secret')) or not status.st_mode & stat.S_IROTH or not request.get('reachable', True)
    how = request.get('hash') or ('keyed' if protected else 'sha256')
    if request.get('size') is not None and status.st_size > LARGE and status.st_size != request['size']:
        return  # another size is another content
    if status.st_size > MOST_HASHED:
        out['unhashed'] = 'larger than %d MiB: only its size is compared' % (MOST_HASHED // 1024 // 1024)
        return
    if how == 'keyed' and not key:
        out['unhashed'] = 'the key of its hash is lost'
        return
    digest = hasher(key) if how == 'keyed' else hashlib.sha256()
    plain = hashlib.sha256() if how == 'keyed' and request.get('keep') else None
    sha1 = hashlib.sha1() if request.get('sha1') else None
    readable = request.get('keep') and not protected and status.st_size <= MOST_KEPT
    kept = [] if readable else None  # type: list[bytes] | None
    deadline = time.time() + HASH_SECONDS
    while True:
        chunk = os.read(descriptor, 1024 * 1024)
        if not chunk:
            break
        digest.update(chunk)
        if plain:
            plain.update(chunk)
        if sha1:
            sha1.update(chunk)
        if kept is not None:
            kept.append(chunk)
        if time.time() > deadline:
            out['unhashed'] = 'reading it takes more than %d s: only its size is compared' % HASH_SECONDS
            return
    out[how] = digest.hexdigest()
    if plain:
        out['plain'] = plain.hexdigest()  # for who seals, to compare with an older record: never recorded
    if sha1:
        out['sha1'] = sha1.hexdigest()
        if key:
            out['sha1_keyed'] = keyed(key, out['sha1'])
    if kept is not None and os.path.exists(os.path.join(request['keep'], as_bytes(digest.hexdigest()))):
        return
    text = _text(b''.join(kept)) if kept is not None else None
    if text is not None and len(text) <= MOST_KEPT:
        out['content'] = text


def _text(content):
    # type: (bytes) -> str | None
    try:
        text = content.decode('utf-8')
    except UnicodeDecodeError:
        return None
    return None if '\0' in text else text


def immutable(descriptor):
    # type: (int) -> bool
    """Say whether not even root may change it. A file system without such flags has no immutable files."""
    flags = array.array('l', [0])
    try:
        fcntl.ioctl(descriptor, GET_FLAGS, flags, True)
    except EnvironmentError as error:
        if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES):
            return False
        raise
    return bool(flags[0] & IMMUTABLE)


def kind(mode):
    # type: (int) -> str
    for test, name in KINDS:
        if test(mode):
            return name
    return 'unknown'


def user_name(number, _known={}):  # noqa: B006 - a cache: LDAP may be asked for it
    # type: (int, dict[int, str]) -> str
    if number not in _known:
        try:
            _known[number] = to_text(pwd.getpwuid(number).pw_name)
        except KeyError:
            _known[number] = '%d' % number
    return _known[number]


def group_name(number, _known={}):  # noqa: B006 - a cache: LDAP may be asked for it
    # type: (int, dict[int, str]) -> str
    if number not in _known:
        try:
            _known[number] = to_text(grp.getgrgid(number).gr_name)
        except KeyError:
            _known[number] = '%d' % number
    return _known[number]


def read_acls(paths, node):
    # type: (list[str], Node) -> dict[str, list[str]]
    """Return {path: [lines beyond the mode]} of the paths that have such. Raises Unreadable without getfacl."""
    acls, asked = {}, {node.path(path): path for path in paths}
    todo = sorted(asked)
    while todo:
        # One that went away since makes status 1, the others are printed.
        argv = ['getfacl', '--absolute-names', '--no-effective', '--skip-base', '--']  # type: list[str | bytes]
        _status, out, _err = node.run(argv + list(todo[:ACL_WORDS]), 30)
        todo = todo[ACL_WORDS:]
        for path, lines in parse_acls(out).items():
            if path in asked:
                acls[asked[path]] = lines
    return acls


def parse_acls(out):
    # type: (str) -> dict[bytes, list[str]]
    """Return {path as bytes: [lines beyond the mode]} of getfacl's output. Pure."""
    acls = {}
    for block in out.split('\n\n'):
        lines = [line.split('\t')[0].rstrip() for line in block.split('\n') if line.strip()]
        if lines and lines[0].startswith('# file: '):
            beyond = [line for line in lines if not line.startswith(('#', 'user::', 'other::'))]
            if not any(line.startswith('mask::') for line in beyond):  # then the group's are in the mode
                beyond = [line for line in beyond if not line.startswith('group::')]
            acls[_plain(lines[0][len('# file: '):])] = sorted(beyond)
    return acls


def _plain(text):
    # type: (str) -> bytes
    """Undo getfacl's octal escapes, which stand for bytes."""
    return re.sub(br'\\([0-7]{3})', lambda hit: bytes(bytearray([int(hit.group(1), 8)])), as_bytes(text))
