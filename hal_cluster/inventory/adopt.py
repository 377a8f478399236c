"""``adopt``: put the new serial number, MACs and disks of a node into cluster.yml after its hardware was replaced."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hal_cluster.inventory.capture import CLEAN, FOUND
from hal_cluster.inventory.capture_bmc import ask, bmc_site
from hal_inventory.capture.adopt import NEW, NOT_DECLARED, PLACEHOLDER, SAME, Row, Told, adopt, told_by
from hal_inventory.capture.document import Capture, NodeCapture, read_capture
from hal_inventory.capture.machine import of_capture
from hal_inventory.errors import Finding, FindingsError, HalInventoryError, UnknownNameError
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.output import Answer, Table
from hal_inventory.reader import display_name, read_bytes
from hal_inventory.restrict import select
from hal_inventory.sources import is_model, read_source
from hal_inventory.suggest import did_you_mean

WORDS = {SAME: "", NEW: "new", PLACEHOLDER: "was a placeholder", NOT_DECLARED: "not declared"}
NEXT = """\
hal-inventory validate
git commit {file}
ansible-playbook playbooks/bmc.yml -e bmc_nodes={node}  # where its BMC is new: certificate and clock
ansible-playbook playbooks/site.yml --tags provision_server  # DHCP and its boot configuration
ansible-playbook playbooks/reimage.yml -e reimage_nodes={node}  # where it has to be installed anew"""


class Adopted:
    """What is printed (a table, the diff, remarks), and the exit status."""

    def __init__(self, answer: Answer, remarks: Sequence[str], status: int) -> None:
        self.answer, self.remarks, self.status = answer, "".join(f"{remark}\n" for remark in remarks), status


def run(
    source: Path,
    node: str,
    *,
    file: str | None,
    user: str | None,
    ca_file: str | None,
    pins: Sequence[str],
    disks: Sequence[str],
    macs: Sequence[str],
    write: bool,
) -> Adopted:
    """Compare one node with what its BMC, or a file of it, says; with ``write`` put that into its cluster.yml."""
    model = Path(os.path.realpath(source if is_model(source) else read_source(source).cluster))
    content, name = read_bytes(model), display_name(model)
    _one_node(load_bytes(content, name), node)
    site = load_bytes(content, name) if file else bmc_site(source)
    said_by, said = _file(file) if file else _bmc(site, node, user, ca_file, pins)
    machine = of_capture(said)
    if machine.serial is None:
        raise FindingsError([Finding(said_by, 0, fault.field, fault.message) for fault in machine.faults])
    told = [*told_by(site, node, machine, said_by), *_given("--mac", "macs", macs), *_given("--disk", "disks", disks)]
    result = adopt(content, name, node, _last(told))
    table = Table(
        ["field", "line", "declared", "found", "by", ""],
        [_cells(row) for row in result.rows],
        numbers=frozenset(["line"]),
    )
    if result.content is None:
        remarks = [*map(str, result.findings), f"{name} is as it was"]
        return _adopted(node, table, result.rows, "", remarks, FOUND, result.findings)
    if result.content == content:
        return _adopted(node, table, result.rows, "", [f"{name} has all of this: nothing to adopt"], CLEAN)
    if not write:
        remarks = ["Is that the machine in the rack? Then give the command again, with --write"]
        return _adopted(node, table, result.rows, result.diff, remarks, CLEAN)
    guesses = [row.field for row in result.rows if row.state == PLACEHOLDER]
    if site.virtual and guesses:
        raise HalInventoryError(
            f"{display_name(source)} is virtual, and so is what its BMCs say: {name} keeps its placeholders "
            f"({', '.join(guesses)} of {node})"
        )
    replace(model, content, result.content)
    remarks = [f"{name}: written. Next:", *(f"  {line}" for line in NEXT.format(file=name, node=node).splitlines())]
    return _adopted(node, table, result.rows, result.diff, remarks, CLEAN)


def _adopted(
    node: str,
    table: Table,
    rows: Sequence[Row],
    diff: str,
    remarks: Sequence[str],
    status: int,
    findings: Sequence[Finding] = (),
) -> Adopted:
    data = {
        "node": node,
        "identities": [asdict(row) for row in rows],
        "diff": diff,
        "findings": [finding.as_dict() for finding in findings],
    }
    return Adopted(Answer(data, [table, *([diff.rstrip("\n")] if diff else [])]), remarks, status)


def _cells(row: Row) -> list[str]:
    return [row.field, str(row.line or "-"), row.declared or "-", row.found, row.source, WORDS[row.state]]


def _one_node(site: Site, text: str) -> None:
    """Refuse what is not the name of one node."""
    if text in site.nodes:
        return
    try:
        names = select(site, text)
    except HalInventoryError:
        names = []
    if names:
        raise HalInventoryError(f"adopt takes the name of one node; {text} is {len(names)}: {', '.join(names[:4])}")
    raise UnknownNameError(f'unknown node "{text}"{did_you_mean(text, site.nodes, kind="nodes")}')


def _file(path: str) -> tuple[str, Capture]:
    name, said = read_capture(path)
    if isinstance(said, NodeCapture):
        raise HalInventoryError(
            f"{name}: is of a system that runs, by its own tools; adopt asks the BMC, which no system can imitate"
        )
    return name, said


def _bmc(site: Site, node: str, user: str | None, ca_file: str | None, pins: Sequence[str]) -> tuple[str, Capture]:
    if node not in site.nodes:
        raise HalInventoryError(f"{node} is not in this source's part of the site; name another with -i")
    captures, findings = ask(site, [node], user, ca_file, pins)
    if findings:
        raise FindingsError(findings)
    return captures[0]


def _given(option: str, kind: str, words: Sequence[str]) -> list[Told]:
    """Return what an administrator tells: NAME=VALUE. A disk without a name is the system disk."""
    told = []
    for word in words:
        name, equals, value = word.rpartition("=")
        if not equals and kind == "disks":
            name = "system"
        if not name or not value:
            raise HalInventoryError(f"{option} {word}: is not NAME=VALUE")
        told.append(Told((kind, name), value.lower(), option))
    return told


def _last(told: Sequence[Told]) -> list[Told]:
    """Return one for each field. An administrator overrides the BMC, and may not give a field twice."""
    fields = [identity.field for identity in told if identity.source.startswith("--")]
    for field in fields:
        if fields.count(field) > 1:
            raise HalInventoryError(f"{'.'.join(field)} is given twice")
    return list({identity.field: identity for identity in told}.values())


def replace(path: Path, before: bytes, content: bytes) -> None:
    """Replace a file's content at once and keep its mode; refuse if the file is not as it was read."""
    name = display_name(path)
    new = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
            new = Path(stream.name)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        new.chmod(path.stat().st_mode & 0o7777)
        if read_bytes(path) != before:
            raise HalInventoryError(f"{name} was changed by somebody else meanwhile; nothing is written, adopt again")
        new.replace(path)
    except OSError as error:
        raise HalInventoryError(f"{name}: cannot be written: {error.strerror}; it is as it was") from None
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
