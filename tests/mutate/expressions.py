"""Other readings of an expression of Jinja."""

from __future__ import annotations

import re
from collections.abc import Iterator

SWAPS = (
    (" == ", " != "), (" != ", " == "), (" >= ", " > "), (" <= ", " < "), (" > ", " >= "), (" < ", " <= "),
    (" and ", " or "), (" or ", " and "), (" not in ", " in "), (" is not ", " is "), (" in ", " not in "),
    ("select(", "reject("), ("reject(", "select("), ("selectattr(", "rejectattr("), ("rejectattr(", "selectattr("),
)  # fmt: skip


def _word(old: str) -> str:
    return re.escape(old) if old[0] == " " else rf"(?<!\w){re.escape(old)}"


def swaps(text: str) -> Iterator[tuple[str, str]]:
    """What was done, and the text with the first of each operator turned around."""
    for old, new in SWAPS:
        if re.search(_word(old), text) and (old != " in " or not re.search(r" not in |\bfor\b", text)):
            yield f"{old.strip()} to {new.strip()}", re.sub(_word(old), new, text, count=1)


def negated(text: str) -> str:
    """The opposite."""
    return text.removeprefix("not ") if re.fullmatch(r"not [\w.]+", text) else f"not ({text})"
