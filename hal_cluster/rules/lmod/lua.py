"""Texts and values as Lua has them, for Lua 5.1 (EPEL 7) to 5.4."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_TO_ESCAPE = re.compile(r'[\\"\x00-\x1f\x7f]')


def quoted(text: str) -> str:
    """Return any text as one Lua string on one line; Lua reads exactly the same bytes (UTF-8) again."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def call(function: str, *arguments: str) -> str:
    """Return a call with texts as arguments."""
    return f"{function}({', '.join(quoted(argument) for argument in arguments)})"


def comment(text: str) -> str:
    """Return a line that Lua skips, whatever the text is."""
    return f"-- {' '.join(text.split())}"


def listed(texts: Iterable[str]) -> str:
    """Return texts as a Lua table."""
    return "{" + ", ".join(quoted(text) for text in texts) + "}"


def _escape(matched: re.Match[str]) -> str:
    return _ESCAPES.get(matched[0]) or f"\\{ord(matched[0]):03d}"
