"""What captures say of single nodes: serial numbers, MACs, and the identities of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hal_inventory.capture.edit import Value
from hal_inventory.capture.machine import Machine
from hal_inventory.capture.work import Seen, Work, inside
from hal_inventory.declared import Nodes
from hal_inventory.identities import is_guid
from hal_inventory.model import MANAGEMENT, IPNetwork
from hal_inventory.names import is_wwn
from hal_inventory.ranges import expand_list
from hal_inventory.reader import Path_, Scalar
from hal_inventory.reader import Sequence as SequenceTree


def propose_for_nodes(work: Work) -> None:
    """Go through the entries of nodes that have been captured."""
    for key, declared in work.cluster.nodes.items():
        names = expand_list(key)
        seen = [capture for capture in work.seen if capture.node in names]
        if seen:
            _Entry(work, ("nodes", key), names, declared).propose(seen)


@dataclass(frozen=True)
class _Entry:
    """One entry of the model: a node, or the nodes of a range."""

    work: Work
    path: Path_
    names: Sequence[str]
    declared: Nodes

    def propose(self, seen: Sequence[Seen]) -> None:
        """Answer placeholders, add what is not declared, and name contradictions."""
        path = self.path
        self._column((*path, "serial"), [(capture, capture.machine.serial) for capture in seen])
        groups: dict[str, dict[str, list[tuple[Seen, str | None]]]] = {}
        for capture in seen:
            for network, mac in self._macs(capture):
                groups.setdefault("macs", {}).setdefault(network, []).append((capture, mac))
            for kind, parts in _parts(
                capture.machine, len(self.work.site.profiles[self.declared.profile].gpus)
            ).items():
                for part, identity in parts.items():
                    groups.setdefault(kind, {}).setdefault(part, []).append((capture, identity))
        for kind, parts_ in groups.items():
            new = []
            for part, values in parts_.items():
                if self.work.editor.has((*path, kind, part)):
                    self._column((*path, kind, part), values)
                elif column := self._new_column((*path, kind, part), values):
                    new.append((part, column))
            if new and not self.work.editor.add((*path, kind), new):
                self.work.fault(
                    path, f"{kind} cannot be added to what is written in one line; write the entry line by line"
                )

    def _macs(self, capture: Seen) -> Iterator[tuple[str, str]]:
        """Give the MAC of each network in which the node has an address."""
        for network in self.declared.addresses:
            kind = self.work.site.networks[network].kind
            if kind == "bmc" and capture.machine.bmc_macs:
                yield network, self._bmc_mac(capture, network)
            elif kind == "ethernet" and capture.machine.links and (mac := self._port(capture, network)):
                yield network, mac

    def _bmc_mac(self, capture: Seen, network: str) -> str:
        return bmc_mac(capture.machine, self.work.site.networks[network].cidr)

    def _port(self, capture: Seen, network: str) -> str | None:
        """Return the MAC of the interface that is declared for a network, or has an address in it."""
        links, cidr = capture.machine.links, self.work.site.networks[network].cidr
        name = (
            self.work.declared_interface(capture, network) or self.work.interface(capture, network) or ""
        ).partition(".")[0]
        ports = sorted(link.name for link in links.values() if link.master == name) or [name]
        if ports[0] in links:
            return links[ports[0]].mac
        if network == MANAGEMENT:
            connected = sorted(
                f"{link.name} {link.mac}"
                for link in links.values()
                if link.kind == "ether" and link.carrier and not link.master
            )
            looked_for = f"no interface {name}" if name else f"no interface with an address in {cidr}"
            self.work.unclear(
                capture,
                "outputs.ip_link",
                f"{looked_for} for {network}; connected are {', '.join(connected) or 'none'}",
            )
        return None

    def _column(self, path: Path_, captured: Sequence[tuple[Seen, str | None]]) -> None:
        """Put captured values where placeholders are, and compare them with the rest."""
        answers = self._answers(path, captured)
        if not answers:
            return
        if not self.work.editor.has(path):
            column = self._new_column(path, captured)
            if column and not self.work.editor.add_single(path, column):
                self.work.fault(
                    path[:-1], f"{path[-1]} cannot be added to what is written in one line; write it line by line"
                )
            return
        before = self._written(path)
        after = [self._settled(path, value, answers.get(value.node)) for value in before]
        if after == before:
            return
        if [value.text for value in after] == [value.text for value in before] and not any(
            v.placeholder for v in after
        ):
            self.work.editor.confirm(path)
        else:
            self.work.editor.replace_column(path, after)

    def _settled(self, path: Path_, value: Value, answer: tuple[Seen, str] | None) -> Value:
        if answer is None:
            return value
        capture, text = answer
        if value.placeholder:
            self.work.note(path, capture, text)
            return Value(text, False, value.node)
        if value.text.lower() != text.lower():
            self.work.fault(path, f"{value.node} has {value.text} here; {capture.source} says {text}")
        return value

    def _new_column(self, path: Path_, captured: Sequence[tuple[Seen, str | None]]) -> list[Value] | None:
        """Return a column for a field that is not there. Nodes that were not captured yet get placeholders."""
        answers = self._answers(path, captured)
        for capture, text in answers.values():
            self.work.note(path, capture, text)
        if path[-2] == "macs" and len(answers) < len(self.names):
            missing = ", ".join(name for name in self.names if name not in answers)
            self.work.fault(
                path,
                f"is not declared yet and can be added when all nodes of the entry are captured; missing: {missing}",
            )
            return None
        return [
            Value(answers[name][1], False, name)
            if name in answers
            else Value(f"PLACEHOLDER-{name}-{path[-1]}".upper().replace("/", "-"), True, name)
            for name in self.names
        ]

    def _answers(self, path: Path_, captured: Sequence[tuple[Seen, str | None]]) -> dict[str, tuple[Seen, str]]:
        """Return one answer for each node. Captures that contradict each other are a fault, and not an answer."""
        answers: dict[str, tuple[Seen, str]] = {}
        refused: set[str] = set()
        for capture, text in captured:
            if not text:
                continue
            if not text.isprintable() or any(mark in text for mark in "[]{}"):
                self.work.unclear(capture, str(path[-1]), f"{text!r} cannot stand in a model")
                continue
            first = answers.setdefault(capture.node, (capture, text))
            if first[1].lower() != text.lower():
                self.work.fault(
                    path, f"{capture.node}: {first[0].source} says {first[1]}, {capture.source} says {text}"
                )
                refused.add(capture.node)
        return {name: answer for name, answer in answers.items() if name not in refused}

    def _written(self, path: Path_) -> list[Value]:
        """Return what is written, one value a node."""
        tree = self.work.tree(path)
        items = tree.items if isinstance(tree, SequenceTree) else [tree]
        values = [
            (text, item.placeholder) for item in items if isinstance(item, Scalar) for text in expand_list(item.text)
        ]
        return [Value(text, placeholder, name) for (text, placeholder), name in zip(values, self.names, strict=True)]


def bmc_mac(machine: Machine, cidr: IPNetwork) -> str:
    """Return the MAC of a BMC's port in a network; of its first port if none has an address there."""
    ports = machine.bmc_macs
    return next((mac for mac, addresses in ports if any(inside(text, cidr) for text in addresses)), ports[0][0])


def _parts(machine: Machine, gpus: int) -> Mapping[str, Mapping[str, str]]:
    """Return the identities of a machine's parts, by the fields of the model; as many GPUs as its profile has."""
    answered = machine.gpus.answered if machine.gpus else ()
    return {
        "port_guids": {port.name: port.guid for port in machine.ports if is_guid(port.guid)},
        "disks": {disk.name: disk.wwn for disk in machine.disks if disk.wwn and is_wwn(disk.wwn)},
        "gpu_uuids": {str(gpu.index): gpu.uuid for gpu in answered if gpu.index < gpus},
    }
