"""``capture``: the script that reads a machine, and a proposal for the model from what it printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hal_inventory import capture as package
from hal_inventory.capture.document import read_capture
from hal_inventory.capture.propose import propose
from hal_inventory.capture.work import Proposal
from hal_inventory.errors import Finding, HalInventoryError, UnknownNameError
from hal_inventory.load import load_bytes
from hal_inventory.output import Answer
from hal_inventory.reader import display_name, read_bytes
from hal_inventory.sources import is_model, read_source
from hal_inventory.suggest import did_you_mean

CLEAN, FOUND = 0, 2
SCRIPT = Path(package.__file__).with_name("node.py")


@dataclass(frozen=True)
class Verdict:
    """The diff, remarks about it, both as data, and the exit status."""

    diff: str
    remarks: str
    answer: Answer
    status: int


def script() -> str:
    """Return the script that runs on a machine."""
    return SCRIPT.read_text(encoding="utf-8")


def capture(source: Path, files: Sequence[str], *, node: str | None) -> Verdict:
    """Return what the captures propose for the model of a source, or for a cluster.yml itself."""
    if not files:
        raise HalInventoryError(
            "capture needs the files that its script printed on machines (--script prints the script)"
        )
    if node is not None and len(files) > 1:
        raise HalInventoryError("--node names the node of one file; these are several")
    model = source if is_model(source) else read_source(source).cluster
    content, file = read_bytes(model), display_name(model)
    if node is not None:
        known = load_bytes(content, file).nodes
        if node not in known:
            raise UnknownNameError(f'unknown node "{node}"{did_you_mean(node, known, kind="nodes")}')
    return verdict(propose(content, file, [read_capture(path) for path in files], node=node), ())


def verdict(proposal: Proposal, more: Sequence[Finding]) -> Verdict:
    """Return a proposal as it is printed; ``more`` are findings beside its own."""
    findings = sorted({*proposal.findings, *more})
    lines = [str(finding) for finding in findings]
    if not proposal.diff:
        lines.append("nothing to propose")
    data = {
        "diff": proposal.diff,
        "proposed": [change.as_dict() for change in proposal.proposed] if proposal.diff else [],
        "findings": [finding.as_dict() for finding in findings],
    }
    remarks = "".join(f"{line}\n" for line in lines)
    return Verdict(proposal.diff, remarks, Answer(data, []), FOUND if findings else CLEAN)
