"""Slices of a site that the reference site has no example of: the values of each, and what a question may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hal_inventory.derive.slices import derive, disk_path
from hal_inventory.errors import HalInventoryError
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.restrict import renumber

SERVER = "    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}\n"
GPUS = "".join(
    f"      - {{index: {at}, type: {kind}, model: {kind}, memory_mb: 15000, socket: {socket}}}\n"
    for at, (kind, socket) in enumerate((("t4", 1), ("a2", 0), ("t4", 0), ("t4", 1)))
)
OF_TWO = f"    cpus: {{model: Xeon, sockets: 2, cores_per_socket: 4, threads_per_core: 2}}\n    gpus:\n{GPUS}"
D1, D2 = "0x5000c500a1b25001", "0x5000c500a1b25002"
SWITCHES = (
    "edr1: {nodes: 'worker[2-3],front'}\n    edr2: {nodes: login}\n    mid: {switches: 'edr[1-2]'}\n"
    "    low: {nodes: data}\n    top: {switches: 'mid,low'}\n    lone: {switches: none}\n    none: {nodes: data}"
)


def site_of(text: str, edits: Mapping[str, str] | None = None) -> Site:
    for old, new in (edits or {}).items():
        assert old in text
        text = text.replace(old, new, 1)
    return load_bytes(text.encode(), "cluster.yml")


def refusal(site: Site, name: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(HalInventoryError) as caught:
        derive(site, name, arguments)
    return str(caught.value)


def test_gpus_are_grouped_by_type_and_socket(small: str) -> None:
    site = site_of(small, {SERVER: OF_TWO, "  slurm_node: compute": "  slurm_node: login"}
                   | {"gpu: {nodes: compute": "gpu: {nodes: login"})  # fmt: skip

    def lines(version: str) -> list[tuple[str, str, str, str]]:
        found = derive(site, "slurm.gres", {"slurm_version": version})
        return [(one["nodes"], one["type"], one["file"], one["cores"]) for one in found]

    assert lines("20.11") == [
        ("front", "a2", "/dev/nvidia1", "0-3"),
        ("front", "t4", "/dev/nvidia2", "0-3"),
        ("front", "t4", "/dev/nvidia[0,3]", "4-7"),
    ]
    # Which of the kernel's CPUs a socket has, nobody said (numa), and x86 counts them in more than one way.
    assert lines("20.10.9") == [
        ("front", "a2", "/dev/nvidia1", ""),
        ("front", "t4", "/dev/nvidia2", ""),
        ("front", "t4", "/dev/nvidia[0,3]", ""),
    ]
    assert lines("21.1") == lines("20.11")
    assert lines("19.12") == lines("20.10.9")
    (node,) = derive(site, "slurm.nodes", {})
    assert (node["gres"], node["features"]) == ("gpu:a2:1,gpu:t4:3", ["server", "x86_64", "a2", "t4"])


def test_a_gpu_brings_its_share_of_the_least_node_in_whole_cores(small: str) -> None:
    """worker: 2 GPUs, 262144 MB. front: 4 GPUs on 16 threads of 8 cores, 65536 MB."""
    times = 'max_time: "1:00:00", default_time: "1:00:00"'
    more = f"\n  both: {{nodes: compute or login, {times}}}\n  none: {{nodes: login, {times}, gpus: false}}"
    edits = {"  slurm_node: compute": "  slurm_node: compute or login", "default: true}": f"default: true}}{more}"}
    site = site_of(small, {SERVER: OF_TWO, **edits})

    def share(reserve: int) -> list[tuple[str, int | None, int | None, bool]]:
        found = derive(site, "slurm.partitions", {"memory_reserve_mb": reserve})
        return [(one["name"], one["cpus_per_gpu"], one["memory_per_gpu_mb"], one["refuses_gpus"]) for one in found]

    (worker,) = (one for one in derive(site, "slurm.nodes", {}) if "worker" in one["names"])
    assert share(0) == [("gpu", 16, 131072, False), ("both", 4, 16384, False), ("none", None, None, True)]
    assert worker["cpus"] == 2 * 16
    assert [one[2] for one in share(536)] == [(262144 - 536) // 2, 65000 // 4, None]
    said = "memory_reserve_mb=65536 leaves nothing of the 65536 MB of server"
    assert refusal(site, "slurm.partitions", {"memory_reserve_mb": 65536}) == said


@pytest.mark.parametrize(
    ("cores", "threads", "gpus", "share"), [(10, 4, 4, 8), (40, 4, 4, 40), (2, 2, 3, 2), (8, 1, 3, 2)]
)
def test_cores_that_do_not_divide_evenly_leave_some_over(
    small: str, cores: int, threads: int, gpus: int, share: int
) -> None:
    lines = "".join(
        f"      - {{index: {at}, type: t4, model: T4, memory_mb: 15000, socket: 0}}\n" for at in range(gpus)
    )
    cpus = f"    cpus: {{model: Xeon, sockets: 1, cores_per_socket: {cores}, threads_per_core: {threads}}}\n    gpus:\n"
    site = site_of(small, {SERVER: cpus + lines, "  slurm_node: compute": "  slurm_node: login",
                           "gpu: {nodes: compute": "gpu: {nodes: login"})  # fmt: skip
    assert [one["cpus_per_gpu"] for one in derive(site, "slurm.partitions", {})] == [share]


@pytest.mark.parametrize("version", ["22", "22.", "22.055", "12345.1", "v22.05", ""])
def test_what_is_no_version_of_slurm_is_refused(small: str, version: str) -> None:
    said = f'slurm_version="{version}" is not a version; write one such as "22.05.8"'
    assert refusal(site_of(small), "slurm.gres", {"slurm_version": version}) == said


def test_memory_may_be_reserved_to_the_last_megabyte(small: str) -> None:
    site = site_of(small)
    for reserve in (262143, "262143"):
        assert [one["memory_mb"] for one in derive(site, "slurm.nodes", {"memory_reserve_mb": reserve})] == [1]
    assert [one["memory_mb"] for one in derive(site, "slurm.nodes", {})] == [262144]
    said = "memory_reserve_mb=262144 leaves nothing of the 262144 MB of worker"
    assert refusal(site, "slurm.nodes", {"memory_reserve_mb": 262144}) == said


@pytest.mark.parametrize("value", [True, 1.5, None, "", "-1", "1" * 16, " 1"])
def test_a_number_of_megabytes_is_a_whole_one(small: str, value: object) -> None:
    said = f'slice "slurm.nodes": memory_reserve_mb must be a whole number, not {value!r}'
    assert refusal(site_of(small), "slurm.nodes", {"memory_reserve_mb": value}) == said


def test_a_number_of_15_digits_is_one(small: str) -> None:
    said = refusal(site_of(small), "slurm.nodes", {"memory_reserve_mb": "9" * 15})
    assert said == f"memory_reserve_mb={'9' * 15} leaves nothing of the 262144 MB of worker"


@pytest.mark.parametrize("value", [True, 1, None, ["all"]])
def test_an_expression_is_text(small: str, value: object) -> None:
    assert refusal(site_of(small), "nodes", {"where": value}) == f'slice "nodes": where must be text, not {value!r}'


def test_without_the_group_slurmd_runs_where_partitions_are(small: str) -> None:
    site = site_of(small, {
        "  slurm_node: compute\n  slurm: slurm_node or login\n": "",
        "gpu: {nodes: compute": "gpu: {nodes: 'worker3,worker1'",
        "default: true}": 'default: true}\n  log: {nodes: login, max_time: "1:00:00", default_time: "1:00:00"}',
    })  # fmt: skip
    assert [(one["names"], one["address_pattern"]) for one in derive(site, "slurm.nodes", {})] == [
        ("front", "10.1.0.10"),
        ("worker[1,3]", "10.1.0.[101,103]"),
    ]


def test_a_switch_without_nodes_of_slurm_below_it_is_left_out(small: str) -> None:
    assert derive(site_of(small, {"edr1: {nodes: compute}": SWITCHES}), "slurm.topology", {}) == [
        {"switch": "edr1", "nodes": "worker[2-3]"},
        {"switch": "mid", "switches": "edr1"},
        {"switch": "top", "switches": "mid"},
    ]


def test_a_network_has_its_mask_and_what_is_declared(small: str) -> None:
    site = site_of(small, {"cidr: 10.1.2.0/24": "cidr: 10.1.2.0/23, rate_gbps: 100, mtu: 2044, vlan: 7"})
    found = derive(site, "networks", {})
    assert found["ipoib"] == {
        "kind": "infiniband", "cidr": "10.1.2.0/23", "netmask": "255.255.254.0", "prefix": 23, "gateway": None,
        "rate_gbps": 100, "mtu": 2044, "vlan": 7,
    }  # fmt: skip
    assert found["management"]["gateway"] == "10.1.0.254"


def test_an_export_has_the_address_of_who_serves_it(small: str) -> None:
    arrays = {"drive_tb: 3.84}": "drive_tb: 3.84, address: '10.1.0.[30-31]'}"}
    keys = ("export", "address", "cidr", "network", "servers", "arrays", "server")

    def home(edits: Mapping[str, str]) -> tuple[object, ...]:
        one = derive(site_of(small, edits), "file_systems", {})["home"]
        return tuple(one.get(key) for key in keys)

    assert home({}) == ("/home", "10.1.0.10", "10.1.0.0/24", "management", ["front"], [], "front")
    of_array = {"    server: front": "    arrays: flash[2]\n    export: /srv"}
    assert home(of_array) == ("/srv", None, "10.1.0.0/24", "management", [], ["flash2"], None)
    assert home({**arrays, **of_array})[1] == "10.1.0.31"
    other = {"    server: front": "    server: worker2\n    network: bmc"}
    assert home(other) == ("/home", "10.1.1.102", "10.1.1.0/24", "bmc", ["worker2"], [], "worker2")
    scale = {"    kind: nfs": "    kind: spectrum_scale", "    server: front": "    servers: login"}
    assert home(scale) == (None, None, None, "management", ["front"], [], None)


@pytest.mark.parametrize(
    ("wwn", "kind"),
    [("0x5000c500a1b2c3d4", "wwn"), ("eui.002538b321c5527c", "nvme"), ("nvme.1-2", "nvme"), ("uuid.ab", "nvme")],
)
def test_a_disk_is_found_by_the_link_that_udev_makes(small: str, wwn: str, kind: str) -> None:
    assert disk_path(wwn) == f"/dev/disk/by-id/{kind}-{wwn}"
    site = site_of(small, {
        "aliases: [gateway]": f'disks: {{system: "{wwn.upper()}", d1: "{D1}", d2: "{D2}"}}',
        "holds: operating system}": 'holds: operating system, disks: ["d[2]", system]}',
    })  # fmt: skip
    (raid,) = derive(site, "raid_sets", {})
    assert raid["devices"] == [f"/dev/disk/by-id/wwn-{D2}", f"/dev/disk/by-id/{kind}-{wwn}"]
    (front,) = [one for one in derive(site, "boot", {}) if one["name"] == "front"]
    assert (front["disk"], front["disks"]) == (wwn, {"system": wwn, "d1": D1, "d2": D2})


def test_what_nobody_filled_in_is_said_of_each_node_but_not_of_a_virtual_site(small: str) -> None:
    site = site_of(small, {
        'macs: {management: "02:00:00:00:00:10"}': 'macs: {management: !placeholder "02:00:00:00:00:10"}',
        "S-FRONT": "!placeholder S-FRONT",
        "10.1.1.[101-104]": "!placeholder 10.1.1.[101-104]",
        "small.example": "!placeholder small.example",
    })  # fmt: skip
    fields = {one["name"]: one["placeholders"] for one in derive(site, "boot", {})}
    assert fields["front"] == ["macs.management", "serial"]
    assert fields["worker4"] == ["addresses.bmc"]
    virtual = derive(replace(site, virtual=True), "boot", {})
    assert [one["placeholders"] for one in virtual] == [[]] * 5
    assert [one["field"] for one in derive(site, "placeholders", {"node": "worker2"})] == [
        "nodes.worker[1-4].addresses.bmc"
    ]
    assert derive(site, "placeholders", {})[0] == {"field": "domain", "line": 3, "value": "small.example"}


def test_a_node_without_a_serial_number_is_in_no_list_of_them(small: str) -> None:
    assert derive(site_of(small, {"    serial: S-FRONT\n": ""}), "serials", {}) == {
        "S1": "worker1", "S2": "worker2", "S3": "worker3", "S4": "worker4",
    }  # fmt: skip
    front = derive(site_of(small), "hosts", {})[0]
    assert (front["name"], front["fqdn"], front["aliases"]) == ("front", "front.small.example", ["gateway"])


def test_an_array_moves_with_its_network(hal: Site) -> None:
    moved = renumber(hal, {"ipoib": "10.66.4.0/24"})
    assert [one["address"] for one in derive(moved, "arrays", {}).values()] == ["10.66.4.201", "10.66.4.202"]
    assert derive(renumber(hal, {"management": "10.65.4.0/24"}), "arrays", {}) == derive(hal, "arrays", {})
