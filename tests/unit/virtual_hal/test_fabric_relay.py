"""The relay before ibsim asks again and gives up as a kernel does, and confuses no two programs."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fabric import relay

PROGRAM = Path(__file__).parents[3] / "molecule/virtual_hal/fabric/virtual-fabric"
HANGS = 60  # seconds; nothing here waits
# Addresses of their own, so that tests beside this one may have the same ports.
PROCESS = f"{64 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
FRONT, IBSIM = (f"127.{PROCESS}", 7070), (f"127.{PROCESS}", 7170)
GET, SEND, TRAP, GET_TABLE, REPRESS, GET_RESPONSE, TABLE_RESPONSE = 0x01, 0x03, 0x05, 0x12, 0x07, 0x81, 0x92
SMP, SA = 0x01, 0x03
CONNECT, DISCONNECT, GET_VENDOR, ERROR = 1, 2, 4, 0


def mad(
    method: int, transaction: int, *, management: int = SMP, slot: int = 0, status: int = 0, word: int = 0
) -> bytes:
    """A packet as umad2sim and ibsim write it; ibsim puts the slot before the transaction of a request."""
    head = struct.pack("!4x4x4x4xI4xQ", status, 256)
    header = struct.pack("!BBBBHHHHI", 1, management, 1, method, 0, 0, slot, 1, transaction)
    return head + header + struct.pack("!I", word).ljust(240, b"\0")


def control(kind: int, number: int = 0, data: int = 0, magic: int = 0xDEADBEEF) -> bytes:
    return struct.pack("=4I64s", magic, number, kind, 44, struct.pack("=I", data) + b"\0" * 8 + b"hal01")


def bound(address: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.settimeout(HANGS)
    made.bind(address)
    return made


MARKER = bound(("127.0.0.1", 0))


@pytest.fixture(autouse=True)
def on_one_processor() -> Iterator[None]:
    """There, on the loopback device, a packet does not overtake another."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    yield
    os.sched_setaffinity(0, every)


def settle() -> None:
    """What was sent before has arrived."""
    MARKER.sendto(b"", MARKER.getsockname())
    MARKER.recv(1)


def waiting(at: socket.socket) -> list[bytes]:
    """What has arrived and was not read."""
    settle()
    found = []
    at.setblocking(False)
    try:
        while True:
            found.append(at.recv(512))
    except BlockingIOError:
        return found
    finally:
        at.settimeout(HANGS)


class Program:
    """A program on a node: umad2sim's two sockets."""

    def __init__(self) -> None:
        self.control, self.data = bound(("127.0.0.1", 0)), bound(("127.0.0.1", 0))
        self.control.connect(FRONT)
        self.port: int = self.data.getsockname()[1]

    def attach(self, slot: int) -> None:
        self.data.connect((FRONT[0], FRONT[1] + 1 + slot))


class World:
    """A relay between programs and an ibsim that does what a test says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.relay = relay.Relay(FRONT, IBSIM, lambda: self.now)
        self.control = bound(IBSIM)
        self.slots = [bound((IBSIM[0], IBSIM[1] + 1 + slot)) for slot in range(relay.SLOTS)]
        self.programs: list[Program] = []

    def turn(self) -> None:
        settle()
        self.relay.turn(0)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.relay.expire()

    def connect(self, slot: int) -> Program:
        program = Program()
        self.programs.append(program)
        program.control.send(control(CONNECT, data=program.port))
        self.turn()
        asked, address = self.control.recvfrom(512)
        port = struct.unpack_from("=I", asked, 16)[0]
        assert port != program.port, "ibsim would answer past the relay"
        assert asked[20:] == control(CONNECT)[20:], "more than the port was changed"
        self.slots[slot].connect((address[0], port))
        self.control.sendto(control(CONNECT, data=slot), address)
        self.turn()
        assert program.control.recv(512) == control(CONNECT, data=slot)
        program.attach(slot)
        return program

    def close(self) -> None:
        self.relay.close()
        programs = [one for program in self.programs for one in (program.control, program.data)]
        for one in (self.control, *self.slots, *programs):
            one.close()


def told(world: World) -> list[tuple[int, int, int]]:
    """What the relay said to ibsim's control: kind, slot, first word of data; as ibsim answers it."""
    settle()
    said = []
    world.control.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            packet, address = world.control.recvfrom(512)
            _, slot, kind, _, data = relay.CONTROL.unpack(packet)
            said.append((kind, slot, *struct.unpack_from("=I", data)))
            world.control.sendto(packet, address)
    world.control.settimeout(HANGS)
    world.turn()
    return said


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_a_request_and_its_answer_go_through_once(world: World) -> None:
    program = world.connect(3)
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[3]) == [mad(GET, 7)]
    assert world.relay.wait() == relay.WAITS[0]
    world.slots[3].send(mad(GET_RESPONSE, 7, slot=3))
    world.turn()
    assert waiting(program.data) == [mad(GET_RESPONSE, 7, slot=3)]
    assert world.relay.wait() is None
    world.wait(1000)
    assert waiting(world.slots[3]) == waiting(program.data) == []


def test_what_has_no_answer_is_asked_for_again(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    world.wait(relay.WAITS[0] - 0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    world.wait(0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == []
    assert waiting(program.data) == [mad(GET_RESPONSE, 7)]


def test_what_is_never_answered_comes_back_as_timed_out(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    for seconds in relay.WAITS:
        assert waiting(program.data) == []
        world.wait(seconds)
    assert waiting(world.slots[0]) == [mad(GET, 7)] * len(relay.WAITS)
    assert waiting(program.data) == [mad(GET, 7, status=110)]
    world.wait(1000)
    assert waiting(world.slots[0]) == waiting(program.data) == []


def test_what_ibsim_itself_gives_up_is_not_asked_for_again(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    world.slots[0].send(mad(GET, 7, status=110))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(program.data) == [mad(GET, 7, status=110)]


@pytest.mark.parametrize("method", [SEND, TRAP, REPRESS, GET_RESPONSE])
def test_what_expects_no_answer_is_sent_once(world: World, method: int) -> None:
    program = world.connect(0)
    program.data.send(mad(method, 7))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(method, 7)]
    assert waiting(program.data) == []


def test_programs_with_equal_transactions_do_not_answer_for_each_other(world: World) -> None:
    """Two subnet managers that just started count from the same number."""
    one, other = world.connect(0), world.connect(1)
    for program in (one, other):
        program.data.send(mad(GET, 7))
    world.turn()
    world.slots[1].send(mad(GET, 7))  # one's request, forwarded: it answers nothing
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(world.slots[1]) == [mad(GET, 7)] * 2
    assert waiting(one.data) == [mad(GET_RESPONSE, 7)]
    assert waiting(other.data) == [mad(GET, 7)]


def test_classes_with_equal_transactions_do_not_answer_for_each_other(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    program.data.send(mad(GET, 7, management=SA))
    world.turn()
    world.slots[0].send(mad(GET_RESPONSE, 7, management=SA))
    world.turn()
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7), mad(GET, 7, management=SA), mad(GET, 7)]


def test_an_answer_that_reaches_nobody_is_no_answer_to_who_gave_it(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    program.data.send(mad(GET_RESPONSE, 7))
    world.turn()
    world.slots[0].send(mad(GET_RESPONSE, 7, status=110))
    world.turn()
    assert waiting(program.data) == []
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7), mad(GET_RESPONSE, 7), mad(GET, 7)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (mad(GET, 7), mad(GET_RESPONSE, 7)),
        (mad(GET_TABLE, 7, management=SA), mad(TABLE_RESPONSE, 7, management=SA)),
        (mad(GET, 7), mad(GET, 7, status=110)),
    ],
)
def test_a_second_answer_is_dropped_as_by_a_kernel(world: World, asked: bytes, answer: bytes) -> None:
    """Each try has one. libibnetdisc ends with an error at a second; libumad2sim crashes once the port is closed."""
    program = world.connect(0)
    program.data.send(asked)
    world.turn()
    world.wait(relay.WAITS[0])
    for late in (answer, answer, mad(asked[relay.METHOD], 7, management=asked[relay.CLASS], status=110)):
        world.slots[0].send(late)
        world.turn()
    assert waiting(program.data) == [answer]


def test_an_answer_that_comes_too_late_is_dropped(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    for seconds in relay.WAITS:
        world.wait(seconds)
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    assert waiting(program.data) == [mad(GET, 7, status=110)]


def test_what_a_manager_is_asked_goes_through(world: World) -> None:
    """A forwarded request, a trap and what answers no request of this kind are no answers."""
    program = world.connect(0)
    packets = [mad(GET, 7), mad(TRAP, 7), mad(SEND, 7)]
    for packet in packets:
        world.slots[0].send(packet)
        world.turn()
    assert waiting(program.data) == packets


def test_what_a_program_asks_again_itself_waits_anew(world: World) -> None:
    program = world.connect(0)
    for _ in range(5):
        program.data.send(mad(GET, 7))
        world.turn()
        world.wait(relay.WAITS[0] - 0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)] * 5
    assert waiting(program.data) == []
    program.data.send(mad(GET, 8))
    world.turn()
    world.now += 0.05
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 8), mad(GET, 7)]
    world.wait(relay.WAITS[0] - 0.05)
    assert waiting(world.slots[0]) == [mad(GET, 8)], "what waits anew keeps another from its turn"


def test_a_new_program_in_a_slot_gets_nothing_of_the_old_one(world: World) -> None:
    old = world.connect(0)
    old.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    new = world.connect(0)
    old.data.send(mad(GET, 9))
    world.turn()
    world.wait(1000)
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    assert waiting(world.slots[0]) == waiting(new.data) == []


def test_what_a_program_has_open_ends_when_it_disconnects(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    program.control.send(control(DISCONNECT))
    world.turn()
    said, address = world.control.recvfrom(512)
    assert said == control(DISCONNECT)
    world.control.sendto(said, address)
    world.turn()
    assert program.control.recv(512) == control(DISCONNECT)
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(program.data) == []


def test_each_program_gets_the_answer_to_its_own_word(world: World) -> None:
    one, other = Program(), Program()
    world.programs += [one, other]
    one.control.send(control(GET_VENDOR, number=1))
    other.control.send(control(GET_VENDOR, number=2))
    world.turn()
    asked = [world.control.recvfrom(512) for _ in range(2)]
    for said, address in reversed(asked):
        world.control.sendto(said, address)
    world.turn()
    assert waiting(one.control) == [control(GET_VENDOR, number=1)]
    assert waiting(other.control) == [control(GET_VENDOR, number=2)]


def test_a_program_that_ibsim_refuses_is_told(world: World) -> None:
    program = Program()
    world.programs.append(program)
    program.control.send(control(CONNECT, data=program.port))
    world.turn()
    _, address = world.control.recvfrom(512)
    world.control.sendto(control(ERROR), address)
    world.turn()
    assert program.control.recv(512) == control(ERROR)
    program.attach(0)
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == []


def test_a_word_without_an_answer_is_forgotten(world: World) -> None:
    program = Program()
    world.programs.append(program)
    program.control.send(control(CONNECT, data=program.port))
    world.turn()
    assert world.relay.wait() == relay.CONTROL_SECONDS
    world.wait(relay.CONTROL_SECONDS)
    assert world.relay.wait() is None
    _, address = world.control.recvfrom(512)
    world.control.sendto(control(CONNECT), address)
    world.turn()
    assert waiting(program.control) == []


def test_what_is_no_packet_is_dropped(world: World) -> None:
    program = world.connect(0)
    for packet in (b"", b"short", mad(GET, 7)[:-1], mad(GET, 7) + b"x"):
        program.data.send(packet)
        world.slots[0].send(packet)
    for word in (b"", b"short", control(CONNECT)[:-1], control(CONNECT, magic=1)):
        program.control.send(word)
    world.turn()
    assert waiting(world.slots[0]) == waiting(program.data) == waiting(world.control) == []
    assert world.relay.wait() is None
    program.control.send(control(CONNECT, data=0xFFFFFFFF))  # more than a port
    program.control.send(control(DISCONNECT, number=0xFFFFFFFF))  # no slot
    world.turn()
    said, address = world.control.recvfrom(512)
    world.control.sendto(control(CONNECT, data=1), address)
    world.turn()
    assert len(waiting(world.control)) == 1
    nowhere = struct.unpack_from("=I", said, 16)[0]
    world.slots[1].sendto(mad(GET, 7), (address[0], nowhere))
    world.turn()
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 7)]


def test_who_has_no_slot_reaches_nobody(world: World) -> None:
    world.connect(0)
    stranger = Program()
    world.programs.append(stranger)
    for slot in range(relay.SLOTS):
        stranger.attach(slot)
        with contextlib.suppress(ConnectionRefusedError):
            stranger.data.send(mad(GET, 7))
    world.turn()
    assert [waiting(slot) for slot in world.slots] == [[]] * relay.SLOTS


def test_programs_and_an_ibsim_that_have_gone_do_not_end_it(world: World) -> None:
    program = world.connect(0)
    program.data.close()
    world.slots[0].send(mad(GET, 7))
    world.slots[0].send(mad(GET, 8))
    world.turn()
    world.turn()
    assert told(world) == [(DISCONNECT, 0, 0)]
    other = world.connect(1)
    world.slots[1].close()
    for number in range(3):
        other.data.send(mad(GET, number))
        world.turn()
    world.wait(relay.WAITS[0])
    world.control.close()
    other.control.send(control(GET_VENDOR))
    world.turn()
    world.turn()
    for seconds in relay.WAITS:
        world.wait(seconds)
    assert waiting(other.data) == [mad(GET, number, status=110) for number in range(3)]


def manager(world: World, slot: int) -> Program:
    program = world.connect(slot)
    program.control.send(control(relay.SET_ISSM, number=slot, data=1))
    world.turn()
    assert told(world) == [(relay.SET_ISSM, slot, 1)]
    return program


def dies(world: World, program: Program, slot: int) -> None:
    """A program is killed; the first packet that reaches nobody says so."""
    program.data.close()
    for number in range(2):
        world.slots[slot].send(mad(TRAP, number))
        world.turn()
    world.turn()


def test_ibsim_hears_that_a_program_has_gone(world: World) -> None:
    dies(world, world.connect(0), 0)
    assert told(world) == [(DISCONNECT, 0, 0)]


def test_a_killed_subnet_manager_is_none_any_more(world: World) -> None:
    dies(world, manager(world, 2), 2)
    assert told(world) == [(relay.SET_ISSM, 2, 0), (DISCONNECT, 2, 0)]


def test_the_next_subnet_manager_of_the_node_stays_one(world: World) -> None:
    """The port of a node says whether it has one: of a killed one nobody may say that it has none."""
    old = manager(world, 2)
    manager(world, 5)
    dies(world, old, 2)
    assert told(world) == [(DISCONNECT, 2, 0)]


def test_who_is_no_subnet_manager_any_more_ends_as_others_do(world: World) -> None:
    program = manager(world, 2)
    program.control.send(control(relay.SET_ISSM, number=2, data=0))
    world.turn()
    assert told(world) == [(relay.SET_ISSM, 2, 0)]
    dies(world, program, 2)
    assert told(world) == [(DISCONNECT, 2, 0)]


def test_the_next_program_of_a_slot_does_not_suffer_for_the_one_before(world: World) -> None:
    """ibsim disconnects a program to which it cannot write, and its socket keeps the refusal until then."""
    old = world.connect(0)
    old.control.send(control(DISCONNECT))
    world.turn()
    assert told(world) == [(DISCONNECT, 0, 0)]
    for number in range(2):
        world.slots[0].send(mad(TRAP, number))  # late
        settle()
    new = world.connect(0)
    world.slots[0].send(mad(TRAP, 3))
    world.turn()
    assert waiting(new.data) == [mad(TRAP, 3)]


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
