"""The emulated fabric is made from the model's cables, and so is what nodes need to be in it."""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabric import relay
from testbed import fabric

from tests.unit.virtual_hal.fabric.world import DISCONNECT, FRONT, HANGS, bound, control

PROGRAM = Path(__file__).parents[3] / "molecule/virtual_hal/fabric/virtual-fabric"
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
def program() -> dict[str, Any]:
    """The program in the container."""
    return runpy.run_path(str(PROGRAM), run_name="virtual_fabric")


@pytest.fixture(scope="module")
def topology(program: dict[str, Any]) -> Callable[[dict[str, Any]], str]:
    """What it makes of the cables."""
    made: Callable[[dict[str, Any]], str] = program["topology"]
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


def test_the_container_has_the_relay_where_the_program_starts_it(small: fabric.Fabric, program: dict[str, Any]) -> None:
    _, relay = fabric.files(small, ["hal01"], "10.64.0.254")[program["RELAY"].lstrip("/")]
    assert relay == (PROGRAM.parent / "relay.py").read_bytes()
    assert program["PORT"] == fabric.PORT


def test_a_node_knows_where_the_fabric_is_and_who_it_is(small: fabric.Fabric) -> None:
    assert fabric.node_file(small, "hal01", "10.64.0.254") == (
        "IBSIM_SERVER_NAME=10.64.0.254\nIBSIM_SERVER_PORT=7070\nSIM_HOST=hal01\nDEVICE=mlx5_0\n"
    )
    assert fabric.node_file(small, "hal-mgmt2", "10.64.0.254") is None


def test_the_fabric_has_the_last_address_that_nobody_has() -> None:
    assert fabric.address("10.64.0.0/24", ["10.64.0.1"]) == "10.64.0.254"
    assert fabric.address("10.64.0.0/24", ["10.64.0.254", "10.64.0.253"]) == "10.64.0.252"


class OneLink:
    """A link of 100 Gb/s in ibsim. Settings are lost at first; later a subnet manager may undo one."""

    unread, refused = 0, Exception()

    def __init__(self, lost: int, undone_at_look: int | None = None) -> None:
        self.cables = {"hal01": {"description": "hal01 mlx5_0", "bits": 3}}
        self.slow: dict[str, int] = {}
        self.rates: dict[str, list[str]] = {}
        self.lost, self.undone, self.looks = lost, undone_at_look, 0
        self.speed = "25.78125"

    def rate(self, _name: str) -> list[str]:
        self.looks += 1
        if self.looks == self.unread:
            raise self.refused
        if self.looks == self.undone:
            self.speed = "25.78125"
        return ["LinkWidthActive:.................4X", f"LinkSpeedExtActive:..............{self.speed} Gbps"] * 2

    def port_state(self, _name: str, setting: str, value: str) -> None:
        self.lost -= 1
        if self.lost < 0 and setting == "espeed":
            self.speed = {"1": "14.0625", "3": "25.78125"}[value]


def a_second_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by sleeping alone."""
    slept = [0.0]
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(slept))


@pytest.mark.parametrize(("lost", "undone"), [(0, None), (1, None), (3, None), (0, 4), (1, 5)])
def test_a_link_is_slow_when_the_program_says_so(
    program: dict[str, Any], monkeypatch: pytest.MonkeyPatch, lost: int, undone: int | None
) -> None:
    a_second_is_nothing(monkeypatch)
    link = OneLink(lost, undone)
    program["slow"](link, "hal01", 56)
    assert (link.speed, link.slow) == ("14.0625", {"hal01": 56})
    assert link.looks > (undone or 0), "it did not look long enough"
    link.lost, link.undone = lost, None
    program["faster"](link)
    assert link.speed == "25.78125"


def test_a_link_whose_rate_cannot_be_changed_is_named(program: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    a_second_is_nothing(monkeypatch)
    with pytest.raises(program["Refused"], match=r"the rate could not be changed: hal01 mlx5_0"):
        program["slow"](OneLink(lost=1000), "hal01", 56)


def test_an_answer_that_was_lost_is_asked_for_again(program: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    a_second_is_nothing(monkeypatch)
    link = OneLink(lost=0)
    link.unread, link.refused = 3, program["Refused"]("cannot be read")
    program["slow"](link, "hal01", 56)
    assert link.speed == "14.0625"
    assert link.looks > link.unread


@pytest.mark.timeout(HANGS)
def test_it_says_when_it_is_ready() -> None:
    with contextlib.closing(bound((relay.HERE, 0))) as ibsim, contextlib.closing(bound((relay.HERE, 0))) as program:
        command = [sys.executable, relay.__file__, FRONT[0], str(FRONT[1]), str(ibsim.getsockname()[1])]
        running = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert running.stdout
            assert running.stdout.readline() == b"ready\n"
            program.sendto(control(DISCONNECT), FRONT)
            assert ibsim.recv(512) == control(DISCONNECT)
        finally:
            running.kill()
            running.communicate()


def fabric_with(tmp_path: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Let the fabric start a relay that is this code, and then serve on."""
    (tmp_path / "relay").write_text(code)
    lines = [
        "import runpy, sys, time",
        "program = runpy.run_path(sys.argv[1], run_name='virtual_fabric')",
        "program['relay'].__globals__['RELAY'] = sys.argv[2]",
        "program['relay']('127.0.0.1')",
        f"time.sleep({2 * HANGS})",
    ]
    command = [sys.executable, "-c", "\n".join(lines), str(PROGRAM), str(tmp_path / "relay")]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)


def test_the_fabric_ends_with_its_relay(tmp_path: Path) -> None:
    ended = fabric_with(tmp_path, "print('ready', flush=True)\nraise SystemExit(3)")
    assert (ended.returncode, ended.stderr) == (1, "the relay to ibsim ended, with status 3\n")


def test_the_fabric_does_not_start_without_its_relay(tmp_path: Path) -> None:
    ended = fabric_with(tmp_path, "raise SystemExit('no such address')")
    assert ended.returncode == 1
    assert "no such address\n" in ended.stderr
    assert "the relay to ibsim did not start: " in ended.stderr
