"""One node whose main board, BMC or disk was replaced: its new identities take the place of the old ones.

Unlike a capture's proposal this overwrites what somebody declared. So it is for one node, and changes only values of
that node alone. Comments, order and everything else stay byte for byte.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hal_inventory.capture.edit import Editor
from hal_inventory.capture.machine import Machine
from hal_inventory.capture.nodes import bmc_mac
from hal_inventory.errors import ClusterFileError, Finding
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.names import is_wwn
from hal_inventory.ranges import expand, expand_list
from hal_inventory.reader import Document, Path_, Scalar, Tree, field_name, parse
from hal_inventory.reader import Mapping as MappingTree
from hal_inventory.reader import Sequence as SequenceTree

KINDS = {"serial": "serial number", "macs": "MAC", "disks": "world-wide name"}
SAME, NEW, PLACEHOLDER, NOT_DECLARED = "same", "new", "placeholder", "not declared"


@dataclass(frozen=True)
class Told:
    """An identity of the node as it is now: the field below its entry, and who says so."""

    field: tuple[str, ...]
    value: str
    source: str


@dataclass(frozen=True)
class Row:
    """One identity, declared and found. ``line`` in the file, 0 if it is not declared. ``state``: one of four."""

    field: str
    line: int
    declared: str
    found: str
    source: str
    state: str


@dataclass(frozen=True)
class Adoption:
    """What was compared, the new content of the file, and the diff. Without a content ``findings`` say why."""

    rows: tuple[Row, ...]
    content: bytes | None
    findings: tuple[Finding, ...] = ()
    diff: str = ""


class _Spot(NamedTuple):
    path: Path_
    written: Scalar
    value: str
    alone: bool


def told_by(site: Site, node: str, machine: Machine, source: str) -> list[Told]:
    """Return what a BMC says of a node: its serial number, and the MAC of its own port in networks of BMCs."""
    told = [Told(("serial",), machine.serial, source)] if machine.serial else []
    for name in site.nodes[node].macs:
        if site.networks[name].kind == "bmc" and machine.bmc_macs:
            told.append(Told(("macs", name), bmc_mac(machine, site.networks[name].cidr), source))
    return told


def adopt(content: bytes, file: str, node: str, told: Sequence[Told]) -> Adoption:
    """Return a model with these identities of a node of it; ``file`` is its name for messages.

    A new content was read and checked. It is the same bytes if the model has all of it already.
    """
    site, document = load_bytes(content, file), parse(content, file)
    text = content.decode("utf-8-sig")
    editor, rows, findings = Editor(text), [], []
    entry, at = _entry(document, node)
    for identity in told:
        path: Path_ = ("nodes", entry, *identity.field)
        spot = _spot(document, path, at)
        row, fault = _compare(site, node, identity, spot)
        rows.append(row)
        if fault:
            findings.append(Finding(file, spot.written.line if spot else document.line(path), field_name(path), fault))
        elif spot and row.state != SAME:
            editor.replace(spot.path, identity.value)
    if findings:
        return Adoption(tuple(rows), None, tuple(findings))
    changed = editor.result()
    try:
        load_bytes(changed.encode(), file)
    except ClusterFileError as error:
        faults = [
            Finding(finding.file, finding.line, finding.field, f"as it would be: {finding.message}")
            for finding in error.findings
        ]
        return Adoption(tuple(rows), None, tuple(faults))
    lines = difflib.unified_diff(text.splitlines(True), changed.splitlines(True), f"a/{file}", f"b/{file}")
    mark = content[: len(content) - len(text.encode())]  # a byte order mark, where there is one
    return Adoption(tuple(rows), mark + changed.encode(), (), "".join(lines))


def _compare(site: Site, node: str, identity: Told, spot: _Spot | None) -> tuple[Row, str]:
    """Return a row of the table, and why this cannot be written; "" if it can, or need not be."""
    field = ".".join(identity.field)
    if spot is None:
        row = Row(field, 0, "", identity.value, identity.source, NOT_DECLARED)
        return row, f"{node} has none; hal-inventory capture proposes what is not declared yet"
    same = spot.value.lower() == identity.value.lower()
    state = PLACEHOLDER if spot.written.placeholder else SAME if same else NEW
    row = Row(field, spot.written.line, spot.value, identity.value, identity.source, state)
    if fault := _fault(site, node, identity):
        return row, fault
    if state != SAME and not spot.alone:
        text = spot.written.text
        return row, (
            f'{node} is {identity.value} now, and "{text}" stands for several nodes; write a list with one value a node'
            " there, then adopt again"
        )
    return row, ""


def _fault(site: Site, node: str, identity: Told) -> str:
    """Say why a value cannot be this node's; "" when it can."""
    kind = identity.field[0]
    if not identity.value.isprintable() or any(mark in identity.value for mark in "[]{}"):
        return f"{identity.source} says {identity.value!r}, which cannot stand in a model"
    if kind == "disks" and not is_wwn(identity.value):
        return (
            f"{identity.value} is not a world-wide name such as 0x5000c500a1b2c3d4; lsblk -o NAME,WWN,SERIAL shows them"
        )
    for other in site.nodes.values():
        theirs = {"serial": [other.serial], "macs": other.macs.values(), "disks": other.parts["disks"].values()}[kind]
        if other.name != node and identity.value.lower() in [(text or "").lower() for text in theirs]:
            return (
                f"{identity.source} says {identity.value}, which is the {KINDS[kind]} of {other.name}: the two are"
                " swapped, in the rack, in the cabling of their BMCs, or in this file; adopt cannot tell which, so look"
                " at them"
            )
    return ""


def _entry(document: Document, node: str) -> tuple[str, int]:
    """Return the name of a node's entry, such as hal[01-16], and its place among those."""
    nodes = document.root.items["nodes"]
    assert isinstance(nodes, MappingTree)  # the model was read before
    for name in nodes.items:
        if node in (names := expand_list(name)):
            return name, names.index(node)
    raise KeyError(node)


def _spot(document: Document, path: Path_, at: int) -> _Spot | None:
    """Return where the value of one node stands, None if the field is not there."""
    here: Tree | None = document.root
    for step in path:
        here = here.items.get(str(step)) if isinstance(here, MappingTree) else None
    items = here.items if isinstance(here, SequenceTree) else [here]
    for number, item in enumerate(items):
        if not isinstance(item, Scalar):
            return None
        values = expand(item.text)
        if at < len(values):
            where = (*path, number) if isinstance(here, SequenceTree) else path
            return _Spot(where, item, values[at], len(values) == 1)
        at -= len(values)
    return None
