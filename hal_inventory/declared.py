"""What a cluster.yml may contain: the types of its fields as written. ``hal-inventory schema`` prints them.

Here are only rules for one field alone. Rules for several fields are in ``expand`` and ``validate``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from hal_inventory.names import ARCHITECTURES, NAME_RULE, ROLES, is_group_name, is_node_name
from hal_inventory.paths import is_of_the_system, plain


def checked(test: Callable[[str], Any], wanted: str) -> BeforeValidator:
    """Return a validator of text: ``wanted`` completes "is not ..."."""

    def check(value: Any) -> Any:
        if not isinstance(value, str):
            return value  # the field's own check reports the type
        try:
            good = test(value)
        except ValueError:
            good = False
        if not good:
            raise ValueError(f'"{value}" is not {wanted}')
        return value

    return BeforeValidator(check)


def _network(value: Any) -> Any:
    """Accept a CIDR without host bits."""
    if not isinstance(value, str):
        return value
    try:
        cidr = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f'"{value}" is not a network; write one such as 10.64.0.0/24') from None
    if str(cidr) != value:
        raise ValueError(f'"{value}" is not a network; write {cidr}')
    return value


def _several(value: Any) -> Any:
    """Accept one text for a list of one."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, tuple):
        quote = "; put it in quotes" if isinstance(value, (int, float)) else ""
        shown = "a mapping of fields" if isinstance(value, dict) else "nothing" if value is None else str(value)
        raise ValueError(f"must be text, a range or a list, not {shown}{quote}")
    return value


def _plainly_written(path: Any) -> Any:
    """Accept a path in its plain form: equal paths must look equal."""
    if isinstance(path, str) and plain(path) != path:
        raise ValueError(f'"{path}" is not written plainly; write {plain(path)}')
    return path


def _beside_the_system(path: Any) -> Any:
    """Accept a folder that has nothing of the system in it."""
    if isinstance(path, str) and path.startswith("/") and is_of_the_system(path):
        raise ValueError(f'"{path}" is a folder of the system, which would be hidden; write one such as /home')
    return path


def _as_text(value: Any) -> Any:
    """Accept a bare number as text: 5 is a list of CPUs too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Expression = Annotated[str, Field(min_length=1, description="nodes, e.g. 'compute or hal-mgmt1'")]
RangeText = Annotated[str, Field(min_length=1, description="a range, e.g. 'flash[1-2]'")]
CpuList = Annotated[str, BeforeValidator(_as_text), Field(description="CPU numbers, e.g. '0-19,40-59'")]
PerNode = Annotated[
    tuple[str, ...],
    BeforeValidator(_several),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "a value, a range with one value a node, or a list with one entry a node",
        }
    ),
]
Expressions = Annotated[
    tuple[str, ...],
    BeforeValidator(_several),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "nodes, e.g. 'compute or hal-mgmt1'; of several switches a list with one entry a switch",
        }
    ),
]
Ranges = Annotated[
    tuple[str, ...],
    BeforeValidator(_several),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "a name, a range, or a list of them",
        }
    ),
]
Duration = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"unlimited|(\d{1,4}-)?\d{1,3}:[0-5]\d:[0-5]\d", text),
        'a duration; write "hours:minutes:seconds", "days-hours:minutes:seconds" or "unlimited"',
    ),
]
FolderPath = Annotated[
    str,
    BeforeValidator(_plainly_written),
    checked(lambda text: re.fullmatch(r"/[A-Za-z0-9._/-]*", text), "an absolute path; write one such as /home"),
]
MountPoint = Annotated[FolderPath, BeforeValidator(_beside_the_system)]
Domain = Annotated[
    str,
    checked(
        lambda text: len(text) <= 200 and all(is_node_name(label) for label in text.split(".")),
        "a domain name; write one such as cluster.example.org",
    ),
]
Cidr = Annotated[str, BeforeValidator(_network)]
Address = Annotated[str, checked(ipaddress.ip_address, "an address; write one such as 10.64.0.10")]
GroupName = Annotated[str, checked(is_group_name, f"a usable name; {NAME_RULE}")]
Label = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", text),
        "a usable name; write small letters, digits, - and _",
    ),
]


Part = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_/.-]{0,62}", text),
        "a part's name; write letters, digits, _, -, . and /",
    ),
]


SwitchPorts = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[1-9][0-9]{0,3}|\[[0-9,/ -]+\]", text),
        "the number of a port; write one such as 36, or a range such as [33-36]",
    ),
]
SwitchNames = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[a-z0-9]([a-z0-9_-]|\[[0-9,/ -]+\]){0,62}", text),
        "a usable name; write small letters, digits, - and _, or a range such as leaf[1-4]",
    ),
]


class Declared(BaseModel):
    """Base: no unknown fields, no conversion of types, no change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


InterfaceName = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,14}", text),
        "the name of an interface; write one such as eno1: at most 15 letters, digits, - and _",
    ),
]


class Network(Declared):
    """A network in which nodes have addresses."""

    kind: Literal["ethernet", "infiniband", "bmc"]
    cidr: Cidr
    rate_gbps: Positive | None = None
    gateway: Address | None = None
    mtu: Annotated[int, Field(ge=576, le=65520)] | None = None
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None


class Cpus(Declared):
    """The processors of a machine, as Slurm counts them."""

    model: Text
    sockets: Annotated[int, Field(ge=1, le=64)]
    cores_per_socket: Annotated[int, Field(ge=1, le=1024)]
    threads_per_core: Annotated[int, Field(ge=1, le=16)]

    @property
    def total(self) -> int:
        """CPUs that the kernel shows: sockets x cores x threads."""
        return self.sockets * self.cores_per_socket * self.threads_per_core


class NumaNode(Declared):
    """A NUMA node that has CPUs. Ids may have gaps (POWER9: 0 and 8)."""

    id: Count
    socket: Count
    cpus: CpuList


class Gpu(Declared):
    """One GPU; ``type`` is its Slurm GRES type, ``socket`` the one to which it is attached."""

    index: Count
    type: Label
    model: Text
    memory_mb: Positive
    socket: Count
    link: Literal["pcie", "nvlink1", "nvlink2", "nvlink3"] = "pcie"


class Hca(Declared):
    """A host channel adapter; ``rate_gbps`` in Gb/s. ``devices`` say which ports are its own if adapters differ."""

    model: Text
    ports: Positive
    rate_gbps: Positive
    devices: tuple[Text, ...] = ()


class Interface(Declared):
    """The network interface by which machines of a profile are in a network; with members it is a bond of those."""

    name: InterfaceName
    members: tuple[InterfaceName, ...] = ()
    bond_mode: Literal["active-backup", "802.3ad", "balance-xor", "balance-rr"] | None = None


class Profile(Declared):
    """A kind of machine: what all nodes of it have in common."""

    model: Text
    arch: Literal[ARCHITECTURES]  # type: ignore[valid-type]  # one list for types and names
    cpus: Cpus
    memory_mb: Positive
    numa: tuple[NumaNode, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    hcas: tuple[Hca, ...] = ()
    interfaces: Mapping[str, Interface] = {}
    bmc: Literal["openbmc", "supermicro", "idrac", "redfish", "ipmi"] | None = None
    reimage: Literal["allowed", "refused"] = "refused"
    kernel: Text


class Nodes(Declared):
    """One node, or the nodes of a range."""

    role: Literal[ROLES]  # type: ignore[valid-type]
    profile: Text
    addresses: Mapping[str, PerNode]
    macs: Mapping[str, PerNode] = {}
    serial: PerNode | None = None
    port_guids: Mapping[Part, PerNode] = {}
    cables: Mapping[Part, PerNode] = {}
    disks: Mapping[Part, PerNode] = {}
    gpu_uuids: Mapping[Part, PerNode] = {}
    aliases: tuple[Text, ...] = ()


class Array(Declared):
    """A storage array or filer: an object of the model that Ansible does not log in to."""

    model: Text
    drives: Positive
    drive_tb: Annotated[float, Field(gt=0)]
    serves: Text | None = None
    links: Positive | None = None
    address: PerNode | None = None
    port_guids: Mapping[Part, PerNode] = {}
    cables: Mapping[Part, PerNode] = {}


class External(Declared):
    """A machine outside the cluster that something inside talks to."""

    address: Address
    why: Text


class Partition(Declared):
    """A Slurm partition. Without ``gpus`` its jobs get no GPU; with it, a GPU brings its share of the node."""

    nodes: Expression
    max_time: Duration
    default_time: Duration
    default: bool = False
    max_cpus_per_node: Positive | None = None
    gpus: bool = True
    priority: Annotated[int, Field(ge=0, le=65533)] = 1
    hidden: bool = False


class Switch(Declared):
    """A switch of the fabric, or the switches of a range, with the nodes or the switches below; cables to others.

    ``nodes``, ``guid`` and each of ``cables`` have one value a switch; ``switches`` are below each of them.
    ``rate_gbps`` is what its ports do, in Gb/s.
    """

    model: Text | None = None
    rate_gbps: Positive | None = None
    nodes: Expressions | None = None
    switches: RangeText | None = None
    guid: PerNode | None = None
    ports: Annotated[int, Field(ge=1, le=254)] | None = None
    cables: Mapping[SwitchPorts, PerNode] = {}


class Fabric(Declared):
    """The high-speed fabric."""

    switches: Mapping[SwitchNames, Switch]


class FileSystem(Declared):
    """A shared file system: who serves it and who mounts it."""

    kind: Literal["spectrum_scale", "nfs", "gluster", "lustre"]
    mount: MountPoint
    clients: Expression
    server: Text | None = None
    servers: Expression | None = None
    arrays: RangeText | None = None
    network: Text | None = None
    export: FolderPath | None = None
    block_size_kb: Positive | None = None
    layout: Literal["distributed", "mirrored"] | None = None


class RaidSet(Declared):
    """Drives of one node that are used as one; ``disks`` are names of the node's ``disks``.

    With a hardware controller they are the one disk that it shows. Without ``file_system`` and ``mount`` the set is
    only watched, for example because the operating system is on it.
    """

    name: Label
    node: Text
    level: Literal["raid0", "raid1", "raid5", "raid6", "raid10", "raid50", "raid60", "raidz1", "raidz2", "raidz3"]
    drives: Positive
    media: Literal["ssd", "hdd", "nvme"]
    holds: Text
    disks: Ranges | None = None
    controller: Literal["md", "hardware"] = "md"
    chunk_kb: Literal[64, 128, 256, 512, 1024, 2048, 4096] | None = None  # md: powers of two, a page (64 KiB) at least
    file_system: Literal["xfs"] | None = None
    mount: MountPoint | None = None


class ClusterFile(Declared):
    """A site: what exists. How things are configured is policy, and belongs in group_vars."""

    format: Literal[1]
    name: Label
    domain: Domain
    networks: Annotated[Mapping[GroupName, Network], Field(min_length=1)]
    profiles: Annotated[Mapping[GroupName, Profile], Field(min_length=1)]
    nodes: Annotated[Mapping[str, Nodes], Field(min_length=1)]
    arrays: Mapping[str, Array] = {}
    external: Mapping[Label, External] = {}
    services: Mapping[GroupName, Expression] = {}
    groups: Mapping[GroupName, Expression] = {}
    partitions: Mapping[Label, Partition] = {}
    fabric: Fabric | None = None
    file_systems: Mapping[Label, FileSystem] = {}
    raid_sets: tuple[RaidSet, ...] = ()
