"""One small fault: where it is, what it is, and the text of the file that has it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Mutant:
    """A file with one fault. `line` is where it begins, `kind` what was done in a few words."""

    path: str
    line: int
    kind: str
    before: str
    after: str

    @property
    def language(self) -> str:
        """python or yaml; templates and what else roles have count as yaml."""
        return "python" if self.path.endswith(".py") else "yaml"

    @property
    def area(self) -> str:
        """What the file belongs to."""
        return area(self.path)

    @property
    def hunk(self) -> str:
        """The lines that it takes and gives, each with - or + before it."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))

    @property
    def where(self) -> str:
        """file:line."""
        return f"{self.path}:{self.line}"


def area(path: str) -> str:
    """What a file belongs to, in one word: its role, its package, what a plugin is for, playbooks."""
    first, _, rest = path.partition("/")
    if first == "roles":
        return rest.partition("/")[0]
    if first in ("plugins", "inventory"):
        return Path(path).stem.removeprefix("hal_").partition("_")[0]
    if first in ("hal_cluster", "hal_node"):
        return rest.removeprefix("rules/").partition("/")[0].removesuffix(".py")
    return first.removeprefix("hal_")
