"""Ranges: ``hal[01-16]``, ``10.64.0.[101-116]``, ``r[1-2]n[1-4]``; in and out through ClusterShell.

Expansion keeps the order in which a range is written, because values pair with nodes by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product

from hal_inventory.errors import RangeError

MAX_NAMES = 65_536
"""The most names one range may stand for: well above any cluster, well below what hurts."""

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,9}))?)?")


def _count(part: str, text: str) -> int:
    """Return how many numbers ``1-16`` or ``7`` stands for, without expanding it."""
    match = _PART.fullmatch(part)
    if match is None:
        raise RangeError(f'"{text}": "[{part}]" is not a range; write [1-16], [01-16] or [1,3,5-8]')
    low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if step == 0:
        raise RangeError(f'"{text}": a step of 0 in [{part}]; write a step of 1 or more')
    if high < low:
        raise RangeError(f'"{text}": [{part}] expands to nothing; write the smaller number first')
    return (high - low) // step + 1


def _numbers(body: str, text: str) -> list[str]:
    from ClusterShell.RangeSet import RangeSet, RangeSetException

    parts = [part.strip() for part in body.split(",")]
    if parts == [""]:
        raise RangeError(f'"{text}": [] expands to nothing; write a range such as [01-16]')
    if sum(_count(part, text) for part in parts) > MAX_NAMES:
        raise RangeError(f'"{text}" stands for more than {MAX_NAMES} values; that is taken for a slip')
    try:
        return [number for part in parts for number in RangeSet(part)]
    except RangeSetException as error:
        raise RangeError(f'"{text}": {error}') from None


def expand(text: str) -> list[str]:
    """Return the values that ``text`` stands for, in the order written; text without brackets stands for itself.

    Raises RangeError for a range that is malformed, empty or larger than MAX_NAMES.
    """
    pieces = _BRACKETS.split(text)
    if any("[" in piece or "]" in piece for piece in pieces[0::2]):
        raise RangeError(f'"{text}": brackets do not match; write a range as [01-16]')
    if len(pieces) == 1:
        return [text]
    numbers = [_numbers(body, text) for body in pieces[1::2]]
    size = 1
    for choice in numbers:
        size *= len(choice)
    if size > MAX_NAMES:
        raise RangeError(f'"{text}" stands for {size} values; more than {MAX_NAMES} are taken for a slip')
    fixed = pieces[0::2]
    return [
        fixed[0] + "".join(number + tail for number, tail in zip(chosen, fixed[1:], strict=True))
        for chosen in product(*numbers)
    ]


def fold(names: Iterable[str]) -> str:
    """Return the shortest range text for a set of names (``hal[01-16]``), as ClusterShell writes it; "" for none."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


_TAIL = re.compile(r"(.*?)(\d+)$", re.DOTALL)


def _split(name: str) -> tuple[str, str] | None:
    match = _TAIL.fullmatch(name)
    if match is None or len(match[2]) > 9:
        return None
    return match[1], match[2]


def fold_in_order(names: Sequence[str]) -> str:
    """Return range text whose expansion is ``names`` in exactly this order: only the last number is folded.

    For pairs of lists that programs match by position, such as Slurm's NodeName and NodeAddr.
    """
    folded: list[str] = []
    at = 0
    while at < len(names):
        first = _split(names[at])
        if first is None:
            folded.append(names[at])
            at += 1
            continue
        prefix = first[0]
        runs: list[list[str]] = []
        while at < len(names):
            here = _split(names[at])
            if here is None or here[0] != prefix:
                break
            if runs and _follows(runs[-1][-1], here[1]):
                runs[-1].append(here[1])
            else:
                runs.append([here[1]])
            at += 1
        folded.append(_write(prefix, runs))
    return ",".join(folded)


def _follows(before: str, after: str) -> bool:
    """Tell whether ``after`` is the next number in the same notation (01 -> 02, 9 -> 10, not 09 -> 10 as 9 -> 10)."""
    following = str(int(before) + 1)
    return after == (following.zfill(len(before)) if before.startswith("0") else following)


def _write(prefix: str, runs: list[list[str]]) -> str:
    if len(runs) == 1 and len(runs[0]) == 1:
        return prefix + runs[0][0]
    return prefix + "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"


def expand_list(text: str) -> list[str]:
    """Return the values of a comma-separated list of ranges, in order: what ``fold_in_order`` wrote."""
    return [name for item in split_list(text) for name in expand(item)]


def split_list(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    items, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
    items.append(text[start:])
    return items
