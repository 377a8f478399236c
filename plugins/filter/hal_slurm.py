"""Filters of the roles munge and slurm: what their templates need decided in Python."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_inventory.ranges import fold
from hal_node.munge_key import KeyTextError, decode

# slurm.conf parameters whose name or form depends on the release: (name, from, to, replacement in older releases).
# Sources: slurm.conf(5) and RELEASE_NOTES of 20.02, 21.08.
SINCE: dict[str, tuple[tuple[int, int], dict[str, dict[str, str]]]] = {
    # 20.02 replaced FastSchedule=2 by SlurmdParameters=config_overrides.
    "SlurmdParameters": ((20, 2), {"config_overrides": {"FastSchedule": "2"}}),
    # 21.08 replaced AccountingStoreJobComment by AccountingStoreFlags.
    "AccountingStoreFlags": ((21, 8), {"job_comment": {"AccountingStoreJobComment": "YES"}}),
}
# Flags that a release does not know yet.
FLAGS_SINCE = {("AccountingStoreFlags", "job_script"): (21, 8), ("AccountingStoreFlags", "job_env"): (21, 8)}
# cgroup.conf: CgroupPlugin came with 21.08 (cgroup.conf(5)); before that there is only cgroup v1.
CGROUP_SINCE = {"CgroupPlugin": (21, 8)}


def release(version: str) -> tuple[int, int]:
    """Return (year, month) of "22.05.8". Raises AnsibleFilterError for anything else."""
    parts = str(version).split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise AnsibleFilterError(f"slurm_version {version!r} is not year.month.patch, such as 22.05.8")
    return int(parts[0]), int(parts[1])


def text(value: Any) -> str:
    """Return a setting's value as slurm.conf has it: lists with commas, booleans as YES and NO."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


def merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the layers over each other, later ones win; a null withdraws the setting. Names compare without case."""
    found: dict[str, tuple[str, Any]] = {}
    for layer in layers:
        for name, value in layer.items():
            # The first spelling stays, so that a layer in other case does not give a second line.
            spelling = found.get(name.lower(), (name, None))[0]
            found[name.lower()] = (spelling, value)
    return {name: value for name, value in found.values() if value is not None and value != []}


def hal_slurm_settings(layers: Sequence[Mapping[str, Any]], version: str) -> list[dict[str, str]]:
    """Return [{key, value}] of slurm.conf, sorted, with the names that the release has.

    `layers`: parameters by name; later ones win and None withdraws. Lists get commas, booleans are YES and NO.
    `version`: as 20.02.7; AnsibleFilterError for what is not year.month.
    """
    has = release(version)
    out: dict[str, str] = {}
    for name, value in merged(layers).items():
        since, older = SINCE.get(name, ((0, 0), {}))
        if has >= since:
            flags = value if isinstance(value, (list, tuple)) else None
            if flags is not None:
                value = [flag for flag in flags if has >= FLAGS_SINCE.get((name, str(flag)), (0, 0))]
            out[name] = text(value)
            continue
        for flag in value if isinstance(value, (list, tuple)) else str(value).split(","):
            out.update(older.get(str(flag), {}))
    return [{"key": name, "value": out[name]} for name in sorted(out, key=str.lower)]


def hal_slurm_cgroup_settings(layers: Sequence[Mapping[str, Any]], version: str) -> list[dict[str, str]]:
    """Return [{key, value}] of cgroup.conf, sorted, without what the release does not know.

    `layers`: parameters by name; later ones win and None withdraws. Booleans are yes and no. `version`: as
    hal_slurm_settings has it.
    """
    has = release(version)
    known = {name: value for name, value in merged(layers).items() if has >= CGROUP_SINCE.get(name, (0, 0))}
    return [{"key": name, "value": cgroup_text(known[name])} for name in sorted(known, key=str.lower)]


def cgroup_text(value: Any) -> str:
    """Return a cgroup.conf value: its booleans are yes and no."""
    return text(value).lower() if isinstance(value, bool) else text(value)


def hal_slurm_shown(settings: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Return a regex for the line of `scontrol show config` that each of the named settings has when it is in effect.

    scontrol prints some names in another case and adds "sec" to times.
    `settings`: of hal_slurm_settings. A name that is not set gives nothing.
    """
    wanted = {name.lower() for name in names}
    return [
        rf"(?i){re.escape(setting['key'])} *= *{re.escape(setting['value'])}( sec)?"
        for setting in settings
        if setting["key"].lower() in wanted
    ]


def hal_munge_key_problem(key: Any) -> str:
    """Return why the text is not a usable MUNGE key, or "". The key is in no message.

    `key`: hexadecimal or base64.
    """
    try:
        decode(str(key))
    except KeyTextError as error:
        return str(error)
    return ""


def hal_munge_keys(seen: Mapping[str, Mapping[str, Any]], rotation_ok: bool, reference: str = "") -> dict[str, Any]:
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
    seen = {node: one for node, one in seen.items() if "state" in one}
    by_key: dict[str, list[str]] = {}
    for node, one in seen.items():
        if one["state"] in ("other", "unusable"):
            by_key.setdefault(one["digest"], []).append(node)
    result: dict[str, Any] = {"adopted": "", "replaced": [], "refused": [], "working": [], "why": ""}
    if rotation_ok or not by_key:
        return result
    declared = [node for node, one in seen.items() if one["state"] == "declared"]
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
    without = [] if declared else [node for node, one in seen.items() if one["state"] == "absent"]
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


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_slurm_settings": hal_slurm_settings,
            "hal_slurm_cgroup_settings": hal_slurm_cgroup_settings,
            "hal_slurm_shown": hal_slurm_shown,
            "hal_munge_key_problem": hal_munge_key_problem,
            "hal_munge_keys": hal_munge_keys,
        }
