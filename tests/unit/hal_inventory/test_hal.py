"""The reference site, against FACTS: the numbers of the paper, and what Slurm has to be told."""

from __future__ import annotations

from typing import Any

import pytest

from hal_inventory.derive.inventory import pack
from hal_inventory.derive.slices import SLICES, derive
from hal_inventory.errors import HalInventoryError
from hal_inventory.model import Site
from hal_inventory.packed import group_members, host_vars
from hal_inventory.restrict import only

AC922 = {
    "names": "hal[01-16]",
    "address_pattern": "10.64.0.[101-116]",
    "sockets": 2,
    "cores_per_socket": 20,
    "threads_per_core": 4,
    "cpus": 160,
    "memory_mb": 262144,
    "gres": "gpu:v100:4",
    "features": ["ac922", "ppc64le", "v100"],
}


def slice_of(site: Site, which: str, **arguments: Any) -> Any:
    return derive(site, which, arguments)


def test_hal_has_22_servers_64_gpus_2_arrays_and_16_compute_nodes(hal: Site) -> None:
    variables = host_vars(pack(hal))
    assert len(variables) == 22
    assert sum(len(values["hal_node"]["gpus"]) for values in variables.values()) == 64
    assert list(hal.arrays) == ["flash1", "flash2"]
    assert group_members(pack(hal))["compute"] == [f"hal{at:02d}" for at in range(1, 17)]


def test_flash_arrays_and_what_is_outside_are_no_hosts(hal: Site) -> None:
    assert not {"flash1", "flash2", "grafana"} & set(host_vars(pack(hal)))
    assert list(slice_of(hal, "external")) == ["grafana"]


def test_a_host_has_exactly_these_variables(hal: Site) -> None:
    variables = host_vars(pack(hal))["hal05"]
    assert set(variables) == {"ansible_host", "hal_node"}
    assert variables["hal_node"] == {
        "name": "hal05",
        "fqdn": "hal05.hal.example",
        "profile": "ac922",
        "role": "compute",
        "arch": "ppc64le",
        "model": "IBM Power System AC922 8335-GTH",
        "serial": "PLACEHOLDER-HAL05",
        "kernel": "4.18.0-80.7.2.el7",
        "addresses": {"management": "10.64.0.105", "bmc": "10.64.1.105", "ipoib": "10.64.2.105"},
        "macs": {"management": "02:48:41:4c:02:05", "bmc": "02:48:41:4c:03:05"},
        "port_guids": {"mlx5_0/1": "0x0248414c01050001"},
        "disks": {"system": "0x50248414c1050001"},
        "gpu_uuids": {},
        "cpus": {"model": "POWER9", "sockets": 2, "cores_per_socket": 20, "threads_per_core": 4, "total": 160},
        "memory_mb": 262144,
        "numa": [{"id": 0, "socket": 0, "cpus": "0-79"}, {"id": 8, "socket": 1, "cpus": "80-159"}],
        "gpus": [
            {
                "index": at,
                "type": "v100",
                "model": "Tesla V100-SXM2-16GB",
                "memory_mb": 16384,
                "socket": at // 2,
                "link": "nvlink2",
            }
            for at in range(4)
        ],
        "hcas": [{"model": "ConnectX-5", "ports": 2, "rate_gbps": 100}],
        "interfaces": {
            "management": {"name": "enP5p1s0f0", "members": [], "bond_mode": None},
            "ipoib": {"name": "ib0", "members": [], "bond_mode": None},
        },
        "bmc": {"kind": "openbmc", "address": "hal05.address-is-a-placeholder.invalid"},
        "reimage": "allowed",
        "services": [],
        "virtual": False,
    }


def test_services_are_groups_and_host_variables(hal: Site) -> None:
    packed = pack(hal)
    assert group_members(packed)["time_server"] == ["hal-mgmt1", "hal-mgmt2"]
    assert host_vars(packed)["hal-mgmt2"]["hal_node"]["services"] == ["portal", "time_server"]
    assert slice_of(hal, "service", name="slurm_controller") == ["hal-login"]
    assert slice_of(hal, "slurm.controllers") == ["hal-login"]
    assert slice_of(hal, "slurm.databases") == ["hal-mgmt1"]


def test_every_host_is_in_a_group(hal: Site) -> None:
    members = {name for names in group_members(pack(hal)).values() for name in names}
    assert members == set(hal.nodes)


def test_a_placeholder_address_cannot_be_contacted_by_accident(hal: Site) -> None:
    contacts = {values["ansible_host"] for values in host_vars(pack(hal)).values()}
    assert contacts == {f"{name}.address-is-a-placeholder.invalid" for name in hal.nodes}


def test_placeholders_are_listed_with_their_lines(hal: Site) -> None:
    listed = slice_of(hal, "placeholders")
    fields = [one["field"] for one in listed]
    assert fields[0] == "domain"
    assert "nodes.hal[01-16].serial" in fields
    assert all(one["line"] > 1 and one["value"] for one in listed)
    assert [one["line"] for one in listed] == sorted(one["line"] for one in listed)
    own = [one["field"] for one in slice_of(hal, "placeholders", node="hal05")]
    assert own == [field for field in fields if field.startswith("nodes.hal[01-16].")]


def test_slurm_nodes_are_those_of_the_group(hal: Site) -> None:
    test, compute = slice_of(hal, "slurm.nodes")
    assert compute == AC922
    assert (test["names"], test["gres"], test["features"]) == ("hal-test", "", ["testdev", "ppc64le"])


def test_memory_is_the_declared_memory_less_the_reserve(hal: Site) -> None:
    _, compute = slice_of(hal, "slurm.nodes", memory_reserve_mb=16384)
    assert compute["memory_mb"] == 245760
    with pytest.raises(HalInventoryError, match="leaves nothing"):
        slice_of(hal, "slurm.nodes", memory_reserve_mb=300_000)


@pytest.mark.parametrize(
    ("version", "cores"),
    [
        ("19.05.5", ["0-79", "80-159"]),
        ("20.02.7", ["0-79", "80-159"]),
        ("20.11.0", ["0-19", "20-39"]),
        ("22.05.8", ["0-19", "20-39"]),
    ],
)
def test_gres_cores_follow_the_version_of_slurm(hal: Site, version: str, cores: list[str]) -> None:
    files = ["/dev/nvidia[0-1]", "/dev/nvidia[2-3]"]
    assert slice_of(hal, "slurm.gres", slurm_version=version) == [
        {"nodes": "hal[01-16]", "name": "gpu", "type": "v100", "file": file, "cores": of}
        for file, of in zip(files, cores, strict=True)
    ]


def test_partitions_are_those_of_the_users_tools(hal: Site) -> None:
    partitions = {one["name"]: one for one in slice_of(hal, "slurm.partitions")}
    assert list(partitions) == ["gpu", "cpu", "debug", "test"]
    assert {partitions[name]["nodes"] for name in ("gpu", "cpu", "debug")} == {"hal[01-16]"}
    assert [name for name, one in partitions.items() if one["default"]] == ["gpu"]
    assert partitions["cpu"]["max_cpus_per_node"] == 96
    assert partitions["gpu"]["max_cpus_per_node"] is None


def test_the_topology_names_only_nodes_of_slurm(hal: Site) -> None:
    assert slice_of(hal, "slurm.topology") == [{"switch": "edr1", "nodes": "hal-test,hal[01-16]"}]


def test_hosts_are_in_the_order_of_the_model(hal: Site) -> None:
    hosts = slice_of(hal, "hosts")
    assert [host["name"] for host in hosts] == list(hal.nodes)
    assert hosts[0] == {
        "name": "hal-login",
        "fqdn": "hal-login.hal.example",
        "address": "10.64.0.10",
        "addresses": {
            "management": "10.64.0.10",
            "bmc": "10.64.1.10",
            "ipoib": "10.64.2.10",
            "access": "10.64.3.10",
        },
        "aliases": [],
    }


def test_file_systems_are_expanded(hal: Site) -> None:
    systems = slice_of(hal, "file_systems")
    assert systems["home"]["arrays"] == ["flash1", "flash2"]
    assert len(systems["home"]["clients"]) == 21
    assert (systems["internal"]["server"], systems["internal"]["servers"]) == ("hal-data", ["hal-data"])
    assert {one["node"] for one in slice_of(hal, "raid_sets")} == {"hal-mgmt1", "hal-data", "hal-dtn"}


def test_every_slice_is_plain_data(hal: Site) -> None:
    import json

    needed = {"service": {"name": "portal"}}
    for name in SLICES:
        result = derive(hal, name, needed.get(name, {}))
        assert json.loads(json.dumps(result)) == result, name


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("slurm.node", {}, 'unknown slice "slurm.node"; did you mean "slurm.nodes"?'),
        ("nodes", {"were": "all"}, 'slice "nodes": unknown argument "were"; did you mean "where"?'),
        ("nodes", {"where": 5}, 'slice "nodes": where must be text, not 5'),
        ("service", {}, 'slice "service": argument "name" is missing'),
        ("service", {"name": "portl"}, 'unknown service "portl"; did you mean "portal"?'),
        (
            "slurm.nodes",
            {"memory_reserve_mb": "8G"},
            "slice \"slurm.nodes\": memory_reserve_mb must be a whole number, not '8G'",
        ),
        ("slurm.gres", {"slurm_version": "new"}, 'slurm_version="new" is not a version; write one such as "22.05.8"'),
    ],
)
def test_a_wrong_question_is_refused(hal: Site, name: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(HalInventoryError) as caught:
        derive(hal, name, arguments)
    assert str(caught.value) == says


def test_the_mini_site_is_whole_without_the_rest(hal: Site) -> None:
    mini = only(hal, "hal-login or hal-mgmt[1-2] or hal-data or hal[01-02]")
    assert slice_of(mini, "nodeset") == "hal[01-02],hal-data,hal-login,hal-mgmt[1-2]"
    assert slice_of(mini, "slurm.nodes") == [{**AC922, "names": "hal[01-02]", "address_pattern": "10.64.0.[101-102]"}]
    assert [one["name"] for one in slice_of(mini, "slurm.partitions")] == ["gpu", "cpu", "debug"]
    assert slice_of(mini, "slurm.topology") == [{"switch": "edr1", "nodes": "hal[01-02]"}]
    assert list(slice_of(mini, "file_systems")) == ["home", "internal"]
    assert {one["node"] for one in slice_of(mini, "raid_sets")} == {"hal-mgmt1", "hal-data"}
    assert group_members(pack(mini))["transfer"] == []
    assert len(slice_of(mini, "placeholders")) == len(slice_of(hal, "placeholders"))
