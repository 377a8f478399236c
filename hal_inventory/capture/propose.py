"""A proposal for a cluster.yml from captures: values for placeholders, parts that it does not name, contradictions."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from hal_inventory.capture.document import Capture, NodeCapture
from hal_inventory.capture.edit import Editor
from hal_inventory.capture.machine import Machine, of_capture
from hal_inventory.capture.nodes import propose_for_nodes
from hal_inventory.capture.profiles import propose_for_profiles
from hal_inventory.capture.work import Proposal, Seen, Work
from hal_inventory.errors import ClusterFileError, Finding
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.reader import parse
from hal_inventory.shape import declarations


def propose(
    content: bytes,
    file: str,
    captures: Sequence[tuple[str, Capture]],
    *,
    node: str | None = None,
    nodes: Mapping[str, str] | None = None,
) -> Proposal:
    """Return what captures propose for the model ``content``.

    ``node`` names the machine of a single capture, ``nodes`` those of captures by their sources.
    """
    site = load_bytes(content, file)
    document = parse(content, file)
    cluster, _ = declarations(document)
    assert cluster is not None  # load_bytes has read it
    work = Work(document, cluster, site, Editor(content.decode("utf-8-sig")))
    for source, capture in captures:
        machine = of_capture(capture)
        work.result.findings += [Finding(source, 0, fault.field, fault.message) for fault in machine.faults]
        name = node or (nodes or {}).get(source) or _node_of(site, capture, machine)
        if name is None:
            said = capture.host if isinstance(capture, NodeCapture) else capture.address
            where = "host" if isinstance(capture, NodeCapture) else "address"
            message = f'"{said}" is not a node of site {site.name}; name its node with --node'
            work.result.findings.append(Finding(source, 0, where, message))
        else:
            work.seen.append(Seen(source, name, machine))
    propose_for_nodes(work)
    propose_for_profiles(work)
    text = work.editor.result()
    if text != work.editor.text:
        try:
            load_bytes(text.encode(), file)
        except ClusterFileError as error:
            work.result.findings += [
                Finding(finding.file, finding.line, finding.field, f"with what was captured: {finding.message}")
                for finding in error.findings
            ]
            return Proposal(findings=work.result.findings)
        lines = difflib.unified_diff(
            work.editor.text.splitlines(keepends=True), text.splitlines(keepends=True), f"a/{file}", f"b/{file}"
        )
        work.result.diff = "".join(lines)
    return work.result


def _node_of(site: Site, capture: Capture, machine: Machine) -> str | None:
    """Return the node that a machine is: by its name, its serial number, or an address that the model has."""
    if machine.host in site.nodes:
        return machine.host
    asked = "" if isinstance(capture, NodeCapture) else capture.address
    name = asked.partition(".")[0].lower()
    for candidate in (name, name.removesuffix("-bmc"), name.removeprefix("bmc-")):
        if candidate in site.nodes:
            return candidate
    addresses = {asked, *machine.addresses}
    for node in site.nodes.values():
        if machine.serial and node.serial == machine.serial:
            return node.name
        if addresses & {str(address) for address in node.addresses.values()}:
            return node.name
    return None
