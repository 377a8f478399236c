"""A YAML file with the line of each of its fields, and findings that name file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.environments.errors import FileError

Place = tuple[str | int, ...]


class Document:
    """A file that was read: its content, and what is wrong with it so far."""

    def __init__(self, path: Path) -> None:
        """Read the file; raise FileError when it is not a mapping in YAML."""
        self.path = path
        self.findings: list[str] = []
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError([f"{path}: cannot be read: {error}"]) from None
        try:
            root = yaml.compose(text, Loader=yaml.CSafeLoader)
            content = yaml.load(text, Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            raise FileError([f"{path}:{line}: not YAML: {getattr(error, 'problem', error)}"]) from None
        if not isinstance(root, yaml.MappingNode) or not isinstance(content, dict):
            raise FileError([f"{path}:1: not a mapping of fields"])
        self.content: Mapping[str, Any] = content
        self._lines: dict[Place, int] = {}
        self._walk(root, ())

    def finding(self, text: str, *place: str | int) -> None:
        """Add a finding at a field; a field that is not there is at the line of what it would be in."""
        line = next((self._lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in self._lines), 1)
        self.findings.append(f"{self.path}:{line}: {text}")

    def refuse(self) -> None:
        """Raise FileError when anything was found."""
        if self.findings:
            raise FileError(self.findings)

    def _walk(self, node: yaml.Node, where: Place) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*where, key.value)
                if inner in self._lines:
                    line = key.start_mark.line + 1
                    self.findings.append(
                        f"{self.path}:{line}: {'.'.join(map(str, inner))} is there twice, first in line "
                        f"{self._lines[inner]}: keep one"
                    )
                    continue
                self._lines[inner] = key.start_mark.line + 1
                self._walk(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for index, entry in enumerate(node.value):
                inner = (*where, index)
                self._lines[inner] = entry.start_mark.line + 1
                self._walk(entry, inner)
