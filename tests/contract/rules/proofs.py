"""How tests prove."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.contract.project import Finding, files, rule, text_of


@rule
def nothing_is_compared_with_itself(root: Path) -> Iterator[Finding]:
    """An expectation is written down: the same expression on both sides agrees whatever the code does."""
    for path in files(root):
        if path.suffix != ".py" or path.relative_to(root).parts[0] not in ("tests", "molecule"):
            continue
        for node in ast.walk(ast.parse(text_of(path))):
            if not isinstance(node, ast.Compare):
                continue
            for left, right in pairwise([node.left, *node.comparators]):
                if ast.dump(left) == ast.dump(right):
                    words = f"{ast.unparse(left)} is compared with itself; write what it should be"
                    yield Finding(path, left.lineno, words)
