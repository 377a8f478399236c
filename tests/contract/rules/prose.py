"""How pages are written: for people who read at three in the morning. CONTRIBUTING.md, "Style"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, rule
from tests.contract.rules.documents import CODE, markdown, numbered

WIDEST = 120  # of a line of prose; tables and code may be wider
# What stands there, and what a reader understands at once.
WORDS = (
    (
        re.compile(r"(?<!there )\b(is|are|was|were) no (?!longer\b|less\b)", re.IGNORECASE),
        'write "{} not" and an article',
    ),
    (re.compile(r"\b(he|him|his)\b", re.IGNORECASE), "write who it is, or they"),
    (re.compile(r"\b(utilize|leverage|in order to|please note)\b", re.IGNORECASE), "write the short word"),
)


@rule
def pages_are_easy_to_read(root: Path) -> Iterator[Finding]:
    """Prose has narrow lines, and none of the words and turns that have to be read twice."""
    for page in markdown(root):
        for number, line, fenced in numbered(page):
            if fenced:
                continue
            if len(line) > WIDEST and not line.lstrip().startswith("|"):
                yield Finding(page, number, f"{len(line)} characters; break the line before {WIDEST + 1}")
            for pattern, advice in WORDS:
                if met := pattern.search(CODE.sub("``", line)):
                    yield Finding(page, number, f'"{met.group(0).strip()}": {advice.format(met.group(1).lower())}')
