"""The emulated InfiniBand fabric of an instance: one container with ibsim, made from the model's cables.

What nodes need to be in it is a file, since it is a fact of the machine; programs of the packages read it.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from testbed.run import LAB

NAME = "fabric"
PROGRAM, RELAY = LAB / "fabric/virtual-fabric", LAB / "fabric/relay.py"
NODE_FILE = "var/lib/virtual-node/fabric"
PORT = 7070
MAC = "02:48:41:4c:ff:fe"  # always the same: nodes remember it while the container starts anew
# Rate in Gb/s of four lanes -> bits of LinkSpeedExtEnabled: FDR 1, EDR 2, HDR 4; QDR has none.
EXTENDED = {40: 0, 56: 1, 100: 3, 200: 7}


class Cable(BaseModel):
    """A cable, as lookup('hal', 'fabric.cables') has it."""

    model_config = ConfigDict(frozen=True)

    switch: str
    switch_port: int
    owner: str
    port: str
    guid: str
    rate_gbps: int | None = None

    @property
    def device(self) -> str:
        """The adapter: mlx5_0 of mlx5_0/1."""
        return self.port.partition("/")[0]


class Switch(BaseModel):
    """A switch, as lookup('hal', 'fabric.switches') has it."""

    model_config = ConfigDict(frozen=True)

    name: str
    guid: str
    ports: int


class Fabric(BaseModel):
    """Everything in the fabric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    switches: tuple[Switch, ...] = ()
    cables: tuple[Cable, ...] = ()

    def first_of(self, node: str) -> Cable | None:
        """Return the cable of a node's first port: the emulation has one adapter a node that programs can use."""
        return next((cable for cable in self.cables if cable.owner == node), None)


def model(fabric: Fabric, nodes: Iterable[str], server: str) -> dict[str, Any]:
    """Return what virtual-fabric starts from: every end of a cable as a host of its own, or a switch."""
    names = {name: cable for name in nodes if (cable := fabric.first_of(name))}
    switches = {switch.name for switch in fabric.switches}
    cables = []
    for cable in fabric.cables:
        is_switch = cable.owner in switches
        first = names.get(cable.owner) == cable
        cables.append(
            {
                "switch": cable.switch,
                "switch_port": cable.switch_port,
                "host": cable.owner if is_switch or first else f"{cable.owner}-{cable.device}",
                "host_port": int(cable.port) if is_switch else 1,
                "guid": None if is_switch else cable.guid,
                "description": f"{cable.owner} {cable.device}",
                "bits": EXTENDED.get(cable.rate_gbps or 100, 3),
            }
        )
    switches_too = [switch.model_dump() for switch in fabric.switches]
    return {"address": server, "switches": switches_too, "cables": cables}


def address(cidr: str, used: Iterable[str]) -> str:
    """Return the last address of a network that nobody has: the fabric's own."""
    network = ipaddress.ip_network(cidr)
    taken = set(used)
    at = network.broadcast_address - 1
    while str(at) in taken:
        at -= 1
    return str(at)


def node_file(fabric: Fabric, node: str, server: str) -> str | None:
    """Return the file that a node is in the fabric by; None when it has no cable."""
    cable = fabric.first_of(node)
    if cable is None:
        return None
    lines = [f"IBSIM_SERVER_NAME={server}", f"IBSIM_SERVER_PORT={PORT}", f"SIM_HOST={node}", f"DEVICE={cable.device}"]
    return "\n".join(lines) + "\n"


def files(fabric: Fabric, nodes: Iterable[str], server: str) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of the files in the fabric's container, by path."""
    return {
        "usr/local/sbin/virtual-fabric": (0o755, PROGRAM.read_bytes()),
        "usr/local/libexec/virtual-fabric-relay": (0o644, RELAY.read_bytes()),
        "etc/virtual-fabric.json": (0o644, json.dumps(model(fabric, nodes, server), indent=1).encode()),
    }


def options(instance: str, label: str, packages: str, server: str) -> list[str]:
    """Return the options of `podman create` for the fabric's container."""
    return [
        f"--name={instance}-{NAME}",
        f"--hostname={NAME}",
        "--systemd=false",
        "--stop-signal=SIGTERM",
        "--no-hosts",
        f"--label={label}={instance}",
        f"--label=hal.node={NAME}",
        f"--mount=type=bind,source={packages},destination=/srv/hal-packages,ro=true",
        f"--network={instance}-management:ip={server},mac={MAC}",
    ]


COMMAND = ["/usr/bin/python3", "/usr/local/sbin/virtual-fabric", "serve"]
