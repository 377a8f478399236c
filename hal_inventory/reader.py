"""The one reader of YAML: a tree in which every value knows its line.

It walks the parser's events instead of composing recursively, so that neither deep nesting nor aliases can hurt. It
resolves plain scalars itself: decimal numbers, true, false and null, and all else is text. YAML 1.1 would read 24:00:00
as 86400, and a MAC of digits as a base-60 number.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from hal_inventory.errors import ClusterFileError, Finding

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 24
PLACEHOLDER_TAG = "!placeholder"
ANSIBLE_TAGS = ("!vault", "!unsafe", "!vault-encrypted")

Plain: TypeAlias = str | int | float | bool | tuple["Plain", ...] | dict[str, "Plain"] | None
Path_: TypeAlias = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_JINJA = ("{{", "{%", "{#")


@dataclass
class Scalar:
    """A value as written. ``plain``: not quoted."""

    text: str
    line: int
    plain: bool
    placeholder: bool = False


@dataclass
class Sequence:
    """A list."""

    line: int
    items: list[Tree] = field(default_factory=list)


@dataclass
class Mapping:
    """A mapping. ``lines`` has the line of each key."""

    line: int
    items: dict[str, Tree] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


Tree: TypeAlias = Scalar | Sequence | Mapping


@dataclass
class Document:
    """A file that was read: its tree and the faults met so far."""

    file: str
    root: Mapping
    findings: list[Finding]

    def line(self, path: Path_) -> int:
        """Return the line of a field; of the nearest enclosing one if it is not in the file."""
        here: Tree = self.root
        line = here.line
        for step in path:
            if isinstance(here, Mapping) and step in here.items:
                line, here = here.lines[str(step)], here.items[str(step)]
            elif isinstance(here, Sequence) and isinstance(step, int) and step < len(here.items):
                here = here.items[step]
                line = here.line
            else:
                break
        return line

    def add(self, path: Path_, message: str) -> None:
        """Note a fault of a field."""
        self.findings.append(Finding(self.file, self.line(path), field_name(path), message))

    def plain(self) -> dict[str, Plain]:
        """Return the content as plain data: tuples for lists, and text, numbers, booleans and None."""
        return {key: _plain(value) for key, value in self.root.items.items()}

    def texts(self) -> Iterator[tuple[Path_, Scalar]]:
        """Give every value, and the name of every field that has fields, in the order of the file."""
        stack: list[tuple[Path_, Tree]] = [((), self.root)]
        while stack:
            path, here = stack.pop()
            if isinstance(here, Scalar):
                yield path, here
            elif isinstance(here, Mapping):
                if path:
                    yield path, Scalar(str(path[-1]), here.line, plain=True)
                stack.extend(((*path, key), value) for key, value in reversed(here.items.items()))
            else:
                stack.extend(((*path, at), here.items[at]) for at in reversed(range(len(here.items))))

    def placeholders(self) -> Iterator[tuple[Path_, int, str]]:
        """Give path, line and text of every value marked !placeholder, in the order of the file."""
        return ((path, value.line, value.text) for path, value in self.texts() if value.placeholder)

    def is_placeholder(self, path: Path_) -> bool:
        """Tell whether the field at ``path``, or an entry of the list there, is marked !placeholder."""
        here: Tree = self.root
        for step in path:
            if isinstance(here, Mapping) and step in here.items:
                here = here.items[str(step)]
            else:
                return False
        if isinstance(here, Sequence):
            return any(isinstance(item, Scalar) and item.placeholder for item in here.items)
        return isinstance(here, Scalar) and here.placeholder


def field_name(path: Path_) -> str:
    """Return a path as text: ``profiles.ac922.gpus[2].socket``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def display_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name for messages: relative to the working directory if it is below that."""
    name = os.fspath(path)
    try:
        relative = os.path.relpath(name)
    except (OSError, ValueError):  # the working directory was removed, or there is no name
        return name
    return name if relative.startswith(os.pardir) else relative


_OTHERS = {
    stat.S_IFDIR: "is a directory; name the file in it",
    stat.S_IFIFO: "is a pipe; name a regular file",
    stat.S_IFSOCK: "is a socket; name a regular file",
}


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return a regular file's content without waiting; ClusterFileError if it is missing, not regular, or too large."""
    name = display_name(path)
    try:
        _regular(os.stat(path), name)  # before it is opened, which may already do something to a device
        with open(path, "rb", opener=_at_once) as stream:
            _regular(os.fstat(stream.fileno()), name)  # it may have been replaced
            content = stream.read(MAX_BYTES + 1) or b""
    except FileNotFoundError:
        link = os.path.islink(path)
        raise _fault(
            name, 0, f'is a link to "{os.readlink(path)}", and there is no such file' if link else "no such file"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _fault(name, 0, f"cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise _fault(name, 0, f"is larger than {MAX_BYTES} bytes; that is taken for a slip")
    return content


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting until somebody writes into a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _regular(status: os.stat_result, name: str) -> None:
    """Raise ClusterFileError for what is not a regular file: reading a pipe waits, and /dev/zero never ends."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise _fault(name, 0, _OTHERS.get(kind, "is a device; name a regular file"))


def parse(content: bytes, file: str, *, variables: bool = False) -> Document:
    """Return the tree of a YAML file with its findings so far; ClusterFileError if there is no tree.

    ``variables``: the file is Ansible's, of group_vars or host_vars. It may be empty, and its values may be templates,
    text of several lines, and marked with Ansible's tags.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _fault(file, line, f"is not UTF-8 text: byte 0x{content[error.start]:02x}") from None
    if not text.strip() and not variables:
        raise _fault(file, 0, "is empty; a mapping of fields is expected")
    builder = _VariablesBuilder(file) if variables else _Builder(file)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        begun = error.context_mark.line + 1 if error.context_mark else line
        what = f"{error.context or ''}{f' from line {begun} on' if begun < line else ''} {error.problem or ''}".strip()
        raise _fault(file, line, f"is not YAML: {what}{_hint(text, line)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 0
        raise _fault(file, line, f"is not YAML: {error.reason}") from None
    if isinstance(builder.root, Mapping):
        return Document(file, builder.root, builder.findings)
    if builder.is_empty():
        return Document(file, Mapping(0), builder.findings)
    if builder.root is None:
        raise _fault(file, 0, "is empty; a mapping of fields is expected")
    raise ClusterFileError([*builder.findings, Finding(file, builder.root.line, "", "must be a mapping of fields")])


def _hint(text: str, line: int) -> str:
    """Return what the fault most likely is, where the line shows it."""
    written = text.splitlines()[line - 1 : line]
    if written and re.search(r"\{.*[\w.-]\[[\d,/-]+\]", written[0]):
        return "; a range such as hal[01-16] inside { } needs quotes"
    if written and "\t" in written[0]:
        return "; there is a tab, and YAML takes only spaces"
    return ""


def _fault(file: str, line: int, message: str) -> ClusterFileError:
    return ClusterFileError([Finding(file, line, "", message)])


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark else 0


_Tagged: TypeAlias = yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent


class _Builder:
    """Makes the tree from events, with a stack of its own."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Tree | None = None
        self.findings: list[Finding] = []
        self.open: list[tuple[Sequence | Mapping, Path_]] = []
        self.key: list[str | None] = []  # for each open mapping: the key that waits for its value
        self._key_line = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._start(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.open.pop()
            self.key.pop()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor, _line(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents == 2:
                raise _fault(self.file, _line(event), "a second document starts here; write only one")

    def is_empty(self) -> bool:
        """Tell whether nothing is in the file, and nothing has to be."""
        return False

    def _note(self, line: int, message: str) -> None:
        self.findings.append(Finding(self.file, line, field_name(self._path()), message))

    def _path(self) -> Path_:
        if not self.open:
            return ()
        container, path = self.open[-1]
        if isinstance(container, Sequence):
            return (*path, len(container.items))
        key = self.key[-1]
        return path if key is None else (*path, key)

    def _anchor(self, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._note(line, f'anchor "&{anchor}" is not allowed; write the value out where it is needed')

    def _alias(self, anchor: str | None, line: int) -> None:
        self._note(line, f'alias "*{anchor}" is not allowed; write the value out')
        self._place(Scalar("", line, plain=True), line)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line = _line(event)
        self._anchor(event.anchor, line)
        if self.open and isinstance(self.open[-1][0], Mapping) and self.key[-1] is None:
            self._name(event, line)
            return
        self._check_text(event.value, line)
        self._tag(event, line)
        placeholder = event.tag == PLACEHOLDER_TAG
        self._place(Scalar(event.value, line, plain=not event.style, placeholder=placeholder), line)

    def _name(self, event: yaml.ScalarEvent, line: int) -> None:
        """Take the name of a field; what follows is its value."""
        self.key[-1] = event.value
        self._key_line = line
        self._check_text(event.value, line)
        if event.value == "<<":
            self._note(line, "merging is not allowed; write the fields out")
        if event.tag is not None:
            self._note(line, f"a tag marks values, not field names; take {_short(event.tag)} away")

    def _check_text(self, text: str, line: int) -> None:
        if not text.isprintable():  # it ends in configuration files and on terminals
            self._note(line, f"must be one line of printable text, not {text!r}")
        if any(mark in text for mark in _JINJA):
            self._note(line, f"a template is not evaluated here and not allowed: {text!r}; write the value itself")

    def _tag(self, event: _Tagged, line: int) -> None:
        """Note a tag that a value may not have."""
        if event.tag is None:
            return
        if event.tag != PLACEHOLDER_TAG:
            self._note(line, f"unknown tag {_short(event.tag)}; the only one is {PLACEHOLDER_TAG}")
        elif not isinstance(event, yaml.ScalarEvent):
            self._note(line, f"{PLACEHOLDER_TAG} marks single values, not lists or mappings")

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        line = _line(event)
        if len(self.open) >= MAX_DEPTH:
            raise _fault(self.file, line, f"is nested more than {MAX_DEPTH} levels deep")
        self._anchor(event.anchor, line)
        self._tag(event, line)
        made: Sequence | Mapping = Mapping(line) if isinstance(event, yaml.MappingStartEvent) else Sequence(line)
        path = self._path()
        self._place(made, line)
        self.open.append((made, path))
        self.key.append(None)

    def _place(self, made: Tree, line: int) -> None:
        """Put a value where it belongs; in a mapping the first of two is the key."""
        if not self.open:
            self.root = made
            return
        container, _ = self.open[-1]
        if isinstance(container, Sequence):
            container.items.append(made)
            return
        key = self.key[-1]
        if key is None:
            raise _fault(self.file, line, "a field name must be text, not a list or a mapping")
        if key in container.items:
            self._note(self._key_line, f"used twice: first at line {container.lines[key]}")
        else:
            container.items[key] = made
            container.lines[key] = self._key_line
        self.key[-1] = None


class _VariablesBuilder(_Builder):
    """Takes what Ansible takes, except anchors: a value stands where it counts, or has a name that a search finds."""

    def _anchor(self, anchor: str | None, line: int) -> None:
        if anchor is not None:
            instead = 'write the value out, or set a variable to it and write "{{ NAME }}"'
            self._note(line, f'anchor "&{anchor}" is not allowed; {instead} where it is needed')

    def _alias(self, anchor: str | None, line: int) -> None:
        self._place(Scalar("", line, plain=True), line)  # said where its anchor is

    def is_empty(self) -> bool:
        return self.root is None or (isinstance(self.root, Scalar) and self.root.plain and not self.root.text)

    def _check_text(self, text: str, line: int) -> None:
        """Templates and text of several lines are right."""

    def _tag(self, event: _Tagged, line: int) -> None:
        if event.tag is not None and event.tag not in ANSIBLE_TAGS and not _is_yamls(event.tag):
            self._note(line, f"unknown tag {_short(event.tag)}; Ansible knows {' and '.join(ANSIBLE_TAGS[:2])}")


def _is_yamls(tag: str) -> bool:
    """Tell whether a tag is one of YAML itself, such as !!str. PyYAML's !!python/... makes objects, and is not."""
    return tag.startswith("tag:yaml.org,2002:") and "/" not in tag


def _plain(tree: Tree) -> Plain:
    if isinstance(tree, Mapping):
        return {key: _plain(value) for key, value in tree.items.items()}
    if isinstance(tree, Sequence):
        return tuple(_plain(item) for item in tree.items)
    if not tree.plain:
        return tree.text
    if tree.text in _WORDS:
        return _WORDS[tree.text]
    if _INTEGER.fullmatch(tree.text):
        return int(tree.text)
    if _FLOAT.fullmatch(tree.text):
        return float(tree.text)
    return tree.text
