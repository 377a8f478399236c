"""Ports and cables of the fabric: what a model says of them, and what of it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_inventory.derive.slices import derive
from hal_inventory.load import load, load_bytes
from hal_inventory.model import Site
from hal_inventory.restrict import only
from tests.unit.hal_inventory.conftest import findings

HAL = Path(__file__).parents[3] / "inventory/hal/cluster.yml"

WORKERS = '    macs: {management: "02:00:00:00:01:[01-04]"}\n'
CABLED = {
    WORKERS: WORKERS
    + '    port_guids: {mlx5_0/1: "0x506b4b0300c2b[1-4]f0", mlx5_1/1: "0x506b4b0300c2c[1-4]f0"}\n'
    + '    cables: {mlx5_0/1: "edr1/[1-4]"}\n',
    "drives: 12, drive_tb: 3.84}": "drives: 12, drive_tb: 3.84, links: 1,"
    ' port_guids: {ib0: "0x506b4b0300c2d[1-2]f0"}, cables: {ib0: "edr1/[5-6]"}}',
    "edr1: {nodes: compute}": 'edr1: {nodes: compute, guid: "0x248a070300f82d40", ports: 8, cables: {8: spine/1}}\n'
    '    spine: {switches: edr1, guid: "0x248a070300f82e60", ports: 8}',
    "cidr: 10.1.2.0/24}": "cidr: 10.1.2.0/24, rate_gbps: 100}",
}


@pytest.fixture
def cabled(small: str) -> str:
    """The small model with every cable of its fabric declared."""
    for old, new in CABLED.items():
        assert old in small
        small = small.replace(old, new, 1)
    return small


@pytest.fixture(scope="module")
def hal() -> Site:
    return load(HAL)


def cables(site: Site) -> list[tuple[str, str, str]]:
    return [
        (f"{one['switch']}/{one['switch_port']}", one["owner"], one["port"])
        for one in derive(site, "fabric.cables", {})
    ]


def test_a_cabled_model_is_sound_and_says_where_every_cable_goes(cabled: str) -> None:
    assert findings(cabled) == []
    assert cables(load_bytes(cabled.encode(), "cluster.yml")) == [
        ("edr1/1", "worker1", "mlx5_0/1"),
        ("edr1/2", "worker2", "mlx5_0/1"),
        ("edr1/3", "worker3", "mlx5_0/1"),
        ("edr1/4", "worker4", "mlx5_0/1"),
        ("edr1/5", "flash1", "ib0"),
        ("edr1/6", "flash2", "ib0"),
        ("edr1/8", "spine", "1"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "edr1/[1-4]",
            "edr2/[1-4]",
            '"edr2/1" of worker1 (and those of worker[2-4]) is at an unknown switch; did you mean "edr1"?',
        ),
        ("edr1/[1-4]", "edr1[1-4]", '"edr11" of worker1 (and those of worker[2-4]) is not the port of a switch; write'),
        ("edr1/[1-4]", "edr1/[6-9]", '"edr1/9" of worker4 does not exist; edr1 has ports 1 to 8'),
        ("edr1/[1-4]", "edr1/[1-3]", "nodes.worker[1-4].cables.mlx5_0/1: 3 values for 4 nodes"),
        (
            "edr1/[5-6]",
            "edr1/[4-5]",
            "switch port used twice: edr1/4 of flash1 (first by worker4 in nodes.worker[1-4].cables",
        ),
        ("8: spine/1", "5: spine/1", "fabric.switches.edr1.cables.5: switch port used twice: edr1/5 (first by flash1"),
        ("8: spine/1", "8: spine/9", '.edr1.cables.8: "spine/9" does not exist; spine has ports 1 to 8'),
        ("8: spine/1", "9: spine/1", '.edr1.cables.9: "edr1/9" does not exist; edr1 has ports 1 to 8'),
        ("8: spine/1", "x: spine/1", 'fabric.switches.edr1.cables.x: "x" is not the number of a port'),
        (
            '{mlx5_0/1: "edr1',
            '{mlx5_2/1: "edr1',
            "nodes.worker[1-4].cables.mlx5_2/1: no GUID of mlx5_2/1 in port_guids",
        ),
        (
            "edr1: {nodes: compute",
            "edr1: {nodes: 'worker[1-3]'",
            "worker4 is not among the nodes below edr1: see fabric.",
        ),
        (
            "edr1: {nodes: compute",
            "edr1: {nodes: worker1",
            "worker[2-4] are not among the nodes below edr1: see fabric.switches.edr1.nodes",
        ),
        (
            "8: spine/1",
            "8: spine/1, 7: spine/1",
            ".7: switch port used twice: spine/1 of edr1/7 (first by edr1/8 in fabric.switches.edr1.cables.8, line 60)",
        ),
        (
            "8: spine/1",
            "8: spine/1, 7: edr1/8",
            ".7: switch port used twice: edr1/8 of edr1/7 (first in fabric.switches.edr1.cables.8, line 60)",
        ),
        ("8: spine/1", "8: edr1/8", "fabric.switches.edr1.cables.8: edr1/8 leads to itself; write the other end"),
        (
            "8: spine/1",
            "'[7-8]': spine/1",
            ".cables.[7-8]: 1 value for 2 ports of 1 switch; write a range or a list of 2",
        ),
        (
            "8: spine/1",
            "'[07-08]': 'spine/[1-2]'",
            '"edr1/07" of edr1/07 (and those of edr1/08) is not the port of a switch',
        ),
        (", ports: 8, cables", ", cables", "is a cable of edr1, which needs ports in fabric.switches.edr1"),
        ("links: 1", "links: 4", "arrays.flash[1-2].cables: 1 cables, but links: 4"),
        (
            "0x506b4b0300c2b[1-4]f0",
            "506b4b0300c2b[1-4]f0",
            'port_guids.mlx5_0/1: "506b4b0300c2b1f0" of worker1 (and those of worker[2-4]) is not a GUID',
        ),
        (
            '"0x506b4b0300c2b[1-4]f0"',
            '["0x506b4b0300c2b[1-2]f0", "0xffffffffffffffff", "0x506b4b0300c2b4f0"]',
            'port_guids.mlx5_0/1: "0xffffffffffffffff" of worker3 is not a GUID',
        ),
        (
            '"0x506b4b0300c2d[1-2]f0"',
            '["0x0000000000000000", "0x506b4b0300c2d2f0"]',
            'arrays.flash[1-2].port_guids.ib0: "0x0000000000000000" of flash1 is not a GUID',
        ),
        ('"0x248a070300f82d40"', '"0x0000000000000000"', 'edr1.guid: "0x0000000000000000" is not a GUID'),
        (
            "0x506b4b0300c2d[1-2]f0",
            "0x506b4b0300c2b[4-5]f0",
            "arrays.flash[1-2].port_guids.ib0: GUID used twice: 0x506b4b0300c2b4f0",
        ),
        ('"0x248a070300f82d40"', '"0x506b4b0300c2b1f0"', "fabric.switches.edr1.guid: GUID used twice"),
        ('"0x248a070300f82d40"', "edr1", 'fabric.switches.edr1.guid: "edr1" is not a GUID'),
    ],
)
def test_a_cable_that_cannot_be_is_refused(cabled: str, old: str, new: str, expected: str) -> None:
    assert cabled.count(old) >= 1
    found = findings(cabled.replace(old, new, 1))
    assert any(expected in line for line in found), found
    assert all(line.startswith("cluster.yml:") for line in found)


def test_only_ports_with_a_cable_have_to_be_up_where_cables_are_declared(cabled: str) -> None:
    site = load_bytes(cabled.encode(), "cluster.yml")
    assert [(one["name"], one["used"]) for one in derive(site, "fabric.ports", {"node": "worker2"})] == [
        ("mlx5_0/1", True),
        ("mlx5_1/1", False),
    ]
    without = cabled.replace('    cables: {mlx5_0/1: "edr1/[1-4]"}\n', "")
    site = load_bytes(without.encode(), "cluster.yml")
    assert [one["used"] for one in derive(site, "fabric.ports", {"node": "worker2"})] == [True, True]


# An EDR and an HDR adapter in each worker, an EDR and an HDR network, and a switch of each.
MIXED = {
    "    bmc: openbmc\n": "    bmc: openbmc\n    hcas:\n"
    "      - {model: EDR, ports: 1, rate_gbps: 100, devices: [mlx5_0]}\n"
    "      - {model: HDR, ports: 1, rate_gbps: 200, devices: [mlx5_1]}\n",
    "rate_gbps: 100}": "rate_gbps: 100}\n  storage: {kind: infiniband, cidr: 10.1.3.0/24, rate_gbps: 200}",
    '    cables: {mlx5_0/1: "edr1/[1-4]"}\n': '    cables: {mlx5_0/1: "edr1/[1-4]", mlx5_1/1: "hdr1/[1-4]"}\n',
    "      bmc: 10.1.1.[101-104]\n": "      bmc: 10.1.1.[101-104]\n      storage: 10.1.3.[1-4]\n",
    "    spine: {": '    hdr1: {nodes: compute, guid: "0x248a070300f82f00", ports: 8, rate_gbps: 200}\n    spine: {',
}


def rates(text: str) -> dict[str, int | None]:
    """The rate that is expected of each port of worker1 and flash1, by owner and port."""
    ports = derive(load_bytes(text.encode(), "cluster.yml"), "fabric.ports", {})
    return {f"{one['owner']} {one['name']}": one["rate_gbps"] for one in ports if one["owner"][-1] == "1"}


@pytest.fixture
def mixed(cabled: str) -> str:
    for old, new in MIXED.items():
        assert old in cabled
        cabled = cabled.replace(old, new, 1)
    return cabled


def test_each_port_is_expected_at_the_rate_of_its_own_link(mixed: str) -> None:
    """A link at half speed would be as declared if the slowest adapter or network of the site counted."""
    assert rates(mixed) == {"worker1 mlx5_0/1": 100, "worker1 mlx5_1/1": 200, "flash1 ib0": 100}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        # The switch is the slower end; the adapter is.
        ("ports: 8, rate_gbps: 200", "ports: 8, rate_gbps: 56", {"worker1 mlx5_1/1": 56}),
        ("{model: HDR, ports: 1, rate_gbps: 200", "{model: HDR, ports: 1, rate_gbps: 40", {"worker1 mlx5_1/1": 40}),
        # A switch that says nothing: the node's own networks, not the site's.
        ("ports: 8, rate_gbps: 200", "ports: 8", {}),
        ("cidr: 10.1.2.0/24, rate_gbps: 100", "cidr: 10.1.2.0/24, rate_gbps: 25", {"worker1 mlx5_0/1": 100}),
    ],
)
def test_the_slower_end_of_a_link_counts(mixed: str, old: str, new: str, changed: dict[str, int]) -> None:
    assert old in mixed
    right = rates(mixed)
    found = rates(mixed.replace(old, new))
    if "cidr" in old:
        assert found["flash1 ib0"] == 25  # in no network, so of all of them the smallest
        found["flash1 ib0"] = right["flash1 ib0"]
    assert found == {**right, **changed}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            ", devices: [mlx5_1]",
            "",
            "mlx5_1: the profile's hcas differ in rate_gbps, and none has it in devices; name it in",
        ),
        (
            "[mlx5_1]",
            "[mlx5_0, mlx5_1]",
            "mlx5_0: the profile's hcas differ in rate_gbps, and several have it in devices;",
        ),
    ],
)
def test_a_port_whose_adapter_is_not_known_is_refused(mixed: str, old: str, new: str, said: str) -> None:
    (line,) = findings(mixed.replace(old, new, 1))
    assert said in line
    assert line.startswith("cluster.yml:")


def test_every_node_of_hal_with_ipoib_has_one_cabled_port_at_100(hal: Site) -> None:
    ports: list[dict[str, Any]] = derive(hal, "fabric.ports", {})
    nodes = [one for one in ports if one["owner"] in hal.nodes]
    assert [one["owner"] for one in nodes] == [name for name, node in hal.nodes.items() if "ipoib" in node.addresses]
    assert {(one["name"], one["switch"], one["rate_gbps"]) for one in ports if one not in nodes} == {
        (f"mlx5_{at}/1", "edr1", 100) for at in range(4)
    }
    assert {one["rate_gbps"] for one in nodes} == {100}
    assert list(hal.members["infiniband"]) == [one["owner"] for one in nodes]
    assert derive(hal, "fabric.subnet_managers", {}) == ["hal-mgmt1"]


def test_eight_cables_of_hal_go_to_the_arrays(hal: Site) -> None:
    assert len([one for one in cables(hal) if one[1] in hal.arrays]) == 8
    assert len(cables(hal)) == 29


def test_a_part_of_a_site_keeps_its_own_cables_and_those_of_the_arrays(hal: Site) -> None:
    assert [one[1] for one in cables(only(hal, "hal[01-02]"))] == ["hal01", "hal02", *["flash1", "flash2"] * 4]
