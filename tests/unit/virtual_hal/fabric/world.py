"""A relay between programs and an ibsim that do what a test says, and the packets that they send."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable

from fabric import relay

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

    def connect(self, slot: int, meanwhile: Callable[[], object] = lambda: None) -> Program:
        """A program that connects; `meanwhile`: between ibsim's answer and what the relay makes of it."""
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
        settle()
        meanwhile()
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
