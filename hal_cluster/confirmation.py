"""The code that confirms a plan that was shown: it stands for what was shown, and for nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none that looks like another, and no U, so that no words arise


def code_of_prints(prints: Iterable[str]) -> str:
    """Return the code of digests, in whichever order they come."""
    number = int(hashlib.sha256("\n".join(sorted(prints)).encode()).hexdigest(), 16)
    letters = ""
    for _ in range(8):
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return f"{letters[:4]}-{letters[4:]}"
