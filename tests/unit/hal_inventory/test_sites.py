"""The model is not HAL's alone: other people's clusters load, and derive what they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_inventory.derive.inventory import pack
from hal_inventory.derive.slices import derive
from hal_inventory.load import load
from hal_inventory.model import Site
from hal_inventory.packed import group_members, host_vars
from hal_inventory.storage import mounted_by_no_role


@pytest.fixture(scope="module")
def dell(root: Path) -> Site:
    return load(root / "tests" / "sites" / "dell" / "cluster.yml")


@pytest.fixture(scope="module")
def neuronix(root: Path) -> Site:
    return load(root / "tests" / "sites" / "neuronix" / "cluster.yml")


def slice_of(site: Site, which: str, **arguments: Any) -> Any:
    return derive(site, which, arguments)


def test_dell_has_one_head_node_that_does_everything(dell: Site) -> None:
    assert host_vars(pack(dell))["master"]["hal_node"]["services"] == [
        "nfs_server",
        "portal_server",
        "slurm_controller",
    ]
    assert len(group_members(pack(dell))["nfs_client"]) == 17
    assert slice_of(dell, "slurm.databases") == []


def test_dell_real_addresses_are_contacted(dell: Site) -> None:
    assert host_vars(pack(dell))["node016"]["ansible_host"] == "10.141.0.16"
    assert slice_of(dell, "placeholders") == []


def test_dell_nodes_without_threads_and_with_cpus_numbered_over_sockets(dell: Site) -> None:
    (nodes,) = slice_of(dell, "slurm.nodes")
    assert (nodes["names"], nodes["address_pattern"], nodes["cpus"]) == ("node[001-016]", "10.141.0.[1-16]", 40)
    (new,) = slice_of(dell, "slurm.gres")
    (old,) = slice_of(dell, "slurm.gres", slurm_version="17.11.8")
    assert (new["file"], new["cores"]) == ("/dev/nvidia[0-3]", "0-19")
    assert old["cores"] == ",".join(str(cpu) for cpu in range(0, 40, 2))


def test_dell_partitions_of_single_nodes(dell: Site) -> None:
    partitions = {one["name"]: one for one in slice_of(dell, "slurm.partitions")}
    assert partitions["sxm2"]["nodes"] == "node[008,014]"
    assert partitions["requestq"]["max_time"] == "unlimited"


def test_dell_nfs_comes_from_the_head_node_and_from_a_filer(dell: Site) -> None:
    systems = slice_of(dell, "file_systems")
    assert (systems["applications"]["server"], systems["applications"]["network"]) == ("master", "ipoib")
    assert (systems["applications"]["address"], systems["applications"]["export"]) == ("10.149.255.1", "/data/shared")
    assert systems["applications"]["cidr"] == "10.149.0.0/16"
    assert systems["home"]["arrays"] == ["isilon"]
    assert (systems["home"]["address"], systems["home"]["export"]) == ("10.149.254.1", "/home")
    assert slice_of(dell, "arrays")["isilon"]["address"] == "10.149.254.1"


def test_dell_topology_has_two_levels(dell: Site) -> None:
    assert slice_of(dell, "slurm.topology") == [
        {"switch": "sb7800", "nodes": "node[001-016]"},
        {"switch": "leaf1", "switches": "sb7800"},
    ]


def test_neuronix_has_several_gpu_types_one_of_them_in_a_mixed_node(neuronix: Site) -> None:
    gres = {nodes["names"]: nodes["gres"] for nodes in slice_of(neuronix, "slurm.nodes")}
    assert gres == {
        "gpu-a[1-3]": "gpu:gtx1080ti:3,gpu:titanxp:1",
        "gpu-b[1-2]": "gpu:gtx970:1",
        "gpu-c1": "gpu:rtx2080:2",
    }


def test_neuronix_gres_lines_are_by_type_and_socket(neuronix: Site) -> None:
    lines = [(one["nodes"], one["type"], one["file"], one["cores"]) for one in slice_of(neuronix, "slurm.gres")]
    assert lines == [
        ("gpu-a[1-3]", "gtx1080ti", "/dev/nvidia0", "0-7"),
        ("gpu-a[1-3]", "gtx1080ti", "/dev/nvidia[2-3]", "8-15"),
        ("gpu-a[1-3]", "titanxp", "/dev/nvidia1", "0-7"),
        ("gpu-b[1-2]", "gtx970", "/dev/nvidia0", "0-5"),
        ("gpu-c1", "rtx2080", "/dev/nvidia[0-1]", "0-7"),
    ]


def test_neuronix_addresses_pair_with_names_in_the_order_declared(neuronix: Site) -> None:
    pairs = {one["names"]: one["address_pattern"] for one in slice_of(neuronix, "slurm.nodes")}
    assert pairs["gpu-b[1-2]"] == "192.168.10.[40,31]"
    assert host_vars(pack(neuronix))["gpu-b2"]["ansible_host"] == "192.168.10.31"


def test_neuronix_has_no_bmcs_no_fabric_and_gluster_over_two_servers(neuronix: Site) -> None:
    assert {values["hal_node"]["bmc"] for values in host_vars(pack(neuronix)).values()} == {None}
    assert slice_of(neuronix, "slurm.topology") == []
    scratch = slice_of(neuronix, "file_systems")["scratch"]
    assert (scratch["servers"], scratch["layout"]) == (["vault1", "vault2"], "distributed")
    assert host_vars(pack(neuronix))["vault2"]["hal_node"]["serial"] == "ZFS-WEST"


def test_what_no_role_mounts_is_said_with_its_clients(root: Path, dell: Site, hal: Site, neuronix: Site) -> None:
    said = "file system scratch (gluster): no role mounts it on head,gate,gpu-a[1-3],gpu-b[1-2],gpu-c1"
    assert (mounted_by_no_role(dell), mounted_by_no_role(hal), mounted_by_no_role(neuronix)) == ([], [], [said])
    assert f"tests/sites/neuronix/cluster.yml: {said}\n" in (root / "docs" / "site-model.md").read_text()
