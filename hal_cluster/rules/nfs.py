"""What the model's file systems mean on one node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from ipaddress import ip_network
from pathlib import PurePosixPath
from typing import Any

# exports(5) of nfs-utils 1.3.0: words, and those that go with a value.
EXPORT_WORDS = frozenset({
    "ro", "rw", "sync", "async", "wdelay", "no_wdelay", "hide", "nohide", "crossmnt", "subtree_check",
    "no_subtree_check", "secure", "insecure", "secure_locks", "insecure_locks", "auth_nlm", "no_auth_nlm", "acl",
    "no_acl", "root_squash", "no_root_squash", "all_squash", "no_all_squash", "pnfs", "no_pnfs",
})  # fmt: skip
EXPORT_VALUES = ("sec", "fsid", "anonuid", "anongid")
# Around the role's own lines of /etc/exports.
BEGIN = '# Written by the role "nfs_server"; changes made here are lost.'
END = '# End of what the role "nfs_server" has written.'
# Of these exactly one has to be said: a default of the program is not a declaration.
ONE_OF = (("ro", "rw"), ("sync", "async"), ("root_squash", "no_root_squash", "all_squash"))


def exports(
    file_systems: Mapping[str, Mapping[str, Any]],
    node: str,
    raid_sets: Iterable[Mapping[str, Any]],
    options: Iterable[str],
    options_by_file_system: Mapping[str, Iterable[str]],
) -> list[dict[str, Any]]:
    """Return what a node exports: name, path, client (a network), options, network, disks (mount of its RAID set).

    Only file systems of kind nfs that it serves, sorted by name. `file_systems`, `raid_sets`: as lookup hal has them.
    `options`: words of exports(5) for each that `options_by_file_system` does not name. `disks` is None where no RAID
    set has the folder.
    """
    mounts = [str(raid["mount"]) for raid in raid_sets if raid["node"] == node and raid.get("mount")]
    exports = []
    for name, entry in sorted(file_systems.items()):
        if entry["kind"] != "nfs" or node not in entry["servers"]:
            continue
        disks = max((mount for mount in mounts if _below(entry["export"], mount)), key=len, default=None)
        exports.append(
            {
                "name": name,
                "path": entry["export"],
                "client": entry["cidr"],
                "options": list(options_by_file_system.get(name, options)),
                "network": entry["network"],
                "disks": disks,
            }
        )
    return exports


def export_problems(exports: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each thing that is wrong with the options of exports.

    Wrong are an option that exports(5) of nfs-utils 1.3.0 does not have, a choice of ONE_OF that is not made, and a
    folder that a client has twice. `exports`: what `exports` returned.
    """
    sentences = []
    seen: dict[tuple[str, str], str] = {}
    for export in exports:
        name, words = export["name"], export["options"]
        for word in words:
            key, equals, _ = word.partition("=")
            if word not in EXPORT_WORDS and not (equals and key in EXPORT_VALUES):
                sentences.append(f"{name}: {word} is not an option of exports(5)")
        for choice in ONE_OF:
            if len(set(choice) & set(words)) != 1:
                sentences.append(f"{name}: say one of {', '.join(choice)}")
        other = seen.setdefault((export["path"], export["client"]), name)
        if other != name:
            sentences.append(f"{name}: {export['path']} is exported to {export['client']} already, as {other}")
    return sentences


def exports_text(text: str, lines: Sequence[str], withdraw: bool) -> str:
    """Return /etc/exports with these lines, and, unless they are to be withdrawn, those of others after them.

    Without what others say of the same folder and client: of two, exportfs complains, and a server may not start.
    `text`: the file as it is. `lines`: PATH CLIENT(OPTIONS).
    """
    own = [BEGIN, *lines, END] if lines else []
    declared = {(path, _client(word)) for path, word in (line.split(maxsplit=1) for line in lines)}
    others = [] if withdraw else _of_others(text, declared)
    return "".join(f"{line}\n" for line in [*own, *others])


def _of_others(text: str, declared: Set[tuple[str, str]]) -> list[str]:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    text = before + after.lstrip("\n") if begin and end else text
    lines = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        path, *words = re.findall(r'#.*|"[^"]*"|\S+?\)(?=#)|\S+', line) or [""]
        comment = [words.pop()] if words and words[-1].startswith("#") else []
        left = [word for word in words if (path.strip('"'), _client(word)) not in declared]
        if left == words:
            lines.append(line)
            continue
        lines += comment
        if any(not word.startswith("-") for word in left):  # -ro is for the clients after it; none at all is everybody
            lines.append(" ".join([path, *left]))
    return lines


def _client(word: str) -> str:
    """The client of a word such as 10.0.0.0/8(ro): a network in one spelling, or what it is."""
    name = word.partition("(")[0] or "*"
    try:
        return str(ip_network(name, strict=False))
    except ValueError:
        return name


def mounts(
    file_systems: Mapping[str, Mapping[str, Any]],
    node: str,
    options: Iterable[str],
    options_by_file_system: Mapping[str, Iterable[str]],
) -> list[dict[str, Any]]:
    """Return what a node mounts: name, path, source, type, options, unit (without suffix), own (its own folder).

    Nothing for a file system that the node serves itself from the folder where it is to be mounted.
    Only file systems of kind nfs whose client it is, sorted by name. `file_systems`: lookup('hal', 'file_systems').
    `options`: words of nfs(5) for each that `options_by_file_system` does not name. What has `own` is to be bound.
    """
    mounts = []
    for name, entry in sorted(file_systems.items()):
        if entry["kind"] != "nfs" or node not in entry["clients"]:
            continue
        own = node in entry["servers"]
        if own and entry["export"] == entry["mount"]:
            continue
        words = [] if own else list(options_by_file_system.get(name, options))
        mounts.append(
            {
                "name": name,
                "path": entry["mount"],
                "source": entry["export"] if own else f"{_host(entry['address'])}:{entry['export']}",
                "type": "none" if own else "nfs" if _is_old(words) else "nfs4",
                "options": words,
                "unit": unit_name(entry["mount"]),
                "own": own,
            }
        )
    return mounts


def mount_problems(mounts: Iterable[Mapping[str, Any]], file_systems: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each mount without an address, or whose options lose data or could hang a boot.

    Wrong are also options that the role sets itself, and version 3 of a server of the model. `mounts`: what `mounts`
    returned. `file_systems`: lookup('hal', 'file_systems').
    """
    sentences = []
    for mount in mounts:
        if mount["own"]:
            continue
        name, words = mount["name"], mount["options"]
        entry = file_systems[name]
        if not entry["address"]:
            array = ", ".join(entry["arrays"])
            sentences.append(f"{name}: {array} has no address; give it one in cluster.yml: arrays.{array}.address")
        for choice in (("ro", "rw"), ("hard", "soft")):
            if len(set(choice) & set(words)) != 1:
                sentences.append(f"{name}: say one of {', '.join(choice)}")
        if {"rw", "soft"} <= set(words):
            sentences.append(f"{name}: soft loses what was written when the server is slow; say hard, or ro with soft")
        if _is_old(words) and entry["servers"]:
            sentences.append(f"{name}: {entry['servers'][0]} serves version 4 alone (docs/nfs.md); say vers=4.1")
        sentences += [f"{name}: {word} is the role's own" for word in words if word.startswith(("x-", "_netdev", "bg"))]
    return sentences


def unit_name(path: str) -> str:
    """Return systemd's name for a path, without suffix: /srv/data-1 is srv-data\\x2d1 (systemd.unit(5)).

    `path` is absolute. The name is that of systemd-escape.
    """
    parts = [part for part in PurePosixPath(path).parts if part != "/"]
    escaped = [
        "".join(letter if re.match(r"[A-Za-z0-9:_.]", letter) else f"\\x{ord(letter):02x}" for letter in part)
        for part in parts
    ]
    name = "-".join(escaped) or "-"
    return f"\\x2e{name[1:]}" if name.startswith(".") else name


def _is_old(options: Iterable[str]) -> bool:
    return any(word.startswith(("vers=2", "vers=3", "nfsvers=2", "nfsvers=3", "v2", "v3")) for word in options)


def _below(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


def _host(address: str | None) -> str:
    return f"[{address}]" if address and ":" in address else str(address)
