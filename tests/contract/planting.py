"""Violations planted in a small project: each rule is seen to find exactly them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.contract.project import Rule


@dataclass(frozen=True)
class Planted:
    """Files of a project (path: text) and what the rule says of them: all of it, in order. No findings: all is well."""

    rule: Rule
    files: Mapping[str, str]
    findings: Sequence[str]

    def check(self, root: Path) -> None:
        """Write the files below `root` and compare."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"))
        assert self.rule(root) == list(self.findings)

    def __str__(self) -> str:
        """The name of the test case."""
        name = getattr(self.rule, "__name__", "rule")
        return f"{name} {'is kept' if not self.findings else 'is broken'}"
