"""The container in which firmware runs: how it is plugged in, that its programs end, and that nothing of it stays."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from bmc import hardware, place
from bmc.dhcp_client import Answer, told
from bmc.hardware import VirtualNode
from bmc.machine import Machine
from bmc.network import Network
from bmc.place import InterruptedBootError, TooSlowError, container
from bmc.spec import Boot
from testbed.errors import VirtualNodesError

from tests.unit.virtual_hal.bmc.emulated import spec, wait_until
from tests.unit.virtual_hal.bmc.played_place import MAC, SERVER, Played, lease

PODMAN = """#!/bin/sh
# Plays podman: writes down what it is called with; programs in a container run here.
echo "$@" >>{folder}/called
case $1 in
  mount) echo /var/merged ;;
  umount) echo "Error: no such container" >&2; exit 125 ;;
  run) [ ! -e {folder}/broken ] || {{ echo "Error: no such image" >&2; exit 125; }} ;;
  exec) shift 3; exec "$@" ;;
esac
"""
BOOT = Boot(arch="ppc64le", kernel="4.18", image="node:x", network="mini-management", address="10.1.0.105")


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what plays podman, and a place that plays the kernel's forwarding."""
    program = tmp_path / "podman"
    program.write_text(PODMAN.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "forwarding").write_text("0\n")
    for module in (hardware, place):
        monkeypatch.setattr(module, "PODMAN", program)
    monkeypatch.setattr(hardware, "FORWARDING", str(tmp_path / "forwarding"))
    return tmp_path


@pytest.fixture
def machine(podman: Path) -> Machine:
    """An AC922."""
    return Machine(spec("hal05", "openbmc", 5, boot=BOOT), podman / "state", VirtualNode("mini"))


def called(podman: Path) -> list[str]:
    return (podman / "called").read_text().splitlines()


def test_it_has_the_nodes_port_and_disk_and_is_found_by_destroy(podman: Path, machine: Machine) -> None:
    with container(VirtualNode("mini"), machine, BOOT):
        made = next(line for line in called(podman) if line.startswith("run ")).split()
    for word in (
        "--name=mini-hal05-firmware",
        "--label=hal.virtual=mini",  # what destroy finds containers by
        "--label=hal.node=hal05-firmware",
        "--network=mini-management:ip=10.1.0.105,mac=02:48:41:4c:02:05,interface_name=eth0",
        "--volume=/var/merged:/mnt/sysimage",
        "--rm",
    ):
        assert word in made
    assert made[-3:] == ["node:x", "sleep", "infinity"]
    remove, umount = "rm --force --ignore --time=0 mini-hal05-firmware", "umount mini-hal05"
    before, after = [remove, umount, "mount mini-hal05"], [remove, umount]
    assert called(podman)[:3] == before, "one that was left is taken away first"
    assert called(podman)[-2:] == after


def test_one_that_cannot_be_made_leaves_no_disk_mounted(podman: Path, machine: Machine) -> None:
    (podman / "broken").touch()
    with pytest.raises(VirtualNodesError, match="no such image"), container(VirtualNode("mini"), machine, BOOT):
        raise AssertionError("it is not there")
    assert called(podman)[-1] == "umount mini-hal05"


def test_programs_are_given_their_input_and_told_by_status_output_and_errors(
    podman: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "LOOK_SECONDS", 0.001)  # so that it looks before all is read
    with container(VirtualNode("mini"), machine, BOOT) as made:
        done = made.run(["sh", "-c", "cat; echo wrong >&2; exit 3"], stdin=b"x" * 200_000)
    assert (done.status, len(done.out), done.errors, done.last_words) == (3, 200_000, "wrong\n", "wrong")


def test_a_program_ends_when_the_machine_is_switched_off(podman: Path, machine: Machine) -> None:
    raised: list[type] = []
    reached = podman / "reached"

    def run() -> None:
        try:
            made.run(["sh", "-c", f"touch {reached}; exec sleep 600"])
        except InterruptedBootError as error:
            raised.append(type(error))

    with container(VirtualNode("mini"), machine, BOOT) as made:
        thread = threading.Thread(target=run)
        thread.start()
        wait_until(reached.exists)
        machine.interrupted.set()
        thread.join(60)
    assert raised == [InterruptedBootError]


def test_a_program_that_takes_too_long_is_named(podman: Path, machine: Machine) -> None:
    with (
        container(VirtualNode("mini"), machine, BOOT) as made,
        pytest.raises(TooSlowError, match=r"^sleep took longer than 0\.3 s$"),
    ):
        made.run(["sleep", "600"], seconds=0.3)


def test_an_answer_of_dhcp_comes_as_it_was_given() -> None:
    options = {54: bytes([10, 1, 0, 11]), 1: bytes([255, 255, 254, 0]), 209: b"http://10.1.0.11/boot/hal05"}
    answer = Answer(5, 1, MAC, "10.1.0.105", SERVER, "undionly.kpxe", options)
    found = json.loads(told(answer))
    assert (found["netmask"], found["file"], found["options"]["209"]) == (
        "255.255.254.0",
        "undionly.kpxe",
        "http://10.1.0.11/boot/hal05",
    )
    place = Played({("14", ""): found})
    given = Network(place, MAC).ask(14)
    assert given is not None
    assert (given.address, given.options[209], given.server) == ("10.1.0.105", "http://10.1.0.11/boot/hal05", SERVER)
    assert Network(Played({("0", ""): lease()}), MAC).ask(14) is None
