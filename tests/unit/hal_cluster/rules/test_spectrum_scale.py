"""Which node has which attributes, decided at the controller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rules import spectrum_scale
from hal_cluster.rules.errors import RuleError
from tests.unit.hal_node.scale.conftest import captures as captures  # a fixture

SOURCE = Path(__file__).resolve().parents[4] / "plugins" / "filter" / "hal_scale.py"
CLASSES: list[dict[str, Any]] = [
    {"name": "login", "group": "login", "attributes": {"pagepool": "2G"}},
    {"name": "clients", "group": "scale", "attributes": {"pagepool": "4G", "workerThreads": 512}},
]
GROUPS = {"login": ["hal-login"], "scale": ["hal-login", "hal01", "hal02", "hal03"]}
PORTS = {"hal01": ["mlx5_0/1"], "hal02": ["mlx5_0/1"], "hal-login": ["mlx5_0/1"]}


def test_the_first_class_that_fits_counts() -> None:
    assert spectrum_scale.attributes_of(CLASSES, ["login", "scale"], None) == {"pagepool": "2G"}
    assert spectrum_scale.attributes_of(CLASSES, ["scale"], None)["workerThreads"] == 512
    assert spectrum_scale.attributes_of(CLASSES, ["other"], None) == {}


def test_rdma_goes_by_the_ports_of_the_model_and_a_class_wins() -> None:
    of = spectrum_scale.attributes_of
    assert of(CLASSES, ["login"], ["mlx5_0/1", "mlx5_3/1"]) == {
        "pagepool": "2G",
        "verbsRdma": "enable",
        "verbsPorts": "mlx5_0/1 mlx5_3/1",
    }
    assert of(CLASSES, ["login"], []) == {"pagepool": "2G", "verbsRdma": None, "verbsPorts": None}
    own = [{"name": "x", "group": "x", "attributes": {"verbsRdma": "disable"}}]
    assert of(own, ["x"], ["mlx5_0/1"])["verbsRdma"] == "disable"


def test_a_class_is_parted_where_nodes_have_other_ports() -> None:
    made = spectrum_scale.classes_of(CLASSES, GROUPS, GROUPS["scale"], PORTS)
    assert {name: one["nodes"] for name, one in made.items()} == {
        "login": ["hal-login"],
        "clients": ["hal01", "hal02"],
        "clients without RDMA": ["hal03"],
    }
    assert made["clients"]["attributes"]["verbsPorts"] == "mlx5_0/1"
    assert made["clients without RDMA"]["attributes"]["verbsPorts"] is None
    assert list(spectrum_scale.classes_of(CLASSES, GROUPS, GROUPS["scale"], None)) == ["login", "clients"]


def test_a_class_without_its_fields_is_refused() -> None:
    with pytest.raises(RuleError, match="write name, group and attributes"):
        spectrum_scale.attributes_of([{"name": "x"}], ["x"], None)


def test_every_attribute_that_is_wrong_is_said() -> None:
    assert len(spectrum_scale.problems({"pagepol": "4G", "nsdBufSpace": 5, "autoload": True}, [])) == 2


def test_a_member_is_found_and_broken_output_is_an_error(captures: Path) -> None:
    seen = (captures / "mmlscluster_ipoib.txt").read_text()
    assert spectrum_scale.member(seen, "hal01", []) == "hal01"
    assert spectrum_scale.member(seen, "hal02", ["10.64.2.102"]) == "node2-ib"
    assert spectrum_scale.member(seen, "hal05", ["10.64.2.105"]) == ""
    with pytest.raises(RuleError, match="does not belong to a GPFS cluster"):
        spectrum_scale.member((captures / "mmlscluster_none.txt").read_text(), "hal01", [])


def test_addresses_are_those_of_the_networks_of_the_cluster() -> None:
    """A BMC is another computer: it is known by the kind of its network, whatever that is called."""
    hosts = [
        {"name": name, "addresses": {"management": "10.64.0.1", "out-of-band": "10.64.1.1", "ipoib": "10.64.2.1"}}
        for name in ("hal01", "hal02")
    ]
    networks = {"management": {"kind": "ethernet"}, "out-of-band": {"kind": "bmc"}, "ipoib": {"kind": "infiniband"}}
    found = spectrum_scale.addresses(hosts, ["hal02"], networks)
    assert found == {"hal02": ["10.64.2.1", "10.64.0.1"]}


def test_memory_is_refused_from_the_first_megabyte_that_is_not_there() -> None:
    attributes = {"pagepool": "4G", "maxFilesToCache": 0, "maxStatCache": 0}
    assert spectrum_scale.memory_problem(attributes, "8192", "50") == ""
    assert spectrum_scale.memory_problem(attributes, 8191, 50) == (
        "needs 4096 MB (pagepool 4096 MB + maxFilesToCache x 10 KB 0 MB + maxStatCache x 400 B 0 MB);"
        " 50 % of its 8191 MB are 4095 MB"
    )


@pytest.mark.parametrize(
    ("version", "said"), [("5.0.1-9", True), ("5.0.2", False), ("5.0.2-1", False), ("4.2.3", True)]
)
def test_what_is_without_effect_before_5_0_2_is_said(version: str, said: bool) -> None:
    remark = f"maxStatCache 1000 has no effect on Linux without LROC before 5.0.2, and this is {version}"
    assert spectrum_scale.remark({"maxStatCache": 1000}, version) == (remark if said else "")
    assert spectrum_scale.remark({"pagepool": "4G"}, version) == ""


def test_each_attribute_that_is_wrong_has_its_sentence_in_order() -> None:
    wrong = {"pagepol": "4G", "nsdBufSpace": 5}
    first, second = spectrum_scale.problems(wrong, [])
    assert ("nsdBufSpace" in first, "pagepol" in second) == (True, True)
    assert spectrum_scale.problems(wrong, ["pagepol"]) == [first]


def test_a_class_of_another_shape_is_named_with_what_it_has() -> None:
    with pytest.raises(RuleError) as caught:
        spectrum_scale.attributes_of([*CLASSES, {"name": "x", "group": "y"}], ["other"], None)
    assert str(caught.value) == ("spectrum_scale_classes: write name, group and attributes, not ['group', 'name']")


def test_the_first_of_two_classes_of_a_group_counts() -> None:
    two = [*CLASSES, {"name": "late", "group": "scale", "attributes": {"pagepool": "8G"}}]
    made = spectrum_scale.classes_of(two, GROUPS, ["hal01", "nobody"], None)
    assert {name: one["nodes"] for name, one in made.items()} == {"clients": ["hal01"], "others": ["nobody"]}
    assert made["others"]["attributes"] == {}


def test_a_part_of_a_class_is_called_by_its_ports() -> None:
    ports = {**PORTS, "hal03": ["mlx5_1/1", "mlx5_3/1"]}
    made = spectrum_scale.classes_of(CLASSES, GROUPS, ["hal01", "hal03"], ports)
    assert {name: one["nodes"] for name, one in made.items()} == {
        "clients": ["hal01"],
        "clients mlx5_1/1 mlx5_3/1": ["hal03"],
    }


def test_the_filters_find_what_is_shipped_to_nodes_by_themselves(tmp_path: Path) -> None:
    """In a Python of its own: here other tests have shown the way already."""
    loaded = [sys.executable, "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", str(SOURCE)]
    done = subprocess.run(loaded, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
