"""The nodes that an option -N names: nodes, numbers and ranges of them, classes, or a file with such lines."""

from __future__ import annotations

import re
from pathlib import Path

from virtual_scale import place
from virtual_scale.cluster import Cluster, Member
from virtual_scale.daemon import mounted_anywhere
from virtual_scale.say import Failed

# Node classes that every cluster has, in lower case.
SYSTEM_CLASSES = (
    "all",
    "clientnodes",
    "localhost",
    "managernodes",
    "mount",
    "nonquorumnodes",
    "nsdnodes",
    "quorumnodes",
)
# Those of them that mmlsnodeclass shows, as IBM writes them.
SHOWN_CLASSES = ("all", "clientNodes", "managerNodes", "nonQuorumNodes", "nsdNodes", "quorumNodes")


def words(argument: str) -> list[str]:
    """Return the words of the option, those of a file when it names one."""
    if "/" in argument and Path(argument).is_file():
        lines = Path(argument).read_text().splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [word for word in argument.split(",") if word]


def nodes(cluster: Cluster, argument: str) -> list[Member]:
    """Return the nodes, in the order of their numbers; Failed for one that no node has."""
    chosen: list[Member] = []
    for word in words(argument):
        chosen += _of(cluster, word)
    if not chosen:
        raise Failed("{command}: No nodes were found that matched the input specification.")
    return [node for node in cluster.nodes if node in chosen]


def of_system_class(cluster: Cluster, name: str) -> list[Member]:
    """Return the nodes of a class that every cluster has; there may be none."""
    return [node for node in cluster.nodes if _in_system_class(cluster, node, name.lower())]


def _of(cluster: Cluster, word: str) -> list[Member]:
    own = next((members for name, members in cluster.classes.items() if name.lower() == word.lower()), None)
    if own is not None:
        return [node for node in cluster.nodes if node.name in own]
    if word.lower() in SYSTEM_CLASSES:
        return of_system_class(cluster, word)
    numbers = re.fullmatch(r"(\d+)-(\d+)", word)
    if numbers:
        return [node for node in cluster.nodes if int(numbers[1]) <= node.number <= int(numbers[2])]
    node = cluster.member(word)
    if node is None:
        raise Failed(f"{{command}}: Incorrect node {word} specified for command.")
    return [node]


def _in_system_class(cluster: Cluster, node: Member, name: str) -> bool:
    manager = "manager" in node.designation.lower()
    return {
        "all": True,
        "clientnodes": not manager,
        "localhost": node.short == place.this_node(),
        "managernodes": manager,
        "mount": bool(mounted_anywhere(cluster, node)),
        "nonquorumnodes": not node.quorum,
        "nsdnodes": any(node.name in disk.servers for disk in cluster.disks),
        "quorumnodes": node.quorum,
    }[name]
