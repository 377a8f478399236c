"""RAID sets of the model as md arrays, and the stripe that a file system on them has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hal_cluster.rules.errors import RuleError
from hal_inventory.derive.slices import disk_path

# What mdadm takes when nothing is said, made explicit: the stripe of the file system follows from it.
DEFAULT_CHUNK_KB = 512
XFS_LABEL_LENGTH = 12
MD_NAME_LENGTH = 32  # bytes of the name in a superblock 1.2, its end included: mdadm leaves a longer one's host out
NESTED = {"raid50": "raid5", "raid60": "raid6"}
PARITY = {"raid0": 0, "raid5": 1, "raid6": 2}
MADE = ("raid0", "raid1", "raid5", "raid6", "raid10", *NESTED)


class StorageError(RuleError):
    """The message says what does not fit together."""


def data_drives(level: str, drives: int) -> int:
    """Return over how many drives of a set a stripe of data lies; 1 where nothing is striped."""
    if level in NESTED:
        return 2 * data_drives(NESTED[level], drives // 2)
    if level == "raid10":
        return drives // 2
    return drives - PARITY[level] if level in PARITY else 1


def stripe(level: str, drives: int, chunk_kb: int | None) -> dict[str, int] | None:
    """Return XFS's stripe (su in KiB, sw), or None where there is none: a mirror, a single drive."""
    width = data_drives(level, drives)
    return {"su_kb": chunk_kb or DEFAULT_CHUNK_KB, "sw": width} if width > 1 else None


def arrays(name: str, level: str, disks: list[dict[str, str]], chunk_kb: int | None) -> list[dict[str, Any]]:
    """Return the md arrays of a set, those first that another is made of.

    raid50 and raid60 are a raid0 over two halves, name-a and name-b. Its chunk is one whole stripe of a half: what
    fills a chunk needs no parity to be read back.
    """
    chunk = chunk_kb or DEFAULT_CHUNK_KB
    if level not in NESTED:
        return [_array(name, level, None if level == "raid1" else chunk, disks)]
    middle = len(disks) // 2
    halves = [
        _array(f"{name}-{letter}", NESTED[level], chunk, part)
        for letter, part in (("a", disks[:middle]), ("b", disks[middle:]))
    ]
    width = chunk * data_drives(NESTED[level], middle)
    members = [{"name": half["name"], "path": half["path"]} for half in halves]
    return [*halves, _array(name, "raid0", width, members)]


def _array(name: str, level: str, chunk_kb: int | None, members: list[dict[str, str]]) -> dict[str, Any]:
    return {"name": name, "path": f"/dev/md/{name}", "level": level, "chunk_kb": chunk_kb, "members": members}


def layout(
    raid_sets: Iterable[Mapping[str, Any]], node: str, disks: Mapping[str, str], scratch: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what is made of a node's drives, and what is only watched (no mount).

    `raid_sets` as lookup('hal', 'raid_sets') gives them, `disks` as hal_node has them (name: world-wide name).
    `scratch` is the role's variable; with a disk it is one more, on this disk alone. StorageError when something does
    not fit.
    """
    names = {disk_path(wwn): name for name, wwn in disks.items()}
    sets = [_set(raid, names) for raid in raid_sets if raid["node"] == node and raid["devices"]]
    if scratch.get("disk"):
        sets.append(_scratch(scratch, disks, sets))
    labels: dict[str, str] = {}
    for drive_set in sets:
        other = labels.setdefault(drive_set["label"], drive_set["name"])
        if drive_set["mount"] and other != drive_set["name"]:
            raise StorageError(
                f"sets {other} and {drive_set['name']} would have the same label, {drive_set['label']}: rename one"
            )
        for array in drive_set["arrays"]:
            full = f"{node}:{array['name']}"
            if len(full) >= MD_NAME_LENGTH:
                raise StorageError(
                    f"set {drive_set['name']}: md writes names of {MD_NAME_LENGTH - 1} letters, not {full}: rename it"
                )
    return sets


def _set(raid: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    members = [{"name": names[path], "path": path} for path in raid["devices"]]
    hardware = raid["controller"] == "hardware"
    if raid["mount"] and raid["level"] not in MADE:
        raise StorageError(f"set {raid['name']}: nothing here makes {raid['level']}; leave out mount and file_system")
    made = [] if hardware or not raid["mount"] else arrays(raid["name"], raid["level"], members, raid["chunk_kb"])
    return {
        "name": raid["name"],
        "label": raid["name"][:XFS_LABEL_LENGTH],
        "mount": raid["mount"],
        "level": raid["level"],
        "disks": members,
        "arrays": made,
        "device": made[-1]["path"] if made else members[0]["path"],
        "stripe": stripe(raid["level"], raid["drives"], raid["chunk_kb"]) if raid["mount"] else None,
    }


def _scratch(scratch: Mapping[str, Any], disks: Mapping[str, str], others: list[dict[str, Any]]) -> dict[str, Any]:
    name = scratch["disk"]
    if name not in disks:
        raise StorageError(
            f"local_storage_scratch.disk is {name}; the node has {', '.join(sorted(disks)) or 'no disks'}"
        )
    for other in others:
        if name in (disk["name"] for disk in other["disks"]):
            raise StorageError(f"local_storage_scratch.disk is {name}, which is in RAID set {other['name']}")
    disk = {"name": name, "path": disk_path(disks[name])}
    return {
        "name": "scratch",
        "label": "scratch",
        "mount": scratch["mount"],
        "level": "disk",
        "disks": [disk],
        "arrays": [],
        "device": disk["path"],
        "stripe": None,
    }
