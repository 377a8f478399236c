"""What a hostile node answers that is small on its way and large when it is read; and how much memory reading took."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from hal_inventory.bounded import MOST_ANSWER

MIB = 1024 * 1024
INFLATED = 300 * MIB


@contextmanager
def within(most: int = 6 * MOST_ANSWER) -> Iterator[None]:
    """Fail when what is done here needs more memory than so, in bytes: much less than what a bomb becomes."""
    assert most < INFLATED / 2
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak / MIB:.0f} MiB"


@cache
def inflating() -> bytes:
    """0.3 MB for zlib that become INFLATED: a record whose node is called with many letters."""
    press = zlib.compressobj(9)
    pieces = [press.compress(b'{"node":"')]
    pieces += [press.compress(b"a" * MIB) for _ in range(INFLATED // MIB)]
    return b"".join([*pieces, press.compress(b'"}'), press.flush()])


@cache
def packed() -> str:
    """As hal_record packs a record."""
    return base64.b64encode(inflating()).decode()


@cache
def gzipped() -> bytes:
    """The same for gzip."""
    into = io.BytesIO()
    with gzip.GzipFile(fileobj=into, mode="wb", compresslevel=9) as stream:
        for _ in range(INFLATED // MIB):
            stream.write(b"a" * MIB)
    return into.getvalue()


@cache
def archived(name: str) -> bytes:
    """A tar with such a file, packed by gzip."""
    into, member = io.BytesIO(), tarfile.TarInfo(name)
    member.size = INFLATED
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=9) as tar:
        tar.addfile(member, _Letters())
    return into.getvalue()


class _Letters(io.RawIOBase):
    """Has no end."""

    def read(self, size: int = -1, /) -> bytes:
        return b"a" * size


def nested(levels: int) -> bytes:
    """JSON of so many levels."""
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def refused(call: Callable[[], object], kind: type[Exception]) -> str:
    """The text of the error that a call ends with, within its memory."""
    with within():
        try:
            call()
        except kind as error:
            return str(error)
    raise AssertionError("it was read")
