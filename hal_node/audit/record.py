# -*- coding: utf-8 -*-
"""The record of a node: read, judge, pack, write. It is replaced as a whole or not at all, and is root's alone.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import base64
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import time
import zlib

from .node import PYTHON_2, as_bytes, small_file
from .secrets import LENGTH, make_key
from .tree import wrong as tree_wrong
from ..expect.values import is_text

MYPY = False
if MYPY:
    from typing import Any, Collection, Iterator  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

FORMAT = 1
MOST_RECORD = 16 * 1024 * 1024  # bytes; the controller takes no longer one (hal_inventory/bounded.py)
NAME = 'record.json'
KEY = 'record.key'
LOCK_SECONDS = 30
#: What has to be root's alone, and its mode.
OURS = (('', 0o700), (NAME, 0o600), (KEY, 0o600), ('content', 0o700))
NUMBER = (int, float, long) if PYTHON_2 else (int, float)  # type: ignore[name-defined]  # noqa: F821

#: What a record may be, beside ok.
NONE, CORRUPT, FOREIGN, NEWER = 'none', 'corrupt', 'foreign', 'newer'


class RecordError(Exception):
    """A record that cannot be used: status is none, corrupt, foreign or newer; the message is one line."""

    def __init__(self, status, reason):
        # type: (str, str) -> None
        Exception.__init__(self, reason)
        self.status = status
        self.reason = reason


class WriteError(Exception):
    """The record was not written; the old one is as it was. The message is one line."""


def to_bytes(record):
    # type: (dict[str, Any]) -> bytes
    """Return the bytes of a record. Same record, same bytes."""
    return json.dumps(record, sort_keys=True, ensure_ascii=True, separators=(',', ':')).encode('ascii')


def digest(content):
    # type: (bytes) -> str
    return hashlib.sha256(content).hexdigest()


def pack(content):
    # type: (bytes) -> str
    return base64.b64encode(zlib.compress(content)).decode('ascii')


def unpack(text):
    # type: (str) -> bytes
    """Return the bytes of a packed record. Raises RecordError."""
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(as_bytes(text)), MOST_RECORD)
        if stream.unconsumed_tail:
            raise RecordError(CORRUPT, 'larger than %d bytes' % MOST_RECORD)
        if stream.flush():
            raise ValueError('cut off')
    except (ValueError, TypeError, zlib.error):  # binascii.Error is a ValueError, in Python 2 a plain Exception
        raise RecordError(CORRUPT, 'it cannot be unpacked')
    except RecordError:
        raise
    except Exception:  # noqa: B902 - binascii.Error of Python 2
        raise RecordError(CORRUPT, 'it cannot be unpacked')
    return content


def judge(content, node, machine_id):
    # type: (bytes, str, str) -> dict[str, Any]
    """Return the record that `content` is, if it is one of this node. Raises RecordError."""
    try:
        record = json.loads(content.decode('utf-8'))
    except (ValueError, RuntimeError):  # RuntimeError: nested too deep
        raise RecordError(CORRUPT, 'not JSON: cut off, or overwritten')
    if not isinstance(record, dict) or not _is_number(record.get('format')):
        raise RecordError(CORRUPT, 'JSON, but no record: it has no format')
    if record['format'] > FORMAT:
        raise RecordError(NEWER, 'format %s; this version knows up to %d' % (record['format'], FORMAT))
    wrong = _wrong(record)
    if wrong:
        raise RecordError(CORRUPT, wrong)
    if record['node'] != node:
        raise RecordError(FOREIGN, 'it is of %s' % record['node'])
    if record['machine_id'] != machine_id:
        raise RecordError(FOREIGN, 'it is of another machine or installation of this name (machine-id %s, here %s)' % (
            record['machine_id'][:8] or 'none', machine_id[:8] or 'none'))
    return record


def _is_number(value):
    # type: (object) -> bool
    return isinstance(value, NUMBER) and not isinstance(value, bool)


def _wrong(record):
    # type: (dict[str, Any]) -> str
    """Return what is wrong with the shape of a record, '' if nothing."""
    for name in ('node', 'machine_id', 'sealed_at', 'run', 'commit'):
        if not is_text(record.get(name)):
            return '"%s" is not text' % name
    if not _is_number(record.get('serial')):
        return '"serial" is not a number'
    for name in ('packages', 'effective', 'roles'):
        if not isinstance(record.get(name), dict):
            return '"%s" is not a mapping' % name
    explained = record['packages'].get('explained')
    if explained is not None and not (
            isinstance(explained, dict) and all(is_text(reason) for reason in explained.values())):
        return '"packages.explained" is not a mapping of texts'
    if not all(_is_number(when) for when in record['effective'].values()):
        return '"effective" has what is not a number'
    if not all(isinstance(role, dict) for role in record['roles'].values()):
        return '"roles" has what is not a mapping'
    if record.get('tree') is not None and tree_wrong(record['tree']):
        return tree_wrong(record['tree'])
    if not isinstance(record.get('entries'), list):
        return '"entries" is not a list'
    for number, entry in enumerate(record['entries']):
        wrong = entry_wrong(entry)
        if wrong:
            return 'entry %d: %s' % (number + 1, wrong)
    return ''


def entry_wrong(entry):
    # type: (Any) -> str
    """Return what is wrong with the shape of an entry, '' if nothing. Also for those of a request."""
    if not isinstance(entry, dict):
        return 'not a mapping'
    resource = entry.get('resource')  # type: Any
    if not is_text(resource) or not resource.partition(':')[0] or not resource.partition(':')[2]:
        return '"resource" is not kind:name'
    if resource.startswith(('file:', 'line:')) and not resource[5:].startswith('/'):
        return '"resource" has no absolute path'
    for name in ('declared', 'observed', 'orphaned'):
        if not isinstance(entry.get(name, {}), dict):
            return '"%s" is not a mapping' % name
    for name in ('role', 'task', 'source', 'commit', 'converged_at', 'inputs_hash', 'unreadable', 'key_id'):
        if not is_text(entry.get(name, '')):
            return '"%s" is not text' % name
    if not isinstance(entry.get('changed', True), bool):
        return '"changed" is neither true nor false'
    units = entry.get('units', [])
    if not isinstance(units, list) or not all(is_text(unit) for unit in units):
        return '"units" is not a list of texts'
    declared = entry.get('declared', {})
    for name in ('lines', 'lines_keyed', 'version', 'acl'):
        value = declared.get(name, [])
        if not isinstance(value, list) or not all(is_text(word) for word in value):
            return '"declared.%s" is not a list of texts' % name
    for name in ('block', 'regexp', 'file', 'sha1', 'state', 'socket'):
        if not is_text(declared.get(name, '')):
            return '"declared.%s" is not text' % name
    if not _is_number(entry.get('observed_since', 0)):
        return '"observed_since" is not a number'
    return ''


def read_content(node):
    # type: (Node) -> bytes
    """Return the bytes of the node's record. Raises RecordError."""
    try:
        content = small_file(node.state(NAME), MOST_RECORD)
    except EnvironmentError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise RecordError(NONE, 'there is no record on the node')
        raise RecordError(CORRUPT, 'it cannot be read: %s' % os.strerror(error.errno or 0))
    if content is None:
        raise RecordError(CORRUPT, 'not a regular file of at most %d bytes' % MOST_RECORD)
    return content


def choose(name, packed, node):
    # type: (str, str | None, Node) -> tuple[dict[str, Any] | None, dict[str, Any]]
    """Return (the record that counts, or None; what is said of it): the node's own, or else the controller's copy.

    packed  the copy, or nothing
    """
    status, reason, content = 'ok', '', b''
    own = copy = None
    copied = b''
    try:
        content = read_content(node)
        own = judge(content, name, node.machine_id())
    except RecordError as error:
        status, reason = error.status, error.reason
    try:
        if packed:
            copied = unpack(packed)
            copy = judge(copied, name, node.machine_id())
    except RecordError as error:
        reason += '%sthe copy of the controller is %s: %s' % ('; ' if reason else '', error.status, error.reason)
    if own and copy:
        if own['serial'] < copy['serial']:
            status, reason = 'older', 'seal %d is here, the controller has seal %d' % (own['serial'], copy['serial'])
        elif own['serial'] == copy['serial'] and content != copied:
            status, reason = 'differs', 'it is not what was sealed as number %d' % own['serial']
    used = 'own' if status == 'ok' else 'copy' if copy else 'none'
    record = {'own': own, 'copy': copy, 'none': None}[used]
    said = {'status': status, 'reason': reason, 'used': used, 'serial': 0, 'digest': '', 'sealed_at': '', 'commit': '',
            'roles': {}, 'problem': exposed(node)}
    if record:
        said.update({name: record[name] for name in ('serial', 'sealed_at', 'commit', 'roles')})
        said['digest'] = digest(content if used == 'own' else copied)
    if used == 'own' and content != copied:
        said['packed'] = pack(content)
    return record, said


def exposed(node):
    # type: (Node) -> str
    """Return why somebody other than root could read or write the record, '' if nobody can."""
    for name, wanted in OURS:
        path = node.state(name)
        try:
            status = os.stat(path)
        except EnvironmentError:
            continue
        if status.st_uid not in (0, os.geteuid()):
            return '%s belongs to the user with number %d, it should be root\'s' % (
                path.decode('utf-8', 'replace'), status.st_uid)
        if stat.S_IMODE(status.st_mode) & ~wanted:
            return '%s has mode %04o, it should have %04o' % (
                path.decode('utf-8', 'replace'), stat.S_IMODE(status.st_mode), wanted)
    return ''


def prepare(node):
    # type: (Node) -> None
    """Make the folders. Raises WriteError."""
    with _one_line('%s cannot be made' % node.state().decode('utf-8', 'replace')):
        _folder(node.state())
        _folder(node.state('content'))
        for name, mode in OURS:
            _own(node.state(name), mode)


def _own(path, mode):
    # type: (bytes, int) -> None
    """Make a file or folder root's alone, if it is there."""
    try:
        status = os.stat(path)
    except EnvironmentError:
        return
    if status.st_uid not in (0, os.geteuid()):
        os.chown(path, os.geteuid(), os.getegid())
    if stat.S_IMODE(status.st_mode) & ~mode:
        os.chmod(path, mode)


def _folder(path):
    # type: (bytes) -> None
    """Make a folder and those above it, unless they are there. Another run may be doing the same."""
    try:
        os.makedirs(path, 0o700)
    except EnvironmentError as error:
        if error.errno != errno.EEXIST or not os.path.isdir(path):
            raise


def ensure_key(node):
    # type: (Node) -> tuple[bytes, str]
    """Return (the key of keyed hashes, '' or what was wrong with it so that it is new: gone, not usable).

    Raises WriteError.
    """
    with _one_line('the key of this node cannot be written'):
        try:
            key = small_file(node.state(KEY), LENGTH)
        except EnvironmentError as error:
            if error.errno != errno.ENOENT:
                raise
            key = b''
        if key is not None and len(key) == LENGTH:
            return key, ''
        new = make_key()
        replace(node.state(KEY), new)
        return new, 'gone' if key == b'' else 'not usable'


@contextlib.contextmanager
def _one_line(what):
    # type: (str) -> Iterator[None]
    try:
        yield
    except EnvironmentError as error:
        raise WriteError('%s: %s' % (what, os.strerror(error.errno) if error.errno else error))


@contextlib.contextmanager
def locked(node, seconds=LOCK_SECONDS):
    # type: (Node, float) -> Iterator[None]
    """Hold the lock of who writes records. Raises WriteError when another has it for too long."""
    with _one_line('%s cannot be opened' % node.state('record.lock').decode('utf-8', 'replace')):
        descriptor = os.open(node.state('record.lock'), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        deadline = time.time() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except EnvironmentError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise WriteError('the record cannot be locked: %s' % os.strerror(error.errno or 0))
            if time.time() > deadline:
                raise WriteError('another run has been writing this record for more than %g s' % seconds)
            time.sleep(0.05)
        try:
            yield
        finally:
            # By name: a process that reads for us, and hangs at a dead file system, has the descriptor too.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def replace(path, content, durable=True):
    # type: (bytes, bytes, bool) -> None
    """Write a file that root alone can read, whole or not at all. Raises EnvironmentError.

    Without `durable` it may be lost when the power fails: for what is checked before it is used.
    """
    temporary = path + as_bytes('.new-%d' % os.getpid())
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            left = content
            while left:
                left = left[os.write(descriptor, left):]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with _suppressed():
            os.unlink(temporary)
        raise
    if durable:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _suppressed():
    # type: () -> Iterator[None]
    try:
        yield
    except EnvironmentError:
        pass


def write(node, content, texts, wanted):
    # type: (Node, bytes, dict[str, bytes], Collection[str]) -> None
    """Write the record and its stored contents. Raises WriteError; then the old record is as it was.

    One that is larger than is ever read is not written.

    texts   {sha256: bytes} of files, for diffs; written first
    wanted  sha256 of every content that may stay
    """
    if len(content) > MOST_RECORD:
        raise WriteError('the record would have %d bytes, and %d at the most; the old one is as it was' % (
            len(content), MOST_RECORD))
    with _one_line('the record was not written, the old one is as it was'):
        clean(node)
        for name, text in sorted(texts.items()):
            replace(node.state('content/' + name), text, durable=False)
        replace(node.state(NAME), content)
    with _suppressed():  # too many contents do no harm
        for stored in os.listdir(node.state('content')):
            if stored.decode('utf-8', 'replace') not in wanted:
                os.unlink(os.path.join(node.state('content'), stored))


def clean(node):
    # type: (Node) -> None
    """Take away what a run that was killed left. Only while the lock is held."""
    for folder in (node.state(), node.state('content')):
        for name in os.listdir(folder):
            if b'.new-' in name:
                os.unlink(os.path.join(folder, name))


def put_aside(node, now):
    # type: (Node, float) -> str
    """Keep an unusable record under another name; return that. Raises WriteError."""
    aside = '%s.bad-%d' % (NAME, now)
    number = 1
    while os.path.lexists(node.state(aside)):
        number += 1
        aside = '%s.bad-%d-%d' % (NAME, now, number)
    with _one_line('the unusable record cannot be put aside'):
        os.rename(node.state(NAME), node.state(aside))
    return aside
