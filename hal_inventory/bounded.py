"""Bounds for what other machines say, before anything is made of it: how long it may be, and how deeply nested.

A machine that somebody has taken over says what they like. A packed text of 0.4 MB becomes 600 MB, and brackets alone
exhaust Python's stack. What is over a bound is not read, and becomes a finding about the machine that said it.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

from hal_inventory.errors import HalError

MIB = 1024 * 1024

MOST_ANSWER = 16 * MIB
"""Bytes of one answer, and of one unpacked record. The largest record of the virtual HAL, its login node's, has about
1 MB: 450 resources of 750 bytes, 3,000 paths of /etc of 150, tasks and packages. This is ten times that, rounded up to
a power of two. JSON of this size becomes 400 MB at worst. hal_node/audit/record.py has the same bound: a node does
not seal a larger record.
"""

DEEPEST = 50
"""Levels of lists and mappings: records and answers have 8. With a thousand, something raises RecursionError."""


class BoundError(HalError, ValueError):
    """It is longer, or nested deeper, than an honest answer, and was not read. The text says which."""


def size(most: int) -> str:
    """Return a bound in words."""
    return f"{most / MIB:g} MiB"


def deeper() -> BoundError:
    """Return the error of what is nested too deeply, to be raised for a RecursionError."""
    return BoundError(f"data nested deeper than {DEEPEST} levels: not read")


def limited(data: bytes | bytearray | str, most: int = MOST_ANSWER) -> None:
    """Raise BoundError for data of more than ``most`` bytes or characters."""
    if len(data) > most:
        raise BoundError(f"more than {size(most)}: not read")


def inflated(data: bytes, most: int = MOST_ANSWER) -> bytes:
    """Return the bytes of zlib's compressed data; BoundError for more than ``most``.

    zlib.error, or ValueError, for what is damaged, cut off, or has something behind its end.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(data, most + 1)
    limited(content, most)
    if not stream.eof or stream.unused_data:
        raise ValueError("it is cut off, or has something behind its end")
    return content


def parsed(text: bytes | str, most: int | None = MOST_ANSWER) -> Any:
    """Return what JSON says; BoundError if it is too long or nested too deeply, ValueError if it is not JSON.

    ``most``: bytes; None for a file of ours, in which each text of others is bounded.
    """
    if most is not None:
        limited(text, most)
    try:
        data = json.loads(text)
    except RecursionError:
        raise deeper() from None
    check(data)
    return data


def check(data: Any) -> None:
    """Raise BoundError for data nested deeper than DEEPEST, or with a number that JSON lacks: Infinity, NaN."""
    level = [data]
    for _ in range(DEEPEST + 1):
        if any(isinstance(value, float) and not math.isfinite(value) for value in level):
            raise BoundError("a number that is not finite: not read")
        if not any(isinstance(value, (dict, list)) for value in level):
            return
        held = (value for value in level if isinstance(value, (dict, list)))
        level = [inner for value in held for inner in (value.values() if isinstance(value, dict) else value)]
    raise deeper()
