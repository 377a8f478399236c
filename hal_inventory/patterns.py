"""Node ranges in Ansible's host patterns: ``--limit 'hal[05-06]'``, ``ansible 'hal[01-04,08]' -m ping``, ``hosts:``.

Ansible reads brackets as a slice of a group (``compute[0:3]``) or as a set of characters (``hal[01]0``). Both stay as
they are. Imports nothing of Ansible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from fnmatch import fnmatchcase

from hal_inventory.errors import RangeError
from hal_inventory.ranges import expand, fold

# A name with numbers in brackets. [05:06] is how Ansible's own inventories write [05-06].
_RANGE = re.compile(r"([\w.-]*)(?:\[[\d,:/ -]+\][\w.-]*)+")
# Ansible's slice of a group: compute[0], compute[-1], compute[0:3]. It once took [0-3], and no longer does.
_SLICE = re.compile(r"[\w.-]*\[(?:-?\d+|\d+:\d*)\]")
_OUTSIDE_BRACKETS = {separator: re.compile(rf"{separator}(?![^\[\]]*\])") for separator in ",:"}


def split(
    pattern: str, hosts: Collection[str], groups: Collection[str], ansibles: Callable[[str], list[str]]
) -> list[str]:
    """Return the single patterns of a pattern. A range of nodes becomes a regular expression that matches only these.

    ``ansibles`` splits what has no range of nodes in it. RangeError for a range with names that are not hosts.
    """
    if "[" not in pattern:
        return ansibles(pattern)
    patterns: list[str] = []
    for listed in _parts(pattern, ","):
        parts = [listed] if listed.lstrip("!&").startswith("~") else _parts(listed, ":")
        nodes = [_nodes(part, hosts, groups) for part in parts]
        if any(nodes):
            for part, chosen in zip(parts, nodes, strict=True):
                patterns += [chosen] if chosen else ansibles(part)
        else:
            patterns += ansibles(listed)
    return patterns


def _parts(pattern: str, separator: str) -> list[str]:
    return [part.strip() for part in _OUTSIDE_BRACKETS[separator].split(pattern) if part.strip()]


def _nodes(part: str, hosts: Collection[str], groups: Collection[str]) -> str | None:
    """Return a range of nodes as a regular expression, with its ``!`` or ``&``; None for what is Ansible's."""
    sign = part[:1] if part[:1] in ("!", "&") else ""
    text = part[len(sign) :]
    match = _RANGE.fullmatch(text)
    if match is None or (_SLICE.fullmatch(text) and (match[1] in groups or match[1] in hosts)):
        return None
    try:
        names = expand(text.replace(":", "-"))
        unknown = [name for name in names if name not in hosts]
        if unknown:
            raise RangeError(f'"{text}": not in this inventory: {fold(unknown)}; its nodes are {fold(hosts) or "none"}')
    except RangeError:
        if not text.endswith("]") and any(fnmatchcase(host, text) for host in hosts):
            return None  # hal[01]0: Ansible takes brackets at the end alone for a slice
        raise
    return f"{sign}~(?:{'|'.join(map(re.escape, names))})$"
