"""What other machines say, before anything is made of it: not longer than so, not nested deeper than so.

A machine that somebody has taken over says what they like. A packed text of 0.4 MB becomes 600 MB, and brackets alone
exhaust Python's stack. What is over a bound is not read, and becomes a finding of the machine that said it.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

from hal_inventory.errors import HalError

MIB = 1024 * 1024

MOST_ANSWER = 16 * MIB
"""Bytes of one answer, and of one record when it is unpacked. The largest record of the virtual HAL, its login node's,
has about 1 MB: 450 resources of 750 bytes, 3,000 paths of /etc of 150, tasks and packages. This is ten times that, and
up to a power of two. JSON of this size becomes 400 MB at the worst. hal_node/audit/record.py has the
same bound: a node seals no record that is larger.
"""

DEEPEST = 50
"""Levels of lists and mappings: records and answers have 8. A thousand are a RecursionError somewhere."""


class BoundError(HalError, ValueError):
    """It is longer, or nested deeper, than anything honest, and was not read. The text says which."""


def size(most: int) -> str:
    """Return a bound in words."""
    return f"{most / MIB:g} MiB"


def deeper() -> BoundError:
    """Return the error of what is nested too deeply, for whoever hears of it by a RecursionError."""
    return BoundError(f"data nested deeper than {DEEPEST} levels: not read")


def limited(data: bytes | bytearray | str, most: int = MOST_ANSWER) -> None:
    """Raise BoundError for what is longer than so."""
    if len(data) > most:
        raise BoundError(f"more than {size(most)}: not read")


def inflated(data: bytes, most: int = MOST_ANSWER) -> bytes:
    """Return the bytes of zlib's compressed data; BoundError when they are more than so.

    zlib.error, or ValueError, for what is damaged, cut off, or has something behind its end.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(data, most + 1)
    limited(content, most)
    if not stream.eof or stream.unused_data:
        raise ValueError("it is cut off, or has something behind its end")
    return content


def parsed(text: bytes | str, most: int | None = MOST_ANSWER) -> Any:
    """Return what JSON says; BoundError when it is too long or nested too deeply, ValueError when it is none.

    ``most``: bytes; None for a file of ours, in which others' words are bounded one by one.
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
    """Raise BoundError for data nested deeper than DEEPEST, or with a number that JSON has not: Infinity, NaN."""
    level = [data]
    for _ in range(DEEPEST + 1):
        if any(isinstance(value, float) and not math.isfinite(value) for value in level):
            raise BoundError("a number that is not finite: not read")
        if not any(isinstance(value, (dict, list)) for value in level):
            return
        held = (value for value in level if isinstance(value, (dict, list)))
        level = [inner for value in held for inner in (value.values() if isinstance(value, dict) else value)]
    raise deeper()
