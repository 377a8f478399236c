"""Which nodes nobody may erase: every refusal, and that none is lost beside others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.guards import named, refuse, refuse_left_alone
from hal_inventory.compiled import slice_of

ROOT = Path(__file__).resolve().parents[4]
EVERY = ["hal-login", "hal01", "hal02", "hal03"]


def node(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "role": "compute",
        "profile": "ac922",
        "reimage": "allowed",
        "bmc": {"kind": "openbmc", "address": "10.1.1.5"},
        "serial": "S-1",
    }
    return given | changes


def refusal(
    nodes: dict[str, dict[str, Any]], placeholders: dict[str, list[str]] | None = None, servers: tuple[str, ...] = ()
) -> str:
    with pytest.raises(ReimageError) as refused:
        refuse(nodes, placeholders or {}, servers)
    return str(refused.value)


@pytest.mark.parametrize("role", ["compute", "test"])
def test_a_node_that_may_be_reimaged_passes(role: str) -> None:
    refuse({"hal05": node(role=role)}, {"hal05": ["cables.mlx5_0/1", "port_guids.mlx5_0/1"]}, ["hal-mgmt1"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"role": "login"}, "hal05: is a login node; compute and test nodes are reimaged, and no others"),
        ({"role": "management"}, "hal05: is a management node; compute and test nodes are reimaged, and no others"),
        ({"role": "data"}, "hal05: is a data node; compute and test nodes are reimaged, and no others"),
        ({"role": "transfer"}, "hal05: is a transfer node; compute and test nodes are reimaged, and no others"),
        ({"reimage": "refused"}, "hal05: its profile ac922 says reimage: refused"),
        ({"bmc": None}, "hal05: has no BMC in cluster.yml"),
        ({"serial": None}, "hal05: has no serial number in cluster.yml, by which its BMC is known"),
        ({"serial": ""}, "hal05: has no serial number in cluster.yml, by which its BMC is known"),
    ],
)
def test_what_keeps_a_node_from_being_erased_is_said(changes: dict[str, Any], said: str) -> None:
    assert refusal({"hal05": node(**changes)}) == said


def test_a_node_that_the_reimage_stands_on_is_refused_whatever_its_role() -> None:
    assert refusal({"hal05": node()}, servers=("hal05",)) == "hal05: the reimage itself stands on it"


@pytest.mark.parametrize("field", ["serial", "macs.management", "addresses.bmc", "disks.system"])
def test_a_placeholder_by_which_a_machine_or_disk_is_known_stops_a_real_site_and_no_virtual_one(field: str) -> None:
    placeholders = {"hal05": [field, "cables.mlx5_0/1"]}
    assert refusal({"hal05": node(virtual=False)}, placeholders) == (
        f"hal05: placeholders in cluster.yml: {field}; put the machine's own there"
    )
    refuse({"hal05": node(virtual=True)}, placeholders, ())


def test_the_placeholders_of_hals_own_model_are_such(tmp_path: Path) -> None:
    """As slice ``boot`` names them: a guard that looks for other names never refuses."""
    (tmp_path / "hal.yml").write_text(f"plugin: hal\ncluster: {ROOT / 'inventory/hal/cluster.yml'}\n")
    boot = {one["name"]: one for one in slice_of(tmp_path / "hal.yml", "boot", {})}
    said = refusal({"hal05": node(virtual=False)}, {"hal05": boot["hal05"]["placeholders"]})
    for field in ("serial", "macs.management", "addresses.management", "disks.system"):
        assert field in said


def test_nodes_with_the_same_reason_are_one_line_and_a_node_with_several_is_in_each() -> None:
    nodes = {
        "hal01": node(bmc=None),
        "hal02": node(bmc=None, serial=None),
        "hal03": node(),
        "hal-login": node(role="login", reimage="refused", profile="lc921"),
    }
    assert refusal(nodes, servers=("hal-login",)).splitlines() == [
        "hal[01-02]: has no BMC in cluster.yml",
        "hal02: has no serial number in cluster.yml, by which its BMC is known",
        "hal-login: is a login node; compute and test nodes are reimaged, and no others",
        "hal-login: its profile lc921 says reimage: refused",
        "hal-login: the reimage itself stands on it",
    ]


FAULTS: list[dict[str, Any]] = [
    {"role": "login"},
    {"role": "management"},
    {"role": "data"},
    {"role": "transfer"},
    {"role": "Compute"},
    {"reimage": "refused"},
    {"reimage": "perhaps"},
    {"bmc": None},
    {"serial": ""},
]


@given(
    st.dictionaries(st.sampled_from([f"hal{n:02}" for n in range(1, 17)]), st.sampled_from([{}, *FAULTS]), min_size=1),
    st.sets(st.sampled_from([f"hal{n:02}" for n in range(1, 17)]), max_size=2),
)
def test_no_set_of_nodes_with_one_that_may_not_ever_passes(
    faults: dict[str, dict[str, Any]], servers: set[str]
) -> None:
    nodes = {name: node(**fault) for name, fault in faults.items()}
    wrong = {name for name, fault in faults.items() if fault} | (servers & set(nodes))
    if not wrong:
        refuse(nodes, {}, servers)
        return
    with pytest.raises(ReimageError):
        refuse(nodes, {}, servers)


# --- names


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_without_a_name_it_says_how_to_give_one(blank: str) -> None:
    with pytest.raises(ReimageError, match=r"^name the nodes: -e reimage_nodes=hal05$"):
        named(blank, [], EVERY)


@pytest.mark.parametrize("wide", ["all", " all ", "ALL", "*", "hal*", "hal0?", "hal01,*", "all and not hal01"])
def test_what_stands_for_whatever_there_is_is_refused_even_where_it_finds_one_node(wide: str) -> None:
    with pytest.raises(ReimageError, match=r"^reimage_nodes is .*: name nodes, such as hal05 or hal\[05-08\]$"):
        named(wide, ["hal01"], EVERY)


def test_no_node_and_every_node_are_refused() -> None:
    with pytest.raises(ReimageError, match=r"^reimage_nodes is gpu and login: this selects no node$"):
        named("gpu and login", [], EVERY)
    with pytest.raises(ReimageError, match=r"^reimage_nodes is compute or login: every node of the site"):
        named("compute or login", EVERY, EVERY)


def test_nodes_are_those_that_were_found() -> None:
    assert named(" hal[02-03]", ["hal02", "hal03"], EVERY) == ["hal02", "hal03"]


def test_a_node_on_which_not_all_of_its_roles_act_is_refused_with_those_that_nobody_would_roll_out() -> None:
    groups = {name: ["compute", "gpu", "time", "slurm", "ssh"] for name in ("hal05", "hal06", "hal07")}
    refuse_left_alone(groups, dict.fromkeys(groups))
    refuse_left_alone(groups, {"hal05": ["ssh", "slurm", "time", "munge"]})
    with pytest.raises(ReimageError) as error:
        refuse_left_alone(groups, {"hal05": ["ssh"], "hal06": ["ssh"], "hal07": []})
    end = ". What others made of them would be gone, and no rollout makes it. Take them over first"
    assert str(error.value).splitlines() == [
        f"hal07: not managed there (managed_roles): slurm, ssh, time{end}",
        f"hal[05-06]: not managed there (managed_roles): slurm, time{end}",
    ]
