"""Which node has which attributes, decided at the controller."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

SOURCE = Path(__file__).resolve().parents[3] / "plugins" / "filter" / "hal_scale.py"
CLASSES: list[dict[str, Any]] = [
    {"name": "login", "group": "login", "attributes": {"pagepool": "2G"}},
    {"name": "clients", "group": "scale", "attributes": {"pagepool": "4G", "workerThreads": 512}},
]
GROUPS = {"login": ["hal-login"], "scale": ["hal-login", "hal01", "hal02", "hal03"]}
PORTS = {"hal01": ["mlx5_0/1"], "hal02": ["mlx5_0/1"], "hal-login": ["mlx5_0/1"]}


@pytest.fixture(scope="module")
def filters() -> ModuleType:
    """The filter plugin, loaded as Ansible does: by its path."""
    spec = importlib.util.spec_from_file_location("hal_scale_filter", SOURCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_class_that_fits_counts(filters: ModuleType) -> None:
    assert filters.hal_scale_attributes(CLASSES, ["login", "scale"], None) == {"pagepool": "2G"}
    assert filters.hal_scale_attributes(CLASSES, ["scale"], None)["workerThreads"] == 512
    assert filters.hal_scale_attributes(CLASSES, ["other"], None) == {}


def test_rdma_goes_by_the_ports_of_the_model_and_a_class_wins(filters: ModuleType) -> None:
    of = filters.hal_scale_attributes
    assert of(CLASSES, ["login"], ["mlx5_0/1", "mlx5_3/1"]) == {
        "pagepool": "2G",
        "verbsRdma": "enable",
        "verbsPorts": "mlx5_0/1 mlx5_3/1",
    }
    assert of(CLASSES, ["login"], []) == {"pagepool": "2G", "verbsRdma": None, "verbsPorts": None}
    own = [{"name": "x", "group": "x", "attributes": {"verbsRdma": "disable"}}]
    assert of(own, ["x"], ["mlx5_0/1"])["verbsRdma"] == "disable"


def test_a_class_is_parted_where_nodes_have_other_ports(filters: ModuleType) -> None:
    made = filters.hal_scale_classes(CLASSES, GROUPS, GROUPS["scale"], PORTS)
    assert {name: one["nodes"] for name, one in made.items()} == {
        "login": ["hal-login"],
        "clients": ["hal01", "hal02"],
        "clients without RDMA": ["hal03"],
    }
    assert made["clients"]["attributes"]["verbsPorts"] == "mlx5_0/1"
    assert made["clients without RDMA"]["attributes"]["verbsPorts"] is None
    assert list(filters.hal_scale_classes(CLASSES, GROUPS, GROUPS["scale"], None)) == ["login", "clients"]


def test_a_class_without_its_fields_is_refused(filters: ModuleType) -> None:
    with pytest.raises(AnsibleFilterError, match="write name, group and attributes"):
        filters.hal_scale_attributes([{"name": "x"}], ["x"], None)


def test_every_attribute_that_is_wrong_is_said(filters: ModuleType) -> None:
    assert len(filters.hal_scale_problems({"pagepol": "4G", "nsdBufSpace": 5, "autoload": True}, [])) == 2


def test_a_member_is_found_and_broken_output_is_an_error(filters: ModuleType, captures: Path) -> None:
    seen = (captures / "mmlscluster_ipoib.txt").read_text()
    assert filters.hal_scale_member(seen, "hal01", []) == "hal01"
    assert filters.hal_scale_member(seen, "hal02", ["10.64.2.102"]) == "node2-ib"
    assert filters.hal_scale_member(seen, "hal05", ["10.64.2.105"]) == ""
    with pytest.raises(AnsibleFilterError, match="does not belong to a GPFS cluster"):
        filters.hal_scale_member((captures / "mmlscluster_none.txt").read_text(), "hal01", [])


def test_addresses_are_those_of_the_networks_of_the_cluster(filters: ModuleType) -> None:
    """A BMC is another computer: it is known by the kind of its network, whatever that is called."""
    hosts = [
        {"name": name, "addresses": {"management": "10.64.0.1", "out-of-band": "10.64.1.1", "ipoib": "10.64.2.1"}}
        for name in ("hal01", "hal02")
    ]
    networks = {"management": {"kind": "ethernet"}, "out-of-band": {"kind": "bmc"}, "ipoib": {"kind": "infiniband"}}
    found = filters.hal_scale_addresses(hosts, ["hal02"], networks)
    assert found == {"hal02": ["10.64.2.1", "10.64.0.1"]}
