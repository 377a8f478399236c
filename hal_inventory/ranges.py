"""Ranges: ``hal[01-16]``, ``10.64.0.[101-116]``, ``r[1-2]n[1-4]``; in and out through ClusterShell.

Expansion keeps the order in which a range is written: values pair with nodes by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product

from hal_inventory.errors import RangeError

MAX_NAMES = 65_536
"""The most names that one range, or a list of them, may mean: well above any cluster, well below what hurts."""
MAX_VALUES = 16 * MAX_NAMES
"""The most names that all ranges of one file may mean together: some ten fields for each of MAX_NAMES nodes."""

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/([0-9]{1,9}))?)?")
_WORD = re.compile(r"(?:[^\s()\[\],]|\[[^\[\]]*\])+")


def _count(part: str, text: str) -> int:
    """Return how many numbers ``1-16`` or ``7`` stands for, without expanding it."""
    match = _PART.fullmatch(part)
    if match is None:
        raise RangeError(f'{_quoted(text)}: "[{cut(part)}]" is not a range; write [1-16], [01-16] or [1,3,5-8]')
    first, last = match[1], match[2] or match[1]
    low, high, step = int(first), int(last), int(match[3] or 1)
    if step == 0:
        raise RangeError(f"{_quoted(text)}: a step of 0 in [{part}]; write a step of 1 or more")
    if high < low:
        raise RangeError(f"{_quoted(text)}: [{part}] expands to nothing; write the smaller number first")
    width = max(len(first), len(last))
    if len(first) != len(last) and (first != str(low) or last != str(high)):
        right = f"[{first.zfill(width)}-{last.zfill(width)}]"
        raise RangeError(f"{_quoted(text)}: [{part}] has numbers of two widths; write {right} or [{low}-{high}]")
    return (high - low) // step + 1


def _quoted(text: str) -> str:
    return f'"{cut(text)}"'


def cut(text: str) -> str:
    """Return a text for a message: of a long one, how it begins."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bodies(text: str) -> list[list[str]]:
    """Return the parts of each pair of brackets: of ``r[1-2]n[1,3-4]`` they are 1-2, and 1 and 3-4."""
    pieces = _BRACKETS.split(text)
    if any("[" in piece or "]" in piece for piece in pieces[0::2]):
        raise RangeError(f"{_quoted(text)}: brackets do not match; write a range as [01-16]")
    bodies = [[part.strip() for part in body.split(",")] for body in pieces[1::2]]
    if [""] in bodies:
        raise RangeError(f"{_quoted(text)}: [] expands to nothing; write a range such as [01-16]")
    return bodies


def size(text: str) -> int:
    """Return how many values a range stands for, without expanding it; RangeError as ``expand`` raises it."""
    number = 1
    for parts in _bodies(text):
        number *= sum(_count(part, text) for part in parts)
        if number > MAX_NAMES:
            raise RangeError(f"{_quoted(text)} stands for more than {MAX_NAMES} values; that is taken for a slip")
    return number


def sizes(text: str) -> int:
    """Return how many values all ranges in a text stand for. What is at fault, or is not a range, does not count."""
    number = 0
    for word in _WORD.findall(text) if "[" in text else ():
        with suppress(RangeError):
            number += size(word)
    return number


def expand(text: str) -> list[str]:
    """Return the values that ``text`` stands for, in the order written; text without brackets stands for itself.

    Raises RangeError for a range that is malformed, empty or larger than MAX_NAMES.
    """
    size(text)
    if "[" not in text:
        return [text]
    from ClusterShell.RangeSet import RangeSet

    fixed = _BRACKETS.split(text)[0::2]
    numbers = [[number for part in parts for number in RangeSet(part)] for parts in _bodies(text)]
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

    For pairs of lists that programs match by position, such as Slurm's NodeName and NodeAddr. Also for messages,
    because it takes any text as it is: here @all and a&b are neither groups nor operators.
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
    """Return the values of a comma-separated list of ranges, in order: what ``fold_in_order`` wrote.

    Raises RangeError as ``expand`` does, and for a list that stands for more than MAX_NAMES.
    """
    names: list[str] = []
    for item in split_list(text):
        names += expand(item)
        if len(names) > MAX_NAMES:
            raise RangeError(f"{_quoted(text)} stands for more than {MAX_NAMES} values; that is taken for a slip")
    return names


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
