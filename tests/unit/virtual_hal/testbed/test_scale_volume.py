"""The volume that is the arrays of Spectrum Scale is laid down from the model, for the nodes that reach them."""

from __future__ import annotations

import json
from typing import Any

from testbed import nodes, scale

HOME = {
    "kind": "spectrum_scale",
    "mount": "/home",
    "arrays": ["flash1", "flash2"],
    "clients": ["hal01"],
    "block_size_kb": 1024,
}
INTERNAL = {"kind": "nfs", "mount": "/internal", "arrays": [], "clients": ["hal-mgmt2"], "block_size_kb": None}


def plan(**changes: Any) -> nodes.Plan:
    """Return a plan of a client, an administration node and a node that has nothing to do with the arrays."""

    def node(name: str, last: int) -> dict[str, Any]:
        address = {"management": f"10.64.0.{last}"}
        return {"name": name, "fqdn": f"{name}.hal.example", "arch": "x86_64", "kernel": "4.18.0", "addresses": address}

    document = {
        "instance": "virtual",
        "image": "localhost/hal-node:x",
        "packages": "/cache/packages",
        "authorities": "/state/ca",
        "networks": {"management": {"cidr": "10.64.0.0/24"}},
        "nodes": [node("hal01", 101), node("hal-mgmt1", 11), node("hal-mgmt2", 253)],
        "scale": {"file_systems": {"home": HOME, "internal": INTERNAL}, "admins": ["hal-mgmt1"]},
    }
    return nodes.read_plan(json.dumps({**document, **changes}))


def test_clients_and_the_administration_node_share_the_volume() -> None:
    made = plan()
    shared = [f"--volume=virtual-scale:{scale.FOLDER}" in nodes.container_options(made, node) for node in made.nodes]
    assert shared == [True, True, False]
    without = plan(scale={"file_systems": {"internal": INTERNAL}, "admins": ["hal-mgmt1"]})
    assert not any("virtual-scale" in " ".join(nodes.container_options(without, node)) for node in without.nodes)


def test_arrays_get_the_last_addresses_that_nobody_has() -> None:
    cluster = plan().scale_cluster()  # .254 is the fabric's, .253 a node's
    assert [(node["name"], node["address"], node["array"]) for node in cluster["nodes"]] == [
        ("flash1.hal.example", "10.64.0.251", True),
        ("flash2.hal.example", "10.64.0.252", True),
        ("hal-mgmt1.hal.example", "10.64.0.11", False),
    ]


def test_a_file_system_has_the_models_block_size_and_disks_of_each_array() -> None:
    cluster = plan().scale_cluster()
    (home,) = cluster["file_systems"]
    assert (home["name"], home["mount"], home["block_size"], home["log_size"]) == ("home", "/home", 1 << 20, 4 << 20)
    assert [(disk["name"], disk["servers"][0]) for disk in cluster["disks"]] == [
        ("home_flash1_1", "flash1.hal.example"),
        ("home_flash1_2", "flash1.hal.example"),
        ("home_flash2_1", "flash2.hal.example"),
        ("home_flash2_2", "flash2.hal.example"),
    ]
    assert {path: mode for path, (mode, _) in scale.files(cluster).items()} == {
        "nodes/": 0o755,
        "file systems/": 0o700,
        "file systems/home/": 0o755,
        "cluster.json": 0o644,
    }


def test_the_volume_begins_the_same_when_a_client_is_added() -> None:
    first = plan()
    more = first.model_copy(update={"nodes": (*first.nodes, first.nodes[0].model_copy(update={"name": "hal02"}))})
    assert more.scale_cluster() == first.scale_cluster()
