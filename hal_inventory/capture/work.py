"""What the parts of a proposal share: the model, the machines, the text that is edited, and what is noted."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from hal_inventory.capture.edit import Editor
from hal_inventory.capture.machine import Machine
from hal_inventory.declared import ClusterFile
from hal_inventory.errors import Finding
from hal_inventory.model import IPNetwork, Site
from hal_inventory.reader import Document, Path_, Scalar, Tree, field_name
from hal_inventory.reader import Mapping as MappingTree
from hal_inventory.reader import Sequence as SequenceTree


@dataclass(frozen=True)
class Proposed:
    """One value that a capture gives to a field that had none, or a placeholder."""

    field: str
    node: str
    value: str | int
    source: str

    def as_dict(self) -> dict[str, str | int]:
        """Return it as plain data, for --json."""
        return {"field": self.field, "node": self.node, "value": self.value, "source": self.source}


@dataclass
class Proposal:
    """The new text of a cluster.yml as a diff, what is new in it, and what somebody has to look at."""

    diff: str = ""
    proposed: list[Proposed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """A machine, the node that it is, and the file that says so."""

    source: str
    node: str
    machine: Machine


@dataclass
class Work:
    """One proposal in the making."""

    document: Document
    cluster: ClusterFile
    site: Site
    editor: Editor
    seen: list[Seen] = field(default_factory=list)
    result: Proposal = field(default_factory=Proposal)

    def fault(self, path: Path_, message: str) -> None:
        """Note a finding about a field of the model."""
        self.result.findings.append(Finding(self.document.file, self.document.line(path), field_name(path), message))

    def unclear(self, capture: Seen, where: str, message: str) -> None:
        """Note a finding about a capture."""
        self.result.findings.append(Finding(capture.source, 0, where, message))

    def note(self, path: Path_, capture: Seen, value: str | int) -> None:
        """Note a value that is proposed."""
        self.result.proposed.append(Proposed(field_name(path), capture.node, value, capture.source))

    def tree(self, path: Path_) -> Tree | None:
        """Return what is written at a field, or None."""
        here: Tree | None = self.document.root
        for step in path:
            if isinstance(here, MappingTree) and step in here.items:
                here = here.items[str(step)]
            elif isinstance(here, SequenceTree) and isinstance(step, int) and step < len(here.items):
                here = here.items[step]
            else:
                return None
        return here

    def declared_interface(self, capture: Seen, network: str) -> str | None:
        """Return the interface that a machine's profile declares for a network; None for a placeholder."""
        tree = self.tree(("profiles", self.site.nodes[capture.node].profile, "interfaces", network, "name"))
        return tree.text if isinstance(tree, Scalar) and not tree.placeholder else None

    def interface(self, capture: Seen, network: str) -> str | None:
        """Return the interface that has an address in a network."""
        cidr = self.site.networks[network].cidr
        return next((name for text, name in capture.machine.addresses.items() if inside(text, cidr)), None)


def inside(text: str, network: IPNetwork) -> bool:
    """Tell whether a text is an address of a network."""
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False
