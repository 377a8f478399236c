"""The names that every site shares, and what a name may look like."""

from __future__ import annotations

import re

ROLES = ("login", "management", "data", "transfer", "test", "compute")
"""What a node is for. A node has one role; services and groups say what runs on it."""

ARCHITECTURES = ("ppc64le", "x86_64")

GPU_GROUP = "gpu"
"""The group of nodes that have a GPU."""

_LOOPBACK = ("localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")

RESERVED = frozenset({"all", "ungrouped", "and", "or", "not", *_LOOPBACK})
"""Words of Ansible and of the expression language, and what /etc/hosts calls the loopback addresses."""

PLACEHOLDER_ADDRESS = ".address-is-a-placeholder.invalid"
"""Stands behind a node's name while its address, or its BMC's, is a placeholder, so that nobody can contact it."""

NAME_RULE = "write small letters, digits and _, a letter first"

_GROUP = re.compile(r"[a-z][a-z0-9_]{0,62}")
_WWN = re.compile(
    r"(?!(0x|eui\.)0+$)(0x[0-9a-f]{16}([0-9a-f]{16})?|eui\.[0-9a-f]{16,32}|nvme\.[0-9a-f.-]+|uuid\.[0-9a-f-]+)"
)
_NODE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def is_group_name(name: str) -> bool:
    """Tell whether Ansible takes the name for a group without changing it."""
    return _GROUP.fullmatch(name) is not None


def is_wwn(text: str) -> bool:
    """Tell whether a text is a disk's world-wide name as lsblk and udev write it, in small letters or capitals.

    An EUI of zeros alone, as cheap NVMe disks have, is not a name: all such disks have it.
    """
    return _WWN.fullmatch(text.lower()) is not None


def is_node_name(name: str) -> bool:
    """Tell whether the name is one label of a host name (RFC 1123), in small letters."""
    return _NODE.fullmatch(name) is not None
