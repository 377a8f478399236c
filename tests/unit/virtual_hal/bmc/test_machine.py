"""A machine's memory: what lasts, what is bounded, what two processes see; and its hardware, as commands of podman."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bmc import hardware
from bmc.ends import Ends
from bmc.hardware import VirtualNode
from bmc.machine import Machine, PasswordRefusedError
from bmc.state import CONSOLE_BYTES, Enabled, Target
from hypothesis import given
from hypothesis import strategies as st
from testbed.errors import VirtualNodesError

from tests.unit.virtual_hal.bmc.emulated import spec, wait_until


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without hardware."""
    return Machine(spec("hal01", "openbmc", 1), tmp_path / "state")


def test_it_is_taken_up_where_it_was_left(machine: Machine) -> None:
    machine.set_override("disk", "continuous")
    machine.set_power("On")
    machine.set_password("root", "Tram-4-lantern")
    again = Machine(machine.spec, machine.kept.path.parent)
    assert again.power()
    assert again.override().target == "disk"
    assert again.user("root", "Tram-4-lantern") is not None
    assert again.user("root", "0penBmc") is None


def test_nobody_else_can_read_it(machine: Machine) -> None:
    machine.set_power("On")
    assert stat.S_IMODE(machine.kept.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.kept.path.parent.stat().st_mode) == 0o700


def test_a_damaged_file_is_named_and_its_secret_is_not(machine: Machine) -> None:
    machine.kept.path.write_text('{"users": {"root": {"password": ["0penBmc"]}}}')
    with pytest.raises(VirtualNodesError) as raised:
        machine.power()
    assert str(raised.value).startswith(f"{machine.kept.path}: users.root.password: ")
    assert "0penBmc" not in str(raised.value)
    machine.kept.path.unlink()
    with pytest.raises(VirtualNodesError, match=r"hal01\.json: No such file or directory"):
        machine.power()


def _print_lines(folder: Path, mark: str, count: int) -> None:
    other = Machine(spec("hal01", "openbmc", 1), folder)
    for _ in range(count):
        other.write_console(mark)


def test_two_processes_lose_nothing_of_each_other(machine: Machine) -> None:
    context = multiprocessing.get_context("spawn")  # a fork of this one, which has threads, may wait for ever
    folder = machine.kept.path.parent
    writers = [context.Process(target=_print_lines, args=(folder, mark, 40)) for mark in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert sorted(machine.console()) == ["a"] * 40 + ["b"] * 40


@given(parts=st.lists(st.text(max_size=200), max_size=12), filler=st.integers(0, CONSOLE_BYTES + 10))
def test_the_console_keeps_the_last_of_what_was_printed(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], filler: int
) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), tmp_path_factory.mktemp("console"))
    printed = "x" * filler
    machine.write_console(printed)
    seen, heard = machine.printed_after(0, 0)
    for part in parts:
        printed += part
        machine.write_console(part)
        seen, new = machine.printed_after(seen, 0)
        heard += new
    kept = machine.console()
    assert len(kept.encode()) <= CONSOLE_BYTES
    assert printed.endswith(kept)
    assert len(kept.encode()) > min(len(printed.encode()), CONSOLE_BYTES) - 4  # a character is not cut in two
    assert seen == len(printed.encode())
    if filler <= CONSOLE_BYTES:
        assert heard.decode() == printed


@pytest.mark.parametrize(
    ("action", "on_before", "on_after", "starts"),
    [
        ("On", False, True, 1),
        ("On", True, True, 0),
        ("ForceOff", True, False, 0),
        ("ForceOff", False, False, 0),
        ("GracefulShutdown", True, False, 0),
        ("ForceRestart", True, True, 1),
        ("ForceRestart", False, True, 1),
        ("GracefulRestart", True, True, 1),
    ],
)
def test_what_a_power_action_does(machine: Machine, action: Any, on_before: bool, on_after: bool, starts: int) -> None:
    with machine.kept.change() as state:
        state.power = on_before
    machine.set_power(action)
    assert (machine.power(), machine.kept.read().starts) == (on_after, starts)


@pytest.mark.parametrize(("target", "in_firmware"), [("network", True), ("setup", True), ("disk", False)])
def test_without_a_network_to_start_from_it_stays_in_the_firmware(
    machine: Machine, target: Target, in_firmware: bool
) -> None:
    machine.set_override(target, "once")
    machine.set_power("On")
    assert (machine.power(), machine.kept.read().in_firmware) == (True, in_firmware)


TARGETS: tuple[Target, ...] = ("none", "network", "disk", "setup")
KEPT: tuple[Enabled, ...] = ("disabled", "once", "continuous")


@given(steps=st.lists(st.none() | st.tuples(st.sampled_from(TARGETS), st.sampled_from(KEPT)), max_size=12))
def test_each_start_follows_the_override_of_its_time(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Target, Enabled] | None]
) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), tmp_path_factory.mktemp("starts"))
    once: Target = "none"
    lasting: Target = "none"
    expected: list[Target] = []
    for step in steps:
        if step is None:  # a start
            expected.append(once if once != "none" else lasting)
            once = "none"
            machine.set_power("ForceRestart")
            continue
        target, enabled = step
        machine.set_override(target, enabled)
        if target == "none" or enabled == "disabled":
            once = lasting = "none"
        elif enabled == "once":
            once = target
        else:
            once, lasting = "none", target
    starts = [line for line in machine.console().splitlines() if "boot from" in line]
    assert [line.split("boot from ")[1].split()[0] for line in starts] == expected


def test_a_password_is_refused_without_being_repeated(machine: Machine) -> None:
    with pytest.raises(PasswordRefusedError) as raised:
        machine.set_password("root", "tiny")
    assert "tiny" not in str(raised.value)
    with pytest.raises(KeyError):
        machine.set_password("nobody", "Tram-4-lantern")


# The container of a virtual node

PODMAN = """#!/bin/sh
# Plays podman: writes down what it is called with, and remembers which container runs.
echo "$@" >>{folder}/called
for last; do :; done
case $1 in
  start) [ ! -e {folder}/broken ] || {{ echo "Error: no such container $last" >&2; exit 125; }}; : >{folder}/running ;;
  stop) while [ -e {folder}/hangs ]; do sleep 0.05; done; rm -f {folder}/running ;;
  kill) rm -f {folder}/hangs ;;
  inspect) echo "Error: lstat /dev/pts/0: no such file or directory" >&2; exit 125 ;;
  ps)
    [ -e {folder}/running ] && state=running || state=exited
    printf '[{{"Pid": %d, "State": "%s"}}]\n' "$(cat {folder}/pid 2>/dev/null || echo 0)" $state ;;
  cp)
    case $3 in
      -) tar -C {folder} -c last-shutdown 2>/dev/null || exit 125 ;;
      *) cp "$2" {folder}/last-shutdown ;;
    esac ;;
esac
"""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what plays podman, and a place that plays the kernel's forwarding."""
    program = tmp_path / "podman"
    program.write_text(PODMAN.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "forwarding").write_text("0\n")
    monkeypatch.setattr(hardware, "PODMAN", program)
    monkeypatch.setattr(hardware, "FORWARDING", str(tmp_path / "forwarding"))
    return tmp_path


def called(podman: Path) -> list[str]:
    """Return podman's calls that change something."""
    lines = (podman / "called").read_text().splitlines()
    return [line for line in lines if not line.startswith("ps ")]


def test_power_is_the_nodes_container(podman: Path) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_power("On")
    assert machine.power()
    machine.set_power("GracefulRestart")
    machine.set_power("ForceOff")
    assert not machine.power()
    assert called(podman) == [
        "start mini-hal01",
        "stop --time=60 mini-hal01",
        "start mini-hal01",
        "stop --time=0 mini-hal01",
    ]


def test_a_shutdown_that_hangs_can_be_forced(podman: Path) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_power("On")
    (podman / "hangs").touch()
    asked = machine.request_power("GracefulShutdown")
    wait_until(lambda: "stop --time=60 mini-hal01" in called(podman))
    machine.request_power("ForceOff").result(600)
    asked.result(600)
    assert not machine.power()
    assert called(podman)[1:] == ["stop --time=60 mini-hal01", "kill mini-hal01"]
    machine.close()


def test_a_container_that_ended_by_itself_is_a_machine_that_was_shut_down(podman: Path) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_power("On")
    (podman / "running").unlink()
    assert not machine.power()
    machine.set_power("On")
    assert machine.power()


@pytest.fixture
def system(podman: Path) -> Iterator[subprocess.Popen[bytes]]:
    """What plays the first process of a node's container; it ends when it is told to."""
    process = subprocess.Popen(["sleep", "600"])
    (podman / "pid").write_text(f"{process.pid}\n")
    yield process
    process.kill()
    process.wait()


def ends(podman: Path, system: subprocess.Popen[bytes], word: str) -> None:
    """Let the node's systemd end as it does: what it leaves on the disk, its process, then what podman says."""
    if word:
        (podman / "last-shutdown").write_text(f"{word}\n")
    (podman / "running").unlink(missing_ok=True)
    system.kill()
    system.wait()
    (podman / "pid").write_text("0\n")


@pytest.mark.parametrize(("word", "starts"), [("reboot", 2), ("poweroff", 1), ("halt", 1), ("", 1)])
def test_a_system_that_reboots_is_started_again_and_one_that_shuts_down_is_not(
    podman: Path, system: subprocess.Popen[bytes], word: str, starts: int
) -> None:
    with closing(Ends()) as watched:
        node = VirtualNode("mini")
        node.ends = watched
        machine = Machine(spec("hal01", "openbmc", 1), podman / "state", node)
        machine.set_power("On")
        ends(podman, system, word)
        wait_until(lambda: ("[firmware] reboot" if starts == 2 else "[firmware] off (by itself)") in machine.console())
        wait_until(lambda: machine.power() is (starts == 2))
        assert machine.kept.read().starts == starts
        machine.close()
    if word:
        assert (podman / "last-shutdown").read_text() == "", "the next end would be taken for a reboot"


def test_a_reboot_follows_the_override_of_its_time(podman: Path, system: subprocess.Popen[bytes]) -> None:
    asked: list[Target] = []

    def network_boot(machine: Machine, target: Target) -> bool:
        asked.append(target)
        return True

    with closing(Ends()) as watched:
        node = VirtualNode("mini", network_boot=network_boot)
        node.ends = watched
        (podman / "running").touch()
        machine = Machine(spec("hal01", "openbmc", 1), podman / "state", node)
        machine.take_up()
        machine.set_override("network", "once")
        ends(podman, system, "reboot")
        wait_until(lambda: asked == ["network"])
        machine.close()


def test_what_its_bmc_switched_off_does_not_come_back(podman: Path, system: subprocess.Popen[bytes]) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_power("On")
    machine.set_power("ForceOff")
    ends(podman, system, "reboot")  # it was just rebooting
    machine.ended(lambda: True).result(600)
    assert machine.kept.read().starts == 1
    assert not machine.power()
    machine.close()


def test_a_node_that_runs_already_is_known_to_be_on(podman: Path) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    (podman / "running").touch()
    machine.take_up()
    assert machine.kept.read().power
    (podman / "podman").write_text("#!/bin/sh\necho '[]'\n")
    machine.take_up()  # the node was removed: the BMC serves all the same
    with pytest.raises(VirtualNodesError, match=r"^podman: there is no container mini-hal01$"):
        machine.power()
    (podman / "podman").write_text("#!/bin/sh\necho 'Error: it is locked' >&2\nexit 125\n")
    with pytest.raises(VirtualNodesError, match=r"^podman .*mini-hal01\$ \(125\): Error: it is locked$"):
        machine.power()


@pytest.mark.parametrize(("override", "boots"), [("network", True), ("network", False), ("none", True)])
def test_the_network_is_asked_what_starts(podman: Path, override: Target, boots: bool) -> None:
    asked: list[tuple[str, Target]] = []

    def network_boot(machine: Machine, target: Target) -> bool:
        asked.append((machine.spec.name, target))
        machine.write_console("petitboot\n")
        return boots

    node = VirtualNode("mini", network_boot=network_boot)
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", node)
    machine.set_override(override, "once")
    machine.set_power("On")
    assert asked == [("hal01", override)]
    assert machine.power()
    assert machine.kept.read().in_firmware is not boots
    assert (podman / "running").exists() is boots


def test_a_boot_from_the_network_is_a_machine_that_is_on_and_can_be_forced_off(podman: Path) -> None:
    seen: list[bool] = []
    reached = threading.Event()

    def network_boot(machine: Machine, target: Target) -> bool:
        seen.append(machine.power())
        reached.set()
        return not machine.interrupted.wait(600)

    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini", network_boot=network_boot))
    machine.set_override("network", "once")
    machine.request_power("On")
    assert reached.wait(600)
    machine.request_power("ForceOff").result(600)  # asking waits for nothing; being done waits for the boot to end
    assert seen == [True]
    assert not machine.power()
    assert not machine.interrupted.is_set()
    assert called(podman) == ["stop --time=0 mini-hal01"]
    machine.close()


def test_a_boot_from_the_network_ends_when_nobody_serves_any_more(podman: Path) -> None:
    reached, told = threading.Event(), []

    def network_boot(machine: Machine, target: Target) -> bool:
        reached.set()
        told.append(machine.interrupted.wait(600))
        return False

    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini", network_boot=network_boot))
    machine.set_override("network", "once")
    machine.request_power("On")
    assert reached.wait(600)
    later = machine.request_power("GracefulRestart")  # waits for the boot, and is not begun
    machine.close()
    assert told == [True]
    assert later.cancelled()


def test_a_node_whose_container_does_not_start_is_off(podman: Path) -> None:
    node = VirtualNode("mini", network_boot=lambda machine, target: True)
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", node)
    program = (podman / "podman").read_text()
    (podman / "podman").write_text("#!/bin/sh\necho 'Error: no such object' >&2\nexit 125\n")
    machine.set_override("network", "once")
    with pytest.raises(VirtualNodesError, match="no such object"):
        machine._start()
    (podman / "podman").write_text(program)
    assert not machine.kept.read().in_firmware
    assert not machine.power()


def test_disk_asks_no_network(podman: Path) -> None:
    def network_boot(machine: Machine, target: Target) -> bool:
        raise AssertionError("the disk was asked for")

    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini", network_boot=network_boot))
    machine.set_override("disk", "once")
    machine.set_power("On")
    assert called(podman) == ["start mini-hal01"]


def test_setup_starts_nothing_and_is_left_by_switching_off(podman: Path) -> None:
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_override("setup", "once")
    machine.set_power("On")
    assert machine.power()
    assert not (podman / "running").exists()
    machine.set_power("ForceOff")
    assert not machine.power()


def test_routing_stays_as_it_was(podman: Path) -> None:
    program = podman / "podman"
    program.write_text(program.read_text() + f"[ $1 != start ] || echo 1 >{podman}/forwarding\n")
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.set_power("On")
    assert (podman / "forwarding").read_text() == "0\n"


def test_a_container_that_does_not_start_is_said_on_the_console(
    podman: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (podman / "broken").touch()
    machine = Machine(spec("hal01", "openbmc", 1), podman / "state", VirtualNode("mini"))
    machine.request_power("On").result()
    machine.close()
    message = "hal01: On failed: podman mini-hal01 (125): Error: no such container mini-hal01"
    assert message in machine.console()
    assert message in capfd.readouterr().err
    assert not machine.power()


def test_podman_runs_in_this_machines_network(podman: Path) -> None:
    number = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        command = VirtualNode("mini", number).command(["podman", "ps"])
    finally:
        os.close(number)
    assert command == ["nsenter", f"--net=/proc/self/fd/{number}", "--", "podman", "ps"]
