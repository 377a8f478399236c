# -*- coding: utf-8 -*-
"""Bring files from their source, continuing where an earlier call was interrupted. Python 2.7 and 3.

A file has its name among the data only when its checksum was right. Until then it is a part, which the next call
continues.
"""

from __future__ import absolute_import, division, print_function

import ctypes
import errno
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

from dataset_common import MEGABYTE, Problem, create, in_parallel, make_folder
from dataset_manifest import batches
from hal_node.digest import sha256_of
from hal_node.text import name_of, raw_of, text

try:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import quote, urljoin, urlsplit
except ImportError:
    from httplib import HTTPConnection, HTTPException, HTTPSConnection
    from urllib import quote
    from urlparse import urljoin, urlsplit

TIMEOUT = 60  # seconds without a byte
WAITS = (1, 2, 4, 8, 16, 30)  # seconds between attempts that brought nothing new
RSYNC_FILES = 500  # of one call: what it brought is looked at before the next


class RefusedError(Exception):
    """This file does not come; the others may."""


class BrokenError(Exception):
    """The connection broke; trying again may help."""


def fetch(source, entries, place, finish, streams):
    """Yield (name, bytes, why not) for each entry of (name, digest): it is among the data, or it says why it is not.

    `finish` gives a file that is right its owner and mode. Raises Problem when going on makes no sense.
    """
    make_folder(place.parts, 0o700)
    if source.startswith("rsync://"):
        return _by_rsync(source, entries, place, finish)

    def worker():
        origin = Http(source) if "://" in source else Folder(source)
        return lambda entry: _bring(origin, entry, place, finish)

    return (result for _, result in in_parallel(worker, entries, streams))


def fetch_text_file(source, name, path):
    """Bring one file whose checksum the caller knows: the manifest."""
    if os.path.lexists(path):
        os.unlink(path)
    if source.startswith("rsync://"):
        _rsync([source.rstrip("/") + "/" + name, path])
        return
    origin = Http(source) if "://" in source else Folder(source)
    try:
        _complete(origin, name, path)
    except RefusedError as error:
        raise Problem("%s/%s: %s" % (source.rstrip("/"), name, error))


def _bring(origin, entry, place, finish):
    """Bring one file; a damaged one once again, from its beginning."""
    name, digest = entry
    part = os.path.join(place.parts, hashlib.sha1(raw_of(name)).hexdigest())
    try:
        for _ in (1, 2):
            _complete(origin, name, part)
            if sha256_of(part) == digest:
                return name, _move(part, place, name, finish), ""
            os.unlink(part)
        return name, 0, "what comes is not what the manifest says, twice"
    except RefusedError as error:
        return name, 0, text(error)


def _move(part, place, name, finish):
    size = os.stat(part).st_size
    path = os.path.join(place.data, name)
    try:
        make_folder(os.path.dirname(path), 0o700)
        finish(part)
        os.rename(part, path)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.EISDIR):
            raise RefusedError("the manifest has it as a file and as a folder")
        raise
    return size


def _complete(origin, name, part):
    """Bring the rest of a part; a connection that breaks is tried again, as long as that brings anything."""
    waits = iter(WAITS)
    while True:
        before = _size(part)
        try:
            origin.more(name, part)
            return
        except BrokenError as error:
            if _size(part) > before:
                waits = iter(WAITS)
            wait = next(waits, None)
            if wait is None:
                raise Problem("%s: %s; what has come is kept, and the next call goes on" % (origin.source, error))
            time.sleep(wait)
        except (IOError, OSError) as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Problem("the disk is full; what has come is kept: make room, then call again")
            raise


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _copy(read, part, begin):
    """Write what `read` gives behind the first `begin` bytes of a part; return how much that was."""
    got = 0
    with _opened(part) as target:
        target.seek(begin)
        target.truncate()
        while True:
            block = read(MEGABYTE)
            if not block:
                return got
            target.write(block)
            got += len(block)


def _opened(part):
    """Return a part, open for reading and writing; what is there of it stays. Problem when it is a link."""
    try:
        return os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Problem("%s is a link, which hal-dataset did not make: remove it" % part)


class Folder(object):
    """A folder of this node: an import disk, another file system."""

    def __init__(self, source):
        self.source = source

    def more(self, name, part):
        """Copy what a part lacks."""
        path = os.path.join(name_of(raw_of(self.source)), name)
        try:
            origin = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # whose folder it is may put a FIFO there meanwhile
            try:
                seen = os.fstat(origin)
                if not stat.S_ISREG(seen.st_mode):
                    raise RefusedError("is not a file in %s" % self.source)
                begin = min(_size(part), seen.st_size)
                os.lseek(origin, begin, os.SEEK_SET)
                _copy(lambda size: os.read(origin, size), part, begin)
            finally:
                os.close(origin)
        except (IOError, OSError) as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EIO, errno.ENXIO):
                raise RefusedError("%s: %s" % (self.source, error.strerror))
            raise


class Http(object):
    """A web server, with or without ranges. One connection, kept open from file to file."""

    def __init__(self, source):
        self.source = source.rstrip("/") + "/"
        self._connection = self._host = None

    def more(self, name, part):
        """Get what a part lacks. Raises BrokenError, RefusedError."""
        begin = _size(part)
        try:
            response = self._get(urljoin(self.source, quote(raw_of(name))), begin)
            if response.status == 416:  # no byte behind the last: it is complete, or its checksum will be wrong
                response.read()
                return
            if response.status == 206 and self._first(response) != begin:
                os.unlink(part)
                raise BrokenError("the server sent another range than it was asked for")
            if response.status == 200:
                begin = 0  # it does not know ranges
            elif response.status != 206:
                self._refuse(response)
            length = response.getheader("Content-Length")
            got = _copy(response.read, part, begin)
            if length is not None and got < int(length):
                raise BrokenError("the connection ended after %d of %s bytes" % (got, length))
        except (HTTPException, socket.error, ssl.SSLError) as error:
            self._close()
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise BrokenError("%s" % (text(error) or type(error).__name__))
        except (BrokenError, RefusedError):
            self._close()
            raise

    def _get(self, url, begin):
        headers = {"User-Agent": "hal-dataset", "Accept-Encoding": "identity"}
        if begin:
            headers["Range"] = "bytes=%d-" % begin
        for _ in range(5):
            parts = urlsplit(url)
            self._connect(parts.scheme, parts.netloc)
            self._connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""), headers=headers)
            response = self._connection.getresponse()
            if response.status not in (301, 302, 303, 307, 308):
                return response
            response.read()
            url = urljoin(url, response.getheader("Location") or "")
            if not url.startswith(self.source.partition("://")[0]):
                raise RefusedError("the server leads from https to %s" % url)
        raise RefusedError("the server leads in circles")

    def _connect(self, scheme, host):
        if self._host == (scheme, host) and self._connection is not None:
            return
        self._close()
        if scheme == "https":
            self._connection = HTTPSConnection(host, timeout=TIMEOUT, context=ssl.create_default_context())
        else:
            self._connection = HTTPConnection(host, timeout=TIMEOUT)
        self._host = (scheme, host)

    def _close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @staticmethod
    def _first(response):
        match = re.match(r"bytes (\d+)-", response.getheader("Content-Range") or "")
        return int(match.group(1)) if match else None

    @staticmethod
    def _refuse(response):
        words = "HTTP %d %s" % (response.status, response.reason)
        if response.status == 429 or response.status >= 500:
            raise BrokenError(words)
        raise RefusedError(words)


# ---------------------------------------------------------------- rsync
def _by_rsync(source, entries, place, finish):
    """Some hundred files a call: rsync writes into a folder of its own, and continues what is there."""
    make_folder(place.incoming, 0o700)
    for batch in batches(entries, RSYNC_FILES):
        again = _one_call(source, batch, place, finish)
        for name, size, _ in again[0]:
            yield name, size, ""
        if again[1]:
            brought, failed = _one_call(source, [(name, digest) for name, digest, _ in again[1]], place, finish)
            for result in brought:
                yield result
            for name, _, why in failed:
                yield name, 0, why
    shutil.rmtree(place.incoming, ignore_errors=True)


def _one_call(source, batch, place, finish):
    """Return what came, and what is to be asked for again: (name, digest, why)."""
    listed = os.path.join(place.hidden, "wanted")
    with create(listed, 0o600) as target:
        target.write(b"".join(raw_of(name) + b"\0" for name, _ in batch))
    # A missing file is not a reason to stop (23, 24): it is named below.
    _rsync(["--files-from=" + listed, "--from0", "--times", "--partial-dir=.partial",
            source.rstrip("/") + "/", place.incoming + "/"], also=(23, 24))
    os.unlink(listed)
    brought, failed = [], []
    for name, digest in batch:
        path = os.path.join(place.incoming, name)
        if not os.path.isfile(path) or os.path.islink(path):
            failed.append((name, digest, "the source does not have it"))
        elif sha256_of(path) != digest:
            os.unlink(path)
            failed.append((name, digest, "what comes is not what the manifest says, twice"))
        else:
            try:
                brought.append((name, _move(path, place, name, finish), ""))
            except RefusedError as error:
                failed.append((name, digest, text(error)))
    return brought, failed


def _rsync(words, also=()):
    argv = ["rsync", "--timeout=%d" % TIMEOUT, "--contimeout=%d" % TIMEOUT] + words
    waits = iter(WAITS)
    while True:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, close_fds=True,
                                   preexec_fn=_ends_with_us)
        said = process.communicate()[0].decode("utf-8", "replace").strip().splitlines()
        if process.returncode == 0 or process.returncode in also:
            return
        words = next((line for line in said if "rsync error" not in line), "exit status %d" % process.returncode)
        if "No space left" in "".join(said):
            raise Problem("the disk is full; what has come is kept: make room, then call again")
        wait = next(waits, None) if process.returncode in (10, 12, 30, 35) else None  # of its manual: network, time
        if wait is None:
            raise Problem("rsync: %s; what has come is kept, and the next call goes on" % words)
        time.sleep(wait)


def _ends_with_us():
    """An rsync whose caller was killed must not go on beside the next call's."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
