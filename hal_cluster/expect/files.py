"""Check a whole expect.yml and say where each fault is: `file:line: field: what is wrong`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hal_cluster.expect.check import problems_of_list


class Finding(NamedTuple):
    """One fault in a file. `field` is empty when it is the entry, or the file, as a whole."""

    path: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.field + ': ' if self.field else ''}{self.message}"


class _Loader(yaml.SafeLoader):
    """YAML as Ansible reads it. Its own tags become templates, whose content is not judged here."""


_Loader.add_multi_constructor("!", lambda _loader, _suffix, _node: "{{ tagged }}")  # !vault, !unsafe


def check_file(path: str | Path) -> list[Finding]:
    """Return every fault of one expect.yml, sorted by line. An unreadable file is a finding, not an exception."""
    name = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [Finding(name, 1, "", f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}")]
    try:
        root = yaml.compose(text, Loader=_Loader)
        data = yaml.load(text, Loader=_Loader)  # safe: derived from SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        return [Finding(name, mark.line + 1 if mark else 1, "", f"is not YAML: {problem}")]
    findings = [
        Finding(name, line, field, "is there twice; YAML keeps the last one only") for line, field in _duplicates(root)
    ]
    for where, message in problems_of_list(data):
        field = ".".join(str(step) for step in where[1:])
        findings.append(Finding(name, _line(root, where), field, message))
    return sorted(findings, key=lambda finding: (finding.line, finding.field, finding.message))


def _duplicates(node: Any) -> list[tuple[int, str]]:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _value in node.value]
        mine = [
            (key.start_mark.line + 1, str(key.value))
            for position, (key, _value) in enumerate(node.value)
            if key.value in keys[:position]
        ]
        return mine + [duplicate for _key, value in node.value for duplicate in _duplicates(value)]
    if isinstance(node, yaml.SequenceNode):
        return [duplicate for item in node.value for duplicate in _duplicates(item)]
    return []


def _line(node: Any, where: tuple[str | int, ...]) -> int:
    """Return the line of a field, or of the nearest thing around it that is in the file."""
    line = node.start_mark.line + 1 if node is not None else 1
    for step in where:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == step]
            if not pairs:
                return line
            line = pairs[-1][0].start_mark.line + 1
            node = pairs[-1][1]
        else:
            return line
    return line
