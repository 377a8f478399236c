"""The nearest known name, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like ``name``, or None when nothing comes close. Ties go to the first by name."""
    import difflib  # only a message needs it

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        return None
    best = difflib.SequenceMatcher(None, close[0], name).ratio()
    return min(one for one in close if difflib.SequenceMatcher(None, one, name).ratio() == best)


def did_you_mean(name: str, known: Iterable[str], *, kind: str) -> str:
    """Return ``; did you mean "x"?``, or ``; known KIND: a, b, c`` when nothing comes close and the list is short."""
    names = sorted(known)
    close = nearest(name, names)
    if close is not None:
        return f'; did you mean "{close}"?'
    if not names:
        return f"; there are no {kind}"
    if len(names) <= 16:
        return f"; known {kind}: {', '.join(names)}"
    return ""
