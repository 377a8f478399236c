"""Faults in YAML and templates."""

from __future__ import annotations

from tests.mutate.mutant import Mutant


class Wiring:
    """The faults that a file of YAML or a template can have, by line."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text

    def at(self, line: int) -> list[Mutant]:
        return []
