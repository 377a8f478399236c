"""The modules of this project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import ABSENT, PRESENT, Call, Resource, Units, content_id, file_mode, text


def files(call: Call) -> list[Resource]:
    """hal_files: directories and files; the group has the user's name, unless the task says another."""
    resources = [
        Resource(f"file:{entry['path']}", _attributes(entry, "directory")) for entry in _dicts(call, "directories")
    ]
    for entry in _dicts(call, "files"):
        declared = _attributes(entry, "file")
        if int(declared["mode"] or "0", 8) & 0o004:
            declared["sha1"] = _sha1(entry["content"])
        resources.append(Resource(f"file:{entry['path']}", declared))
    return resources


def _sha1(content: Any) -> str:
    return hashlib.sha1(text(content).encode("utf-8", "surrogateescape")).hexdigest()


def _attributes(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    owner = text(entry.get("owner") or "root")
    group = text(entry.get("group") or owner)
    mode = file_mode(entry.get("mode") or "0644")
    return {**PRESENT, "type": kind, "owner": owner, "group": group, "mode": mode}


def modulefiles(call: Call) -> list[Resource]:
    """hal_modulefiles: the tree, a folder for each name, the files, the stamp. What is withdrawn is not declared."""
    tree, entries = call.text("tree"), _dicts(call, "files")
    folders = sorted({tree, *(text(entry["path"]).rpartition("/")[0] for entry in entries)})
    resources = [Resource(f"file:{path}", _attributes({"mode": "0755"}, "directory")) for path in folders]
    for entry in entries:
        resources.append(
            Resource(f"file:{entry['path']}", {**_attributes({}, "file"), "sha1": _sha1(entry["content"])})
        )
    return [*resources, Resource(f"file:{tree}/.changed", _attributes({}, "file"))]


def network_files(call: Call) -> list[Resource]:
    """hal_network: the files of interfaces, and those it took away; what is in force is an expectation of the role."""
    if call.text("phase") != "write":
        return []
    withdrawn = call.result.get("withdrawn") or []
    return [
        *(
            Resource(f"file:{device.get('path')}", {**_attributes({}, "file"), "sha1": _sha1(device.get("text"))})
            for device in _dicts(call, "devices")
        ),
        *(Resource(f"file:/etc/sysconfig/network-scripts/{name}", ABSENT) for name in withdrawn),
    ]


def munge_key(call: Call) -> list[Resource]:
    """hal_munge_key: a file that is secret whatever the task says."""
    owner, group = call.text("owner", default="munge"), call.text("group", default="munge")
    declared = {**PRESENT, "type": "file", "mode": "0400", "owner": owner, "group": group}
    return [Resource(f"file:{call.text('path', default='/etc/munge/munge.key')}", declared, secret=True)]


def environments(call: Call) -> list[Resource]:
    """hal_environment: nothing of a node. The tree is shared, and what is in it is an expectation of the role."""
    return []


def channel_mirror(call: Call) -> list[Resource]:
    """hal_channel_mirror: its folder; what is in it is an expectation of the role."""
    if not _dicts(call, "packages"):
        return []
    return [Resource(f"file:{call.text('folder')}", _attributes({"mode": "0755"}, "directory"))]


def package_mirror(call: Call) -> list[Resource]:
    """hal_package_mirror: the link to the published snapshot; what is in it is an expectation of the role."""
    target = f"snapshots/{call.result.get('snapshot')}"
    return [Resource(f"file:{call.text('folder')}/current", {**PRESENT, "type": "link", "target": target})]


def scale_config(call: Call) -> list[Resource]:
    """hal_scale_config: nothing of a node; what the cluster has configured is an expectation of the role."""
    return []


def subids(call: Call) -> list[Resource]:
    """hal_subids: both files, and the lines of users who have a slot; other lines belong to others."""
    declared = {**PRESENT, "type": "file", "owner": "root", "group": "root", "mode": "0644"}
    lines = [
        f"{'' if user.get('enabled') else '!'}{user.get('uid')}:{user.get('start')}:{user.get('count')}"
        for user in _dicts(call, "users")
        if user.get("slot") is not None
    ]
    resources = []
    for path in ("/etc/subuid", "/etc/subgid"):
        resources.append(Resource(f"file:{path}", dict(declared)))
        if lines:
            resources.append(Resource(f"line:{path}#{content_id('hal_subids')}", {**PRESENT, "lines": lines}))
    return resources


def slurm_daemon(call: Call) -> list[Resource]:
    """hal_slurm_daemon: the unit, and the files that it puts in place; others belong to the task that writes them."""
    if call.text("phase") == "stop_first":
        return []
    declared = {"state": "started", "enabled": True, "masked": False}
    placed = slurm_placed(call) if call.text("staged_dir") else []
    return [Resource(f"service:{call.text('name')}.service", declared), *placed]


def slurm_placed(call: Call) -> list[Resource]:
    """hal_slurm_place: the files. Their content belongs to the task that writes the waiting ones, and is a promise."""
    return [Resource(f"file:{path}", _attributes({}, "file")) for path in call.items("files")]


def slurm_daemon_units(call: Call) -> Units:
    """The daemon reads these files. With nothing pending it runs with them, however old it is."""
    if call.text("phase") == "stop_first":
        return Units()
    unit = f"{call.text('name')}.service"
    files = call.items("files") + call.items("unit_files")
    readers = {f"file:{path}": (unit,) for path in files}
    return Units((unit,) if call.result.get("pending") == "nothing" else (), readers)


def slurm_accounts(call: Call) -> list[Resource]:
    """hal_slurm_account: QOS, accounts and users, each with the fields that are declared."""
    kinds = {"qos": "slurm-qos", "accounts": "slurm-account", "users": "slurm-user"}
    return [_entry(kind, entry) for name, kind in kinds.items() for entry in _dicts(call, name)]


def slurm_reservations(call: Call) -> list[Resource]:
    """hal_slurm_reservation."""
    return [_entry("slurm-reservation", entry) for entry in _dicts(call, "reservations")]


def _entry(kind: str, entry: Mapping[str, Any]) -> Resource:
    resource = f"{kind}:{entry.get('name')}"
    if entry.get("state") == "absent":
        return Resource(resource, ABSENT)
    fields = {str(key): _plain(value) for key, value in entry.items() if key not in ("name", "state")}
    return Resource(resource, {**PRESENT, **fields})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # limits by resource, as Slurm prints them
        return ",".join(f"{text(key)}={text(limit)}" for key, limit in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return [text(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float)) else text(value)


def _dicts(call: Call, name: str) -> list[Mapping[str, Any]]:
    value = call.get(name)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, (list, tuple)) else []
