"""The nearest known name, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

CLOSE = 0.6
"""The least similarity, as difflib measures it, for a suggestion."""


def nearest(name: str, known: Iterable[str], *, close: float = CLOSE) -> str | None:
    """Return the known name most like ``name``, or None if nothing comes as close as ``close``.

    Of equals, the one with the longest common begin; then the first by name.
    """
    from difflib import SequenceMatcher  # only a message needs it

    matcher = SequenceMatcher(None, b=name)
    best: tuple[float, int] = (close, 0)
    chosen: str | None = None
    for candidate in sorted(known):
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() < best[0] or matcher.quick_ratio() < best[0]:
            continue
        score = (matcher.ratio(), _common(candidate, name))
        if score > best:
            best, chosen = score, candidate
    return chosen


def _common(name: str, other: str) -> int:
    """Return how many characters two names begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))


def did_you_mean(name: str, known: Iterable[str], *, kind: str) -> str:
    """Return ``; did you mean "x"?``, or ``; known KIND: a, b, c`` if nothing comes close and the list is short."""
    names = sorted(known)
    close = nearest(name, names)
    if close is not None:
        return f'; did you mean "{close}"?'
    if not names:
        return f"; there are no {kind}"
    if len(names) <= 16:
        return f"; known {kind}: {', '.join(names)}"
    return ""
