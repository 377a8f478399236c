"""What an emulated BMC is: the facts of its machine, where it listens, and how it was delivered.

The kinds are those of the model (`hal_node.bmc.kind`). Members and delivered users: docs/virtual-hal.md, "Emulated
BMCs".
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from testbed.errors import VirtualNodesError

Kind = Literal["openbmc", "supermicro", "idrac", "redfish", "ipmi"]


class Members(BaseModel):
    """What the members of the three collections are called; makers name them apart."""

    model_config = ConfigDict(frozen=True)

    system: str
    manager: str
    chassis: str


class Delivered(BaseModel):
    """How a kind of BMC comes out of its box."""

    model_config = ConfigDict(frozen=True)

    members: Members
    user: str
    password: str
    account: str  # the id of the user below AccountService/Accounts
    manufacturer: str
    manager_model: str
    bmc_firmware: str
    host_firmware: str
    redfish: bool = True
    redfish_override: bool = True  # whether the boot override is offered over Redfish
    rest: bool = False
    ipmi: bool = True
    console: bool = False  # host console by ssh, port 2200


# Sources: OpenBMC's documentation and xCAT for openbmc; xcat2-task-management 442 and 518 for the LC92x; DMTF's
# mockups and Dell's
# manuals for idrac. Versions are examples of the time; nothing in the project depends on them.
KINDS: dict[str, Delivered] = {
    "openbmc": Delivered(
        members=Members(system="system", manager="bmc", chassis="chassis"),
        user="root",
        password="0penBmc",
        account="root",
        manufacturer="IBM",
        manager_model="OpenBmc",
        bmc_firmware="ibm-v2.3-476-g2d622cb-r33-0-gcb6e3a8",
        host_firmware="IBM-witherspoon-OP9-v2.3-rc2-3.22",
        rest=True,
        console=True,
    ),
    "supermicro": Delivered(
        members=Members(system="Computer", manager="BMC", chassis="Planar"),
        user="ADMIN",
        password="ADMIN",
        account="2",
        manufacturer="IBM",
        manager_model="LC92x",
        bmc_firmware="2.10.00",
        host_firmware="P9DSU20190404_IBM_prod_sign.pnor",
        redfish_override=False,
    ),
    "idrac": Delivered(
        members=Members(system="System.Embedded.1", manager="iDRAC.Embedded.1", chassis="System.Embedded.1"),
        user="root",
        password="calvin",
        account="2",
        manufacturer="Dell Inc.",
        manager_model="14G Monolithic",
        bmc_firmware="4.10.10.10",
        host_firmware="2.6.4",
    ),
    "redfish": Delivered(
        members=Members(system="1", manager="1", chassis="1"),
        user="admin",
        password="admin",
        account="1",
        manufacturer="Example",
        manager_model="BMC",
        bmc_firmware="1.00",
        host_firmware="1.00",
        ipmi=False,
    ),
    "ipmi": Delivered(
        members=Members(system="1", manager="1", chassis="1"),
        user="ADMIN",
        password="ADMIN",
        account="2",
        manufacturer="Example",
        manager_model="BMC",
        bmc_firmware="1.00",
        host_firmware="1.00",
        redfish=False,
    ),
}


class Ports(BaseModel):
    """Where a BMC listens; others than these in tests that share an address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    https: int = 443
    ipmi: int = 623
    console: int = 2200


class Boot(BaseModel):
    """What a machine needs to boot over the network: how it is plugged in, and what it is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arch: str
    kernel: str  # that of the model, as a package's version and release
    image: str  # of the containers: the system that packages are installed on, and what firmware and installer run in
    network: str  # podman's name of the network with the machine's first port
    address: str  # that the machine has there when nobody gives it one
    disks: dict[str, str] = {}  # world-wide names; "system" is the container's root, the others are empty


class Spec(BaseModel):
    """One BMC and the machine that it belongs to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Kind
    address: str
    serial: str
    model: str
    memory_mb: int = 262144
    cpus: int = 160
    gpus: int = 0
    macs: dict[str, str] = {}  # by network: management is the machine's port, bmc the BMC's own
    user: str | None = None  # None: as the kind is delivered
    password: str | None = None
    certificate: Path | None = None  # PEM; None: it makes one of its own, as delivered
    key: Path | None = None
    ports: Ports = Ports()
    boot: Boot | None = None  # None: the network has nothing for it

    @field_validator("address")
    @classmethod
    def _address(cls, value: str) -> str:
        return str(ipaddress.ip_address(value))

    @property
    def delivered(self) -> Delivered:
        """How a BMC of this kind comes."""
        return KINDS[self.kind]

    @property
    def login(self) -> tuple[str, str]:
        """User and password that it starts with."""
        return self.user or self.delivered.user, self.password or self.delivered.password


class Fleet(BaseModel):
    """All BMCs that one process serves, and where they keep their state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instance: str
    state: Path
    hardware: Literal["none", "nodes"] = "none"
    bmcs: tuple[Spec, ...] = Field(min_length=1)

    def named(self, name: str) -> Spec:
        """Return the BMC of a node; raise VirtualNodesError that names those there are."""
        for spec in self.bmcs:
            if spec.name == name:
                return spec
        there = ", ".join(spec.name for spec in self.bmcs)
        raise VirtualNodesError(f"{name}: instance {self.instance} has no such BMC; it has {there}")


def read_fleet(text: str, where: str) -> Fleet:
    """Return the fleet in a JSON document; raise VirtualNodesError that says ``where`` and names the field."""
    try:
        fleet = Fleet.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, problem["loc"])) or "the document"
        raise VirtualNodesError(f"{where}: {field}: {problem['msg']}") from None
    taken: dict[tuple[str, int], str] = {}
    for spec in fleet.bmcs:
        for port in set(spec.ports.model_dump().values()):
            other = taken.setdefault((spec.address, port), spec.name)
            if other != spec.name:
                raise VirtualNodesError(f"{where}: {spec.name}: {spec.address} port {port} is {other}'s already")
    names = [spec.name for spec in fleet.bmcs]
    for name in names:
        if names.count(name) > 1:
            raise VirtualNodesError(f"{where}: {name} has two BMCs; a node has one")
    return fleet
