"""Which key of MUNGE nodes get, and what is not a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hal_inventory.ranges import fold
from hal_node.munge_key import KeyTextError, decode


def key_problem(key: Any) -> str:
    """Return why the text is not a usable MUNGE key, or "". The key is in no message.

    `key`: hexadecimal or base64.
    """
    try:
        decode(str(key))
    except KeyTextError as error:
        return str(error)
    return ""


def keys(seen: Mapping[str, Mapping[str, Any]], rotation_ok: bool, reference: str = "") -> dict[str, Any]:
    """Return which key of MUNGE the nodes get, and which nodes are refused.

    `seen`: by node what hal_munge_key_state said; a node that did not answer has no state. `reference`: the node whose
    key is the cluster's, that of slurmctld. What is returned: `adopted`, the node whose key is taken in place of the
    declared one, empty for the declared one; `replaced`, nodes that get the declared key in place of another;
    `refused`, nodes that wait for a permission, and `working`, those of them that wait for their jobs; `why`, in words.

    Without permission the key that the cluster has is not replaced. Where none of the nodes has the declared key and
    all that have a key have the same, this one is the cluster's: credentials of another would be refused by all nodes
    that are not in this run. Where the cluster has the declared key, nothing is lost on a node with another: it cannot
    speak to the others.
    `rotation_ok`: the permission, that keys may be replaced.
    """
    seen = {node: answer for node, answer in seen.items() if "state" in answer}
    by_key: dict[str, list[str]] = {}
    for node, answer in seen.items():
        if answer["state"] in ("other", "unusable"):
            by_key.setdefault(answer["digest"], []).append(node)
    result: dict[str, Any] = {"adopted": "", "replaced": [], "refused": [], "working": [], "why": ""}
    if rotation_ok or not by_key:
        return result
    declared = [node for node, answer in seen.items() if answer["state"] == "declared"]
    foreign = sorted(by_key.values())
    usable = all(seen[nodes[0]]["state"] == "other" for nodes in foreign)
    if len(foreign) == 1 and not declared and usable:
        return {**result, "adopted": foreign[0][0], "why": f"{fold(foreign[0])} had their own munge key"}
    said = [f"{fold(nodes)} {'have' if len(nodes) > 1 else 'has'} a key that is not munge_key" for nodes in foreign]
    said += [f"{fold(declared)} munge_key"] if declared else []
    said += [] if usable else ["one of these files is too short or too long for a key"]
    others = sorted(node for nodes in foreign for node in nodes)
    if _is_the_clusters(seen, declared, max(map(len, foreign)), reference):
        working = [node for node in others if seen[node].get("jobs")]
        said += [f"jobs run on {fold(working)}"] if working else []
        replaced = [node for node in others if node not in working]
        return {**result, "replaced": replaced, "refused": working, "working": working, "why": "; ".join(said)}
    without = [] if declared else [node for node, answer in seen.items() if answer["state"] == "absent"]
    return {**result, "refused": sorted([*others, *without]), "why": "; ".join(said)}


def _is_the_clusters(seen: Mapping[str, Mapping[str, Any]], declared: list[str], most: int, reference: str) -> bool:
    """Whether the declared key is the one that the cluster uses; `most` nodes have the same other key.

    It is slurmctld's, as long as more nodes do not have another. Where slurmctld's node has none most nodes have it;
    what that node did not say is not known.
    """
    if reference and reference not in seen:
        return False
    state = seen.get(reference, {}).get("state", "absent")
    if state == "absent":
        return len(declared) > most
    return state == "declared" and len(declared) >= most
