"""A fat tree of two spines, four leaves and 64 nodes, with two cables between each leaf and each spine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from hal_inventory.derive.slices import derive
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.restrict import only
from tests.unit.hal_inventory.conftest import ROOT, findings

FABRIC = """\
    leaf[1-4]:
      nodes: ["worker[01-16]", "worker[17-32]", "worker[33-48]", "worker[49-64]"]
      guid: "0x248a070300f82d[1-4]0"
      ports: 36
      cables: {"[33-36]": "spine[1-2]/[1-8]"}
    spine[1-2]: {switches: "leaf[1-4]", guid: "0x248a070300f82e[1-2]0", ports: 36}
"""
EDITS = {
    "worker[1-4]": "worker[01-64]",
    '"S[1-4]"': '"S[1-64]"',
    "[101-104]": "[101-164]",
    '"02:00:00:00:01:[01-04]"}': '"02:00:00:00:01:[01-64]"}\n'
    '    port_guids: {mlx5_0/1: "0x506b4b0300c2[1001-1064]"}\n    cables: {mlx5_0/1: "leaf[1-4]/[1-16]"}',
    "    edr1: {nodes: compute}\n": FABRIC,
}
PROGRAM = ROOT / "roles/infiniband/files/fabric.py"
TEMPLATE = ROOT / "roles/slurm/templates/topology.conf.j2"


@pytest.fixture(scope="module")
def text(small: str) -> str:
    """The model with the fat tree."""
    for old, new in EDITS.items():
        assert old in small
        small = small.replace(old, new)
    return small


@pytest.fixture(scope="module")
def site(text: str) -> Site:
    return load_bytes(text.encode(), "cluster.yml")


def topology_conf(site: Site) -> str:
    """Return topology.conf as Ansible renders it."""
    template = Environment(trim_blocks=True, keep_trailing_newline=True).from_string(TEMPLATE.read_text())
    return template.render(__slurm_switches=derive(site, "slurm.topology", {}))


def test_each_leaf_has_its_nodes_and_each_spine_all_leaves(site: Site) -> None:
    assert [(name, len(switch.nodes), switch.switches) for name, switch in site.switches.items()] == [
        *((f"leaf{at}", 16, ()) for at in range(1, 5)),
        *((f"spine{at}", 0, ("leaf1", "leaf2", "leaf3", "leaf4")) for at in (1, 2)),
    ]
    assert [switch.guid for switch in site.switches.values()][3:5] == ["0x248a070300f82d40", "0x248a070300f82e10"]


def test_the_fat_tree_of_the_documentation_is_this_one() -> None:
    shown = (ROOT / "docs/site-model.md").read_text()
    lines = [line.partition("  #")[0].rstrip() for line in shown.splitlines()]
    at = lines.index("    leaf[1-4]:")
    assert lines[at : at + 6] == FABRIC.replace("worker", "node").splitlines()


def test_two_cables_go_from_each_leaf_to_each_spine(site: Site) -> None:
    links = [(link.switch, link.port, link.other, link.other_port) for link in site.fabric_links]
    assert len(links) == len({link[:2] for link in links}) == len({link[2:] for link in links}) == 16
    assert [link for link in links if link[0] == "leaf2"] == [
        ("leaf2", 33, "spine1", 2),
        ("leaf2", 34, "spine1", 6),
        ("leaf2", 35, "spine2", 2),
        ("leaf2", 36, "spine2", 6),
    ]
    cables = derive(site, "fabric.cables", {})
    assert len(cables) == 64 + 16
    assert [(one["owner"], one["switch"], one["switch_port"]) for one in cables[15:17]] == [
        ("worker16", "leaf1", 16),
        ("worker17", "leaf2", 1),
    ]


def test_slurm_gets_a_tree_with_the_spines_as_one(site: Site) -> None:
    assert topology_conf(site).splitlines()[1:] == [
        "SwitchName=leaf1 Nodes=worker[01-16]",
        "SwitchName=leaf2 Nodes=worker[17-32]",
        "SwitchName=leaf3 Nodes=worker[33-48]",
        "SwitchName=leaf4 Nodes=worker[49-64]",
        "# spine1 stands for spine[1-2]: Slurm wants a tree, and these have switches below them in common.",
        "SwitchName=spine1 Switches=leaf[1-4]",
    ]


def test_a_part_of_it_is_a_tree_of_what_is_left(site: Site) -> None:
    assert topology_conf(only(site, "worker[01-02] or worker40")).splitlines()[1:] == [
        "SwitchName=leaf1 Nodes=worker[01-02]",
        "SwitchName=leaf3 Nodes=worker40",
        "# spine1 stands for spine[1-2]: Slurm wants a tree, and these have switches below them in common.",
        "SwitchName=spine1 Switches=leaf[1,3]",
    ]


def test_pods_below_cores_are_a_tree_of_three_levels(text: str) -> None:
    pods = (
        '    spine[1-2]: {switches: "leaf[1-2]"}\n    spine[3-4]: {switches: "leaf[3-4]"}\n'
        '    core1: {switches: "spine[1,3]"}\n    core2: {switches: "spine[2,4]"}\n'
    )
    without = text.replace('      cables: {"[33-36]": "spine[1-2]/[1-8]"}\n', "").replace(
        FABRIC.splitlines(True)[-1], pods
    )
    assert topology_conf(load_bytes(without.encode(), "x")).splitlines()[5:] == [
        "# spine1 stands for spine[1-2]: Slurm wants a tree, and these have switches below them in common.",
        "SwitchName=spine1 Switches=leaf[1-2]",
        "# spine3 stands for spine[3-4]: Slurm wants a tree, and these have switches below them in common.",
        "SwitchName=spine3 Switches=leaf[3-4]",
        "# core1 stands for core[1-2]: Slurm wants a tree, and these have switches below them in common.",
        "SwitchName=core1 Switches=spine[1,3]",
    ]


def test_the_topology_of_hal_is_as_it_was(hal: Site) -> None:
    assert topology_conf(hal) == (
        "# Written by the role slurm. From the fabric of the site model.\nSwitchName=edr1 Nodes=hal-test,hal[01-16]\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (', "worker[49-64]"]', "]", "61: fabric.switches.leaf[1-4].nodes: 3 entries for 4 switches; write a list of 4"),
        ('["worker[01-16]"', '["worker[01-17]"', None),
        ("82d[1-4]0", "82d[1-3]0", "62: {}.guid: 3 values for 4 switches; write a range or a list of 4"),
        ('"0x248a070300f82d[1-4]0"', '["0x248a070300f82d[1-3]0", x]', '62: {}.guid: "x" of leaf4 is not a GUID; write'),
        (
            "82e[1-2]0",
            "82d[2-3]0",
            "65: fabric.switches.spine[1-2].guid: GUID used twice: 0x248a070300f82d20 of spine1",
        ),
        (
            "/[1-8]",
            "/[1-9]",
            "64: {}.cables.[33-36]: 18 values for 4 ports of 4 switches; write a range or a list of 16",
        ),
        (
            "/[1-8]",
            "/[1-7,7]",
            "64: {}.cables.[33-36]: switch port used twice: spine1/7 of leaf4/34 (first by leaf3/34)",
        ),
        (
            "/[1-8]",
            "/[30-37]",
            '64: {}.cables.[33-36]: "spine1/37" of leaf4/34 does not exist; spine1 has ports 1 to 36',
        ),
        ("[33-36]", "[16-19]", "64: {}.cables.[16-19]: switch port used twice: leaf1/16 (first by worker16 in nodes."),
        ("leaf[1-4]/[1-16]", "leaf[1-4,5]/[1-16]", "46: nodes.worker[01-64].cables.mlx5_0/1: 80 values for 64 nodes"),
        (
            "leaf[1-4]/[1-16]",
            "leaf[2,1,3-4]/[1-16]",
            "46: nodes.worker[01-64].cables.mlx5_0/1: worker[01-16] are not among the nodes below leaf2:"
            " see fabric.switches.leaf[1-4].nodes",
        ),
        ("    leaf[1-4]:", "    leaf[1-4,2]:", "60: fabric.switches.leaf[1-4,2]: has leaf2 twice"),
        ("    leaf[1-4]:", "    leaf[4-1]:", '60: fabric.switches.leaf[4-1]: "leaf[4-1]": [4-1] expands to nothing'),
        ("    leaf[1-4]:", "    Leaf[1-4]:", '60: fabric.switches.Leaf[1-4]: "Leaf[1-4]" is not a usable name; write'),
        (
            "    spine[1-2]:",
            "    spine2: {nodes: login}\n    spine[1-2]:",
            "spine2 declared twice: first in fabric.switches.",
        ),
        (
            'switches: "leaf[1-4]"',
            'switches: "leaf[1-6]"',
            '65: fabric.switches.spine[1-2].switches: unknown switch "leaf[',
        ),
        (
            'switches: "leaf[1-4]"',
            'switches: "leaf[1-4],spine1"',
            "65: fabric.switches.spine[1-2]: spine1 is below itself",
        ),
        ('"worker[17-32]"', "nobody", '61: {}.nodes: unknown name "nobody"'),
    ],
)
def test_a_fault_of_a_fat_tree_is_one_line(text: str, old: str, new: str, expected: str | None) -> None:
    assert old in text
    found = findings(text.replace(old, new, 1))
    if expected is None:
        assert found == []
        return
    places = {line.partition(": ")[2].partition(": ")[0] for line in found}
    assert expected.format("fabric.switches.leaf[1-4]") in found[0], found
    assert len(places) == 1, found


# ---------------------------------------------------------------- what role infiniband compares
def discovered(site: Site) -> dict[tuple[str, int], tuple[str, int]]:
    """Return where every cable of the fabric leads, by both of its ends."""
    ends: dict[tuple[str, int], tuple[str, int]] = {}
    for port in site.fabric_ports:
        assert port.switch is not None
        assert port.switch_port is not None
        ends[port.switch, port.switch_port] = (port.guid, 1)
    for link in site.fabric_links:
        ends[link.switch, link.port] = (link.other, link.other_port)
        ends[link.other, link.other_port] = (link.switch, link.port)
    return ends


def differences(site: Site, folder: Path, ends: dict[tuple[str, int], tuple[str, int]]) -> list[str]:
    """Return what the role's program says where ibnetdiscover shows these cables."""
    lines = []
    for name, switch in site.switches.items():
        lines.append(f'Switch\t36 "S-{str(switch.guid)[2:]}"\t\t# "{name}" enhanced port 0 lid 1 lmc 0')
        for (_, port), (other, number) in sorted(end for end in ends.items() if end[0][0] == name):
            if other in site.switches:
                to = f'"S-{str(site.switches[other].guid)[2:]}"[{number}]\t\t# "{other}" lid 2 4xEDR'
            else:
                to = f'"H-{other[2:]}"[{number}]({other[2:]}) \t\t# "node mlx5_0" lid 3 4xEDR'
            lines.append(f"[{port}]\t{to}")
    said: dict[str, Any] = {
        "managers": [],
        "cables": derive(site, "fabric.cables", {}),
        "ports": derive(site, "fabric.ports", {}),
    }
    (folder / "shown").write_text("\n".join(lines))
    program = folder / "ibnetdiscover"
    program.write_text(f"#!/bin/sh\ncat '{folder}/shown'\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(said), "cables"],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_fabric_as_declared_has_no_differences(site: Site, tmp_path: Path) -> None:
    assert differences(site, tmp_path, discovered(site)) == []


def test_two_cables_of_a_leaf_that_changed_places_are_two_lines(site: Site, tmp_path: Path) -> None:
    ends = discovered(site)
    ends["leaf2", 34], ends["leaf2", 35] = ends["leaf2", 35], ends["leaf2", 34]
    ends["spine2", 2], ends["spine1", 6] = ("leaf2", 34), ("leaf2", 35)
    assert differences(site, tmp_path, ends) == [
        "leaf2/34 leads to spine2/2, declared spine1/6",
        "leaf2/35 leads to spine1/6, declared spine2/2",
    ]


def test_a_cable_that_is_out_is_one_line_and_the_other_to_the_same_spine_none(site: Site, tmp_path: Path) -> None:
    ends = discovered(site)
    del ends["leaf3", 36], ends["spine2", 7]
    assert differences(site, tmp_path, ends) == ["leaf3/36 leads to nothing, declared spine2/7"]
