"""Changes of single values in the text of a cluster.yml: comments, order and everything else stay as written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from hal_inventory.reader import PLACEHOLDER_TAG, Path_

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*|0x[0-9a-f]+")
_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])


@dataclass(frozen=True)
class Value:
    """One value of a column, for the node of that name."""

    text: str
    placeholder: bool
    node: str


def scalar(value: str | int) -> str:
    """Return a value as YAML: plain if it is unambiguous, else in quotes."""
    if isinstance(value, int):
        return str(value)
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS and not value.startswith("0x")
    return value if plain else json.dumps(value, ensure_ascii=False)


@dataclass
class Editor:
    """A text with the changes that are to be made in it."""

    text: str
    _changes: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._root = yaml.compose(self.text, Loader=yaml.SafeLoader)

    def has(self, path: Path_) -> bool:
        """Tell whether there is a value at ``path``."""
        return self._find(path) is not None

    def replace(self, path: Path_, value: str | int) -> None:
        """Put a value in the place of another, whose tag goes."""
        node = self._find(path)
        assert node is not None, path
        self._put(node, scalar(value))

    def confirm(self, path: Path_) -> None:
        """Take the tags of a value, and of the items of a list, away."""
        node = self._find(path)
        assert node is not None, path
        for value in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if value.tag == PLACEHOLDER_TAG:
                start = value.start_mark.index
                tag = re.compile(rf"{PLACEHOLDER_TAG}\s+").match(self.text, start)
                assert tag is not None, path
                self._changes.append((start, tag.end(), ""))

    def replace_column(self, path: Path_, column: Sequence[Value]) -> None:
        """Replace what is there by one value for each node. In a list with an item a node only what differs changes."""
        node = self._find(path)
        assert node is not None, path
        if isinstance(node, yaml.SequenceNode) and len(node.value) == len(column):
            for item, value in zip(node.value, column, strict=True):
                if (item.value, item.tag == PLACEHOLDER_TAG) != (value.text, value.placeholder):
                    self._put(item, _written(value))
        else:
            self._put(node, self._column(column, self._indent(node.start_mark.index)))

    def add(self, path: Path_, columns: Sequence[tuple[str, Sequence[Value]]]) -> bool:
        """Add columns, by name, to the mapping at ``path``, made if its parent is there; False if it cannot be."""
        mapping = self._find(path)
        if isinstance(mapping, yaml.MappingNode):
            for name, column in columns:
                self._insert(mapping, f"{_key(name)}: ", column)
            return True
        parent = self._find(path[:-1])
        if mapping is not None or not isinstance(parent, yaml.MappingNode) or parent.flow_style or not parent.value:
            return False
        indent = parent.value[0][0].start_mark.column
        lines = [f"{' ' * indent}{path[-1]}:"]
        lines += [f"{' ' * (indent + 2)}{_key(name)}: {self._column(column, indent + 2)}" for name, column in columns]
        at = self._end_of(parent)
        self._changes.append((at, at, "".join(f"\n{line}" for line in lines)))
        return True

    def add_single(self, path: Path_, column: Sequence[Value]) -> bool:
        """Add a field to a block mapping; False if there is none."""
        parent = self._find(path[:-1])
        if not isinstance(parent, yaml.MappingNode) or parent.flow_style or not parent.value:
            return False
        self._insert(parent, f"{path[-1]}: ", column)
        return True

    def result(self) -> str:
        """Return the text with all changes made."""
        text = self.text
        for _at, (start, end, new) in sorted(
            enumerate(self._changes), key=lambda numbered: (numbered[1][0], numbered[0]), reverse=True
        ):
            text = text[:start] + new + text[end:]
        return text

    def _find(self, path: Path_) -> yaml.Node | None:
        here: yaml.Node | None = self._root
        for step in path:
            if isinstance(here, yaml.MappingNode):
                here = next((value for key, value in here.value if key.value == str(step)), None)
            elif isinstance(here, yaml.SequenceNode) and isinstance(step, int) and step < len(here.value):
                here = here.value[step]
            else:
                return None
        return here

    def _put(self, node: yaml.Node, text: str) -> None:
        self._changes.append((node.start_mark.index, _last(node).end_mark.index, text))

    def _insert(self, mapping: yaml.MappingNode, key: str, column: Sequence[Value]) -> None:
        if mapping.flow_style:
            at = mapping.end_mark.index - 1
            text = self._column(column, self._indent(mapping.start_mark.index))
            self._changes.append((at, at, f"{', ' if mapping.value else ''}{key}{text}"))
            return
        indent = mapping.value[0][0].start_mark.column
        at = self._end_of(mapping)
        self._changes.append((at, at, f"\n{' ' * indent}{key}{self._column(column, indent)}"))

    def _end_of(self, node: yaml.Node) -> int:
        """Return the end of the line with the last value of a collection: a comment behind that value stays with it."""
        end = self.text.find("\n", _last(node).end_mark.index)
        return len(self.text) if end < 0 else end

    def _indent(self, at: int) -> int:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return len(line) - len(line.lstrip())

    @staticmethod
    def _column(column: Sequence[Value], indent: int) -> str:
        """Return one value as itself, several as a list with a line, and the node's name, for each."""
        written = [_written(value) for value in column]
        if len(column) == 1:
            return written[0]
        width = max(map(len, written)) + 1
        lines = [
            f"{' ' * (indent + 4)}{text + ',':<{width}}  # {value.node}"
            for text, value in zip(written, column, strict=True)
        ]
        return "\n".join(["[", *lines, f"{' ' * (indent + 2)}]"])


def _last(node: yaml.Node) -> yaml.Node:
    """Return the last value of a block of lines, however deep: only this shows where the block ends."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _written(value: Value) -> str:
    return f"{PLACEHOLDER_TAG + ' ' if value.placeholder else ''}{scalar(value.text)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_/.-]*", name) else json.dumps(name)
