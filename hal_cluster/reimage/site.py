"""The nodes that were asked for, as the site's model has them: whether they may be erased, and the plan of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hal_cluster.provision.kickstart import disk_of, wipeable
from hal_cluster.provision.nodes import BootNode, boot_node
from hal_cluster.reimage import guards
from hal_cluster.reimage.asked import Connected
from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.record import Image, Plan, Record, State
from hal_cluster.reimage.server import image_of
from hal_cluster.reimage.settings import Settings
from hal_inventory import managed
from hal_inventory.compiled import slice_of
from hal_inventory.sources import last_source


class Site:
    """What is known of the site and of the nodes that were asked for. ReimageError for what may not be erased."""

    def __init__(self, expression: str, settings: Settings, connected: Connected) -> None:
        """``expression``: which nodes."""
        self.settings = settings
        source = last_source(connected.sources)
        if source is None:
            raise ReimageError("no source of plugin hal among the inventory sources")
        self._source = source
        every = self.slice("nodes")
        refusable = not expression.strip() or set("*?") & set(expression)  # by guards.named, in better words
        nodes = [] if refusable else self.slice("nodes", where=expression)
        self.names = guards.named(expression, nodes, every)
        self.node = {name: dict(connected.variable(name, "hal_node") or {}) for name in self.names}
        boot = {str(node["name"]): node for node in self.slice("boot")}
        placeholders = {name: [str(field) for field in boot[name]["placeholders"]] for name in self.names}
        guards.refuse(self.node, placeholders, {settings.server, *settings.controllers})
        guards.refuse_left_alone(
            {name: connected.variable(name, "group_names") or () for name in self.names},
            {name: connected.variable(name, managed.VARIABLE) for name in self.names},
        )
        self.boot: dict[str, BootNode] = {name: boot_node(boot[name]) for name in self.names}

    def how(self, floors: Mapping[str, tuple[int, int]]) -> str:
        """Return in words how it is done; the code does not cover this."""
        ends = "given back to Slurm" if self.settings.next_state == "RESUME" else "left drained"
        by = "by scontrol reboot" if self.settings.by_slurm else "drained"
        keep = ", ".join(f"{name} {floor} of {nodes}" for name, (floor, nodes) in sorted(floors.items()))
        return f"{self.settings.max_parallel} at a time, {by}, then {ends}." + (
            f" Nodes that stay for jobs: {keep}." if keep else ""
        )

    def slice(self, name: str, **arguments: Any) -> Any:
        """Return a slice of the model."""
        return slice_of(self._source, name, arguments)

    @property
    def virtual(self) -> bool:
        """Whether the nodes are containers."""
        return bool(self.slice("site")["virtual"])

    def place(self, name: str) -> str:
        """Return where a node is, for people."""
        network = self.settings.network
        return f"{self.node[name]['model']}, {self.boot[name].address(network)}"

    def bmc_words(self, name: str) -> str:
        """Return what the BMC said when it was asked which machine it is."""
        return f"{self.node[name]['bmc']['address']} says the same"

    def plan(
        self, name: str, last: Record | None, images: Sequence[Any], begun: Sequence[Image] = (), called: str = ""
    ) -> Plan:
        """Return what would be done to a node. One that was begun keeps its image, whatever was published since.

        ``begun``: images of nodes that were begun by the same call; ``called``: when a node that has no record called
        home last, so that no code is good again when a record is lost.
        """
        node, wanted = self.boot[name], self.settings.image
        disk_of(node, virtual=self.virtual)
        goes_on = last is not None and last.state in (State.GOING, State.FAILED)
        previous = (called.split() or [""])[-1]
        if last is not None:
            previous = last.plan.previous if goes_on else last.ended
        theirs = [image for image in begun if (image.arch, image.kernel) == (node.arch, node.kernel)]
        if wanted or not (goes_on or theirs):
            image = image_of(node, images, wanted)
        else:
            image = last.plan.image if last and goes_on else theirs[0]
        can = wipeable(node)
        unknown = [disk for disk in self.settings.wipe if disk not in can]
        if unknown:
            raise ReimageError(
                f"{name}: reimage_wipe names {', '.join(unknown)}; "
                f"its other disks in cluster.yml: {', '.join(sorted(can)) or 'none'}"
            )
        wipe = tuple(sorted(can[disk] for disk in self.settings.wipe))
        return Plan(name, str(self.node[name]["serial"]), str(node.disk), image, wipe, previous)
