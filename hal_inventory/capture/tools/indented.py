"""Lines of "name: value" or "name : value" under headings, nested by indentation, as many tools print them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Section:
    """A heading, its values in order of appearance, and the sections below it."""

    title: str
    values: dict[str, str] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)

    def find(self, title: str) -> Section | None:
        """Return the first section below with this title."""
        return next((section for section in self.sections if section.title == title), None)


def parse(text: str) -> Section:
    """Return all of a text as one section without a title. A line without a value is a heading of what is below it."""
    root = Section("")
    open_: list[tuple[int, Section]] = [(-1, root)]
    for depth, name, value in _lines(text):
        while open_[-1][0] >= depth:
            open_.pop()
        if value is None:
            made = Section(name)
            open_[-1][1].sections.append(made)
            open_.append((depth, made))
        else:
            open_[-1][1].values.setdefault(name, value)
    return root


def _lines(text: str) -> Iterator[tuple[int, str, str | None]]:
    for line in text.splitlines():
        words = line.strip()
        if not words:
            continue
        depth = len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
        name, colon, value = words.partition(": ")
        if colon:
            yield depth, name.strip(), value.strip()
        else:
            yield depth, words.rstrip(":").strip(), None
