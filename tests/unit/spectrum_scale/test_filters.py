"""Which node has which attributes, decided at the controller."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
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


def test_memory_is_refused_from_the_first_megabyte_that_is_not_there(filters: ModuleType) -> None:
    attributes = {"pagepool": "4G", "maxFilesToCache": 0, "maxStatCache": 0}
    assert filters.hal_scale_memory_problem(attributes, "8192", "50") == ""
    assert filters.hal_scale_memory_problem(attributes, 8191, 50) == (
        "needs 4096 MB (pagepool 4096 MB + maxFilesToCache x 10 KB 0 MB + maxStatCache x 400 B 0 MB);"
        " 50 % of its 8191 MB are 4095 MB"
    )


@pytest.mark.parametrize(
    ("version", "said"), [("5.0.1-9", True), ("5.0.2", False), ("5.0.2-1", False), ("4.2.3", True)]
)
def test_what_is_without_effect_before_5_0_2_is_said(filters: ModuleType, version: str, said: bool) -> None:
    remark = f"maxStatCache 1000 has no effect on Linux without LROC before 5.0.2, and this is {version}"
    assert filters.hal_scale_remark({"maxStatCache": 1000}, version) == (remark if said else "")
    assert filters.hal_scale_remark({"pagepool": "4G"}, version) == ""


def test_each_attribute_that_is_wrong_has_its_sentence_in_order(filters: ModuleType) -> None:
    wrong = {"pagepol": "4G", "nsdBufSpace": 5}
    first, second = filters.hal_scale_problems(wrong, [])
    assert ("nsdBufSpace" in first, "pagepol" in second) == (True, True)
    assert filters.hal_scale_problems(wrong, ["pagepol"]) == [first]


def test_a_class_of_another_shape_is_named_with_what_it_has(filters: ModuleType) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        filters.hal_scale_attributes([*CLASSES, {"name": "x", "group": "y"}], ["other"], None)
    assert caught.value.message == ("spectrum_scale_classes: write name, group and attributes, not ['group', 'name']")


def test_the_first_of_two_classes_of_a_group_counts(filters: ModuleType) -> None:
    two = [*CLASSES, {"name": "late", "group": "scale", "attributes": {"pagepool": "8G"}}]
    made = filters.hal_scale_classes(two, GROUPS, ["hal01", "nobody"], None)
    assert {name: one["nodes"] for name, one in made.items()} == {"clients": ["hal01"], "others": ["nobody"]}
    assert made["others"]["attributes"] == {}


def test_every_filter_has_its_name(filters: ModuleType) -> None:
    found = filters.FilterModule().filters()
    assert {name: one.__name__ for name, one in found.items()} == {name: name for name in found}
    assert len(found) == 7


def test_a_part_of_a_class_is_called_by_its_ports(filters: ModuleType) -> None:
    ports = {**PORTS, "hal03": ["mlx5_1/1", "mlx5_3/1"]}
    made = filters.hal_scale_classes(CLASSES, GROUPS, ["hal01", "hal03"], ports)
    assert {name: one["nodes"] for name, one in made.items()} == {
        "clients": ["hal01"],
        "clients mlx5_1/1 mlx5_3/1": ["hal03"],
    }


def test_the_filters_find_what_is_shipped_to_nodes_by_themselves(tmp_path: Path) -> None:
    """In a Python of its own: here other tests have shown the way already."""
    loaded = [sys.executable, "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", str(SOURCE)]
    done = subprocess.run(loaded, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
