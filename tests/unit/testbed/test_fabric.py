"""The emulated fabric is made from the model's cables, and so is what nodes need to be in it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed import fabric

PROGRAM = Path(__file__).parents[3] / "molecule/shared/fabric/virtual-fabric"
EDR1 = {"name": "edr1", "guid": "0x0248414c03010000", "ports": 36}
SPINE = {"name": "spine", "guid": "0x0248414c03020000", "ports": 36}


def cable(owner: str, port: str, switch_port: int, guid: str, rate: int | None = 100) -> dict[str, Any]:
    end = {"switch": "edr1", "switch_guid": EDR1["guid"], "switch_port": switch_port}
    return {**end, "owner": owner, "port": port, "guid": guid, "rate_gbps": rate}


@pytest.fixture
def small() -> fabric.Fabric:
    """A node, an array with two ports, and a second switch."""
    return fabric.Fabric.model_validate(
        {
            "switches": [EDR1, SPINE],
            "cables": [
                cable("hal01", "mlx5_0/1", 1, "0x0248414c01010001"),
                cable("flash1", "mlx5_0/1", 25, "0x0248414c02010001"),
                cable("flash1", "mlx5_1/1", 26, "0x0248414c02010101", 56),
                cable("spine", "3", 36, str(SPINE["guid"]), None),
            ],
        }
    )


@pytest.fixture(scope="module")
def topology() -> Callable[[dict[str, Any]], str]:
    """What the program in the container makes of it."""
    made: Callable[[dict[str, Any]], str] = runpy.run_path(str(PROGRAM), run_name="virtual_fabric")["topology"]
    return made


def test_ibsim_gets_every_cable_at_both_of_its_ends(
    small: fabric.Fabric, topology: Callable[[dict[str, Any]], str]
) -> None:
    assert topology(fabric.model(small, ["hal01"], "10.64.0.254")).splitlines() == [
        "width=3",
        "speed=7",
        "extspeed=0",
        "",
        "switchguid=0x0248414c03010000",
        'Switch 36 "edr1" # "edr1"',
        '[1] "hal01"[1] e=3',
        '[25] "flash1-mlx5_0"[1] e=3',
        '[26] "flash1-mlx5_1"[1] e=1',
        '[36] "spine"[3] e=3',
        "",
        "switchguid=0x0248414c03020000",
        'Switch 36 "spine" # "spine"',
        '[3] "edr1"[36] e=3',
        "",
        "caguid=0x0248414c01010000",  # ibsim gives the port the next number
        'Ca 1 "hal01" # "hal01 mlx5_0"',
        '[1] "edr1"[1] e=3',
        "",
        "caguid=0x0248414c02010000",
        'Ca 1 "flash1-mlx5_0" # "flash1 mlx5_0"',
        '[1] "edr1"[25] e=3',
        "",
        "caguid=0x0248414c02010100",
        'Ca 1 "flash1-mlx5_1" # "flash1 mlx5_1"',
        '[1] "edr1"[26] e=1',
    ]


def test_a_node_knows_where_the_fabric_is_and_who_it_is(small: fabric.Fabric) -> None:
    assert fabric.node_file(small, "hal01", "10.64.0.254") == (
        "IBSIM_SERVER_NAME=10.64.0.254\nIBSIM_SERVER_PORT=7070\nSIM_HOST=hal01\nDEVICE=mlx5_0\n"
    )
    assert fabric.node_file(small, "hal-mgmt2", "10.64.0.254") is None


def test_the_fabric_has_the_last_address_that_nobody_has() -> None:
    assert fabric.address("10.64.0.0/24", ["10.64.0.1"]) == "10.64.0.254"
    assert fabric.address("10.64.0.0/24", ["10.64.0.254", "10.64.0.253"]) == "10.64.0.252"
