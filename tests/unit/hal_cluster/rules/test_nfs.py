"""What the model's NFS file systems mean on a node: exports, mounts, and what is refused."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from hal_cluster.rules import nfs

OPTIONS = ["rw", "sync", "root_squash", "no_subtree_check", "sec=sys"]
MOUNT_OPTIONS = ["rw", "hard", "vers=4.1"]


def file_system(**more: Any) -> dict[str, Any]:
    """A file system of the model, as lookup('hal', 'file_systems') gives it."""
    entry = {
        "kind": "nfs",
        "mount": "/data",
        "export": "/data",
        "servers": ["store"],
        "arrays": [],
        "clients": ["node1"],
        "network": "ipoib",
        "address": "10.0.2.1",
        "cidr": "10.0.2.0/24",
    }
    return {**entry, **more}


def test_a_node_exports_what_it_serves_and_nothing_else() -> None:
    model = {
        "data": file_system(),
        "other": file_system(servers=["store2"]),
        "scale": file_system(kind="spectrum_scale", servers=["store"]),
        "deep": file_system(export="/data/deep/er", cidr="10.0.3.0/24"),
    }
    raid_sets: list[dict[str, Any]] = [
        {"node": "store", "mount": "/data"},
        {"node": "store", "mount": "/data/deep"},
        {"node": "store", "mount": None},
        {"node": "node1", "mount": "/"},
    ]
    exports = nfs.exports(model, "store", raid_sets, OPTIONS, {"deep": ["ro"]})
    assert [(one["name"], one["client"], one["options"], one["disks"]) for one in exports] == [
        ("data", "10.0.2.0/24", OPTIONS, "/data"),
        ("deep", "10.0.3.0/24", ["ro"], "/data/deep"),
    ]
    assert nfs.exports(model, "node1", raid_sets, OPTIONS, {}) == []


def test_a_name_that_begins_like_a_mount_is_not_below_it() -> None:
    model = {"data": file_system(export="/database")}
    assert nfs.exports(model, "store", [{"node": "store", "mount": "/data"}], OPTIONS, {})[0]["disks"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (OPTIONS, []),
        ([*OPTIONS, "fsid=0", "crossmnt"], []),
        (["rw", "sync", "root_squash", "no_root_sqash"], ["x: no_root_sqash is not an option of exports(5)"]),
        (["rw", "sync"], ["x: say one of root_squash, no_root_squash, all_squash"]),
        (["rw", "ro", "sync", "root_squash"], ["x: say one of ro, rw"]),
        ([*OPTIONS, "sec"], ["x: sec is not an option of exports(5)"]),
    ],
)
def test_options_of_exports_are_words_of_exports_5_and_decided(options: list[str], said: list[str]) -> None:
    assert nfs.export_problems([{"name": "x", "path": "/x", "client": "*", "options": options}]) == said


def test_a_folder_is_exported_once_to_a_network() -> None:
    exports = [{"name": name, "path": "/x", "client": "10.0.0.0/8", "options": OPTIONS} for name in ("a", "b")]
    assert nfs.export_problems(exports) == ["b: /x is exported to 10.0.0.0/8 already, as a"]


OURS = "/data 10.0.2.0/24(rw,sync)"
BLOCK = f"{nfs.BEGIN}\n{OURS}\n{nfs.END}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("# mine\n\n/old *(ro)\n", "# mine\n\n/old *(ro)\n"),
        (f"{BLOCK}/old *(ro)\n", "/old *(ro)\n"),
        (f"/early *(ro)\n{nfs.BEGIN}\n/gone *(rw)\n{nfs.END}\n/old *(ro)\n", "/early *(ro)\n/old *(ro)\n"),
        # Of the same folder and client there may be one; other clients of a line stay.
        (f"{OURS}\n", ""),
        ("/data 10.0.2.0/255.255.255.0(ro) *(ro)\n", "/data *(ro)\n"),
        ('"/data" -ro,sync \\\n   10.0.2.0/24 host1(rw)\n', '"/data" -ro,sync host1(rw)\n'),
        ("/data2 10.0.2.0/24(ro)\n", "/data2 10.0.2.0/24(ro)\n"),
        # exports(5) takes any address of a network for the network.
        ("/data 10.0.2.9/24(ro)\n", ""),
        ("/data -ro 10.0.2.0/24\n# /data 10.0.2.0/24(ro)\n", "# /data 10.0.2.0/24(ro)\n"),
        # A comment is no client, and a path without a client would be everybody's.
        ("/data 10.0.2.0/24(rw) # management net\n", "# management net\n"),
        ("/data 10.0.2.0/24(rw)#management net\n", "#management net\n"),
        ("/data -ro 10.0.2.0/24 host1(rw) # both\n", "# both\n/data -ro host1(rw)\n"),
        ("/data -ro 10.0.2.0/24 # one\n  # /data 10.0.2.0/24\n", "# one\n  # /data 10.0.2.0/24\n"),
        ("/data#2 10.0.2.0/24(ro) # kept\n", "/data#2 10.0.2.0/24(ro) # kept\n"),
        # Somebody took the last line of the block out: nothing of others is lost.
        (f"{nfs.BEGIN}\n{OURS}\n/old *(ro)\n", f"{nfs.BEGIN}\n/old *(ro)\n"),
    ],
)  # fmt: skip
def test_lines_of_others_stay_behind_ours_until_they_are_withdrawn(before: str, after: str) -> None:
    assert nfs.exports_text(before, [OURS], False) == BLOCK + after
    assert nfs.exports_text(BLOCK + after, [OURS], False) == BLOCK + after, "a second time"
    assert nfs.exports_text(before, [OURS], True) == BLOCK


def test_a_node_that_serves_nothing_has_nothing_of_ours() -> None:
    assert nfs.exports_text(f"{BLOCK}/old *(ro)\n", [], False) == "/old *(ro)\n"
    assert nfs.exports_text(f"{BLOCK}/old *(ro)\n", [], True) == ""


def test_a_node_mounts_what_it_is_a_client_of() -> None:
    model = {
        "data": file_system(mount="/srv/big data"),
        "six": file_system(mount="/six", address="2001:db8::1"),
        "same": file_system(servers=["node1"], mount="/same", export="/same"),
        "own": file_system(servers=["node1"], mount="/own", export="/disk/own"),
        "not": file_system(clients=["node2"]),
    }
    mounts = nfs.mounts(model, "node1", MOUNT_OPTIONS, {"six": ["ro", "soft"]})
    assert [(one["name"], one["source"], one["unit"], one["options"], one["own"]) for one in mounts] == [
        ("data", "10.0.2.1:/data", "srv-big\\x20data", MOUNT_OPTIONS, False),
        ("own", "/disk/own", "own", [], True),
        ("six", "[2001:db8::1]:/data", "six", ["ro", "soft"], False),
    ]


@pytest.mark.parametrize(
    ("entry", "options", "said"),
    [
        ({}, MOUNT_OPTIONS, []),
        ({}, ["ro", "soft"], []),
        ({}, ["rw", "soft"], ["x: soft loses what was written when the server is slow; say hard, or ro with soft"]),
        ({}, ["rw"], ["x: say one of hard, soft"]),
        (
            {},
            ["rw", "hard", "bg", "x-systemd.automount"],
            ["x: bg is the role's own", "x: x-systemd.automount is the role's own"],
        ),
        ({}, ["rw", "hard", "vers=3"], ["x: store serves version 4 alone (docs/nfs.md); say vers=4.1"]),
        ({}, ["rw", "hard", "v3"], ["x: store serves version 4 alone (docs/nfs.md); say vers=4.1"]),
        ({"servers": [], "arrays": ["filer1"]}, ["rw", "hard", "nfsvers=3"], []),
        (
            {"address": None, "servers": [], "arrays": ["filer1"]},
            MOUNT_OPTIONS,
            ["x: filer1 has no address; give it one in cluster.yml: arrays.filer1.address"],
        ),
    ],
)
def test_mounts_that_lose_data_or_have_no_server_are_refused(
    entry: dict[str, Any], options: list[str], said: list[str]
) -> None:
    model = {"x": file_system(**entry)}
    mounts = nfs.mounts(model, "node1", options, {})
    assert nfs.mount_problems(mounts, model) == said


def test_fstab_has_the_type_of_the_version() -> None:
    model = {"x": file_system(mount="/x"), "own": file_system(mount="/own", servers=["node1"], export="/disk/own")}
    for options, kind in (
        (["vers=3"], "nfs"),
        (["v3"], "nfs"),
        (["v4"], "nfs4"),
        (["nfsvers=3"], "nfs"),
        (["vers=4.1"], "nfs4"),
        ([], "nfs4"),
    ):
        mounts = nfs.mounts(model, "node1", options, {})
        assert [one["type"] for one in mounts] == ["none", kind]


@pytest.mark.parametrize(
    "path", ["/srv/data", "/srv/data-1", "/", "/a.b_c:d", "/.hidden/x", "/srv/big data/", "/a//b", "/x@y"]
)
def test_units_have_systemds_names(path: str) -> None:
    said = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True).stdout
    assert nfs.unit_name(path) == said.strip()
