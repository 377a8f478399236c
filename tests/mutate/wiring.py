"""Faults in YAML: one key, item or value is another. The rest of the text stays as it is, comments included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.mutate.expressions import negated, swaps
from tests.mutate.mutant import Mutant

DROPPED = frozenset(
    ("backup", "become", "become_user", "changed_when", "check_mode", "delegate_to", "environment", "failed_when",
     "finding", "group", "ignore_errors", "listen", "mode", "no_log", "notify", "owner", "register", "required",
     "retries", "run_once", "severity", "tags", "throttle", "until", "validate", "vars", "when")
)  # fmt: skip
"""Keys that can be left out: what remains is still a task, an entry, an option."""
CONDITIONS = ("when", "changed_when", "failed_when", "until")
EXPRESSIONS = (*CONDITIONS, "that")
PROSE = frozenset(
    ("author", "comment", "description", "fail_msg", "id", "label", "msg", "quiet", "short_description", "success_msg",
     "title", "why")
)  # fmt: skip
"""Keys whose values are for people."""
TASKS = ("", "always", "block", "handlers", "post_tasks", "pre_tasks", "rescue", "tasks")
STATES = {
    "absent": "present", "directory": "absent", "file": "absent", "latest": "present", "present": "absent",
    "reloaded": "restarted", "restarted": "reloaded", "started": "stopped", "stopped": "started",
}  # fmt: skip
TYPES = {"bool": "str", "dict": "list", "int": "str", "list": "dict", "str": "int"}
WRITTEN = frozenset(("group", "owner"))
"""Of a task's texts those that have another value as likely as not; of what is declared all are."""
DECLARED = re.compile(r".*/(defaults|vars|group_vars)/.*|.*/(expect|firewall)\.yml")


class Wiring:
    """The faults that a file of YAML can have, by line."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._declared = bool(DECLARED.fullmatch(path))
        self._events = _events(text)
        self._found: dict[int, list[tuple[str, str]]] = {}
        document = yaml.compose(text, yaml.SafeLoader)
        if document:
            self._walk(document, "")

    def at(self, line: int) -> list[Mutant]:
        """The faults that begin on this line; without those that do not parse or say the same."""
        made = (Mutant(self._path, line, kind, self._text, after) for kind, after in self._found.get(line, ()))
        return [mutant for mutant in made if _events(mutant.after) not in (None, self._events)]

    def _add(self, node: yaml.Node, kind: str, start: int, end: int, new: str = "") -> None:
        after = self._text[:start] + new + self._text[end:]
        self._found.setdefault(node.start_mark.line + 1, []).append((kind, after))

    def _walk(self, node: yaml.Node, key: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if name.value in DROPPED and len(node.value) > 1:
                    self._leave_out(f"no {name.value}", name, value, node)
                named = name.value == "name" and name is node.value[0][0] and not node.flow_style
                if name.value not in PROSE and not named:
                    self._walk(value, name.value)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                if len(node.value) > 1:
                    kind = "no task" if isinstance(item, yaml.MappingNode) and key in TASKS else "no item"
                    self._leave_out(kind, item, item, node)
                self._walk(item, key)
        elif isinstance(node, yaml.ScalarNode):
            self._other_value(node, key)

    def _leave_out(self, kind: str, first: yaml.Node, last: yaml.Node, among: Any) -> None:
        start, end = first.start_mark.index, _end(last)
        if among.flow_style:
            after = re.compile(r"\s*,\s*").match(self._text, end)
            before = re.search(r"\s*,\s*$", self._text[:start])
            if after:
                end = after.end()
            elif before:
                start = before.start()
            self._add(first, kind, start, end)
            return
        begin = self._text.rfind("\n", 0, start) + 1
        lead = self._text[begin:start]
        finish = self._text.find("\n", end) + 1 or len(self._text)
        if self._text[end - 1 : end] == "\n":
            finish = end
        if lead.strip() == ("-" if isinstance(among, yaml.SequenceNode) else ""):
            self._add(first, kind, begin, finish)

    def _other_value(self, node: yaml.ScalarNode, key: str) -> None:
        start, end = node.start_mark.index, node.end_mark.index
        if node.style in ("|", ">"):  # changed as it is written, below its first line
            for kind, text in swaps(self._text[start:end]) if "{{" in node.value or key in EXPRESSIONS else ():
                self._add(node, kind, start, end, text)
            return
        quotes = 1 if node.style else 0
        start, end, value = start + quotes, end - quotes, self._text[start + quotes : end - quotes]
        for kind, text in self._values(value, key, node):
            self._add(node, kind, start, end, text)

    def _values(self, value: str, key: str, node: yaml.ScalarNode) -> Iterator[tuple[str, str]]:
        plain = node.tag.rpartition(":")[2]
        if key == "mode" and re.fullmatch(r"0?[0-7]{3,4}", value):
            yield "other mode", value[:-1] + str(int(value[-1]) ^ 4)
        elif plain == "bool":
            yield "other boolean", "false" if value == "true" else "true"
        elif plain == "int":
            yield "other number", str(int(node.value) + 1)
        elif key == "state" and value in STATES:
            yield "other state", STATES[value]
        elif key == "type" and value in TYPES:
            yield "other type", TYPES[value]
        elif plain == "str" and value:
            if key in CONDITIONS:
                yield "opposite", negated(value)
            if "{{" in value or key in EXPRESSIONS:
                yield from swaps(value)
            elif (self._declared and key != "severity") or key in WRITTEN:
                yield "other text", f"{value}x"


def _end(node: yaml.Node) -> int:
    """Where what a node holds ends: a collection's own mark is where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


def _events(text: str) -> list[tuple[Any, ...]] | None:
    """What a text says, whatever its layout; None when it is not YAML."""
    try:
        return [
            (type(one).__name__, getattr(one, "value", None), getattr(one, "tag", None), getattr(one, "implicit", None))
            for one in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        ]
    except yaml.YAMLError:
        return None
