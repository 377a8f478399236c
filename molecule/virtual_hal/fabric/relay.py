"""The relay between the nodes' programs and ibsim: it asks again, and gives up, as a node's kernel does.

A program says of each request how long to wait and how often to ask again, and the kernel (ib_mad) keeps to that.
libumad2sim, which stands where the kernel would be, does not: a request to a subnet manager that was just killed would
never end. The relay is not told these times, and gives each request three tries in 3 s.

Runs in the container <instance>-fabric, as a child of virtual-fabric.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

WAITS = (0.5, 1.0, 1.5)  # seconds after each try; opensm asks its kernel for 0.2 four times, a busy machine needs more
CONTROL_SECONDS = 60.0  # for a word to ibsim's control: who sent it waits without a limit, and asks once
SLOTS = 10  # ibsim has room for ten programs; each has a port of its own, next to that of control
HERE = "127.0.0.1"
# struct sim_ctl: magic, client, type, length, data. Data of CONNECT begins with the program's port, then with its slot.
CONTROL, MAGIC = struct.Struct("=4I64s"), 0xDEADBEEF
CONNECT, DISCONNECT, SET_ISSM = 1, 2, 9
# struct sim_request: addresses, status, a length, then the MAD: class, method, transaction and so on.
REQUEST, STATUS, MAD = 288, slice(16, 20), 32
CLASS, METHOD, TRANSACTION = MAD + 1, MAD + 3, slice(MAD + 10, MAD + 16)  # ibsim rewrites what is before these bytes
ASKS = frozenset((0x01, 0x02, 0x06, 0x12, 0x13, 0x14, 0x15))  # Get, Set, Report, GetTable, -TraceTable, -Multi, Delete
RESPONSE = 0x80
TIMED_OUT = struct.pack("!I", 110)

Address = tuple[str, int]
Key = tuple[int, int, bytes]


class Client(NamedTuple):
    """A program that is connected: where it is, and the socket that ibsim takes for it."""

    address: Address
    behind: socket.socket


class Asked(NamedTuple):
    """A request without an answer yet."""

    packet: bytes
    tries: int
    until: float


class Controlled(NamedTuple):
    """A word to ibsim's control port without an answer yet.

    `address`: who sent it, None for the relay itself. `client`: the program that connects, None for other words.
    """

    address: Address | None
    client: Client | None
    until: float


class Relay:
    """Passes packets on. Call `turn` for what has arrived, and `expire` for what has not."""

    def __init__(self, front: Address, ibsim: Address, clock: Callable[[], float] = time.monotonic) -> None:
        self._ibsim, self._clock = ibsim, clock
        self._selector = selectors.DefaultSelector()
        self._control = self._listen(front, self._from_control)
        self._fronts = [
            self._listen((front[0], front[1] + 1 + slot), partial(self._from_client, slot)) for slot in range(SLOTS)
        ]
        self._clients: dict[int, Client] = {}
        self._managers: set[int] = set()  # slots of subnet managers
        # Of programs that have gone. They stay open: a refused packet makes ibsim disconnect the slot's next program.
        self._left: dict[int, socket.socket] = {}
        self._asked: dict[Key, Asked] = {}
        self._controlled: dict[socket.socket, Controlled] = {}

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            self._end(key.fileobj)
        for left in self._left.values():
            left.close()
        self._selector.close()

    def turn(self, seconds: float | None) -> None:
        """Wait until something arrives, or for so many seconds; pass on what is there."""
        for key, _ in self._selector.select(seconds):
            key.data()  # another packet of this turn may have closed it: then it has nothing

    def wait(self) -> float | None:
        """Return for how many seconds nothing expires; None where nothing is open."""
        ends = [asked.until for asked in self._asked.values()] + [word.until for word in self._controlled.values()]
        return max(0.0, min(ends) - self._clock()) if ends else None

    def expire(self) -> None:
        """Ask again for what has no answer in time; say so to the asker when it was asked for often enough."""
        now = self._clock()
        for key, asked in list(self._asked.items()):
            if asked.until > now or key not in self._asked:
                continue
            if asked.tries < len(WAITS):
                self._asked[key] = Asked(asked.packet, asked.tries + 1, now + WAITS[asked.tries])
                _send(self._clients[key[0]].behind, asked.packet)
            else:
                del self._asked[key]
                packet = bytearray(asked.packet)
                packet[STATUS] = TIMED_OUT
                self._to_client(key[0], packet)
        for behind, controlled in list(self._controlled.items()):
            if controlled.until > now:
                continue
            self._end(behind)
            del self._controlled[behind]
            if controlled.client:
                controlled.client.behind.close()

    def _listen(self, at: Address, when_readable: Callable[[], None]) -> socket.socket:
        listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listening.setblocking(False)
        listening.bind(at)
        self._watch(listening, when_readable)
        return listening

    def _watch(self, listening: socket.socket, when_readable: Callable[[], None]) -> None:
        self._selector.register(listening, selectors.EVENT_READ, when_readable)

    def _end(self, listening: socket.socket) -> None:
        self._selector.unregister(listening)
        listening.close()

    def _from_control(self) -> None:
        """Give ibsim a program's word, from a socket of its own: so the answer is known to be this program's."""
        for packet, address in _received(self._control):
            if len(packet) != CONTROL.size:
                continue
            with contextlib.suppress(OSError):  # no socket is left for one more
                self._ask_control(packet, address)

    def _ask_control(self, packet: bytes, address: Address) -> None:
        magic, number, kind, length, data = CONTROL.unpack(packet)
        if magic != MAGIC:
            return
        client = None
        if kind == CONNECT:
            client = Client((address[0], struct.unpack_from("=I", data)[0] & 0xFFFF), _socket())
            port = struct.pack("=I", client.behind.getsockname()[1])
            packet = CONTROL.pack(magic, number, kind, length, port + data[4:])
        elif kind == DISCONNECT:
            self._forget(number)
        elif kind == SET_ISSM and number in self._clients:
            (self._managers.add if any(data[:4]) else self._managers.discard)(number)
        self._to_control(packet, address, client)

    def _to_control(self, packet: bytes, address: Address | None, client: Client | None) -> None:
        behind = _socket()
        behind.connect(self._ibsim)
        self._watch(behind, partial(self._from_ibsims_control, behind))
        self._controlled[behind] = Controlled(address, client, self._clock() + CONTROL_SECONDS)
        _send(behind, packet)

    def _from_ibsims_control(self, behind: socket.socket) -> None:
        with contextlib.suppress(ConnectionRefusedError):
            for packet, _ in _received(behind):
                if len(packet) != CONTROL.size:
                    continue
                controlled = self._controlled.pop(behind)
                self._end(behind)
                if controlled.client:
                    self._connected(packet, controlled.client)
                if controlled.address:
                    _send(self._control, packet, controlled.address)
                return

    def _connected(self, packet: bytes, client: Client) -> None:
        """Give a program the slot that ibsim has for it, if it has."""
        _, _, kind, _, data = CONTROL.unpack(packet)
        slot = struct.unpack_from("=I", data)[0]
        if kind != CONNECT or slot >= SLOTS:
            client.behind.close()
            return
        self._forget(slot)
        front = self._fronts[slot]
        with contextlib.suppress(OSError):  # what is no address gets nothing
            front.connect(client.address)
        front.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # that of the program before
        client.behind.connect((self._ibsim[0], self._ibsim[1] + 1 + slot))
        if left := self._left.pop(slot, None):  # ibsim writes to the new one now
            left.close()
        self._clients[slot] = client
        self._watch(client.behind, partial(self._from_ibsim, slot, client))

    def _forget(self, slot: int) -> None:
        """End what a slot's program has open."""
        if client := self._clients.pop(slot, None):
            self._managers.discard(slot)
            self._selector.unregister(client.behind)
            self._left[slot] = client.behind
            for key in [key for key in self._asked if key[0] == slot]:
                del self._asked[key]

    def _from_client(self, slot: int) -> None:
        try:
            for packet, address in _received(self._fronts[slot]):
                client = self._clients.get(slot)
                if client and address == client.address and len(packet) == REQUEST:
                    self._ask(slot, client, packet)
        except ConnectionRefusedError:
            self._died(slot)

    def _died(self, slot: int) -> None:
        """Tell ibsim what the program in a slot would have: that it has gone, and is no subnet manager of its node."""
        client, was_manager = self._clients.get(slot), slot in self._managers
        self._forget(slot)
        if client:
            others = (self._clients[other].address[0] for other in self._managers)
            if was_manager and client.address[0] not in others:
                self._tell(SET_ISSM, slot)
            self._tell(DISCONNECT, slot)

    def _tell(self, kind: int, slot: int) -> None:
        with contextlib.suppress(OSError):
            self._to_control(CONTROL.pack(MAGIC, slot, kind, 4, b""), None, None)

    def _ask(self, slot: int, client: Client, packet: bytes) -> None:
        if packet[METHOD] in ASKS:
            self._asked[_key(slot, packet)] = Asked(packet, 1, self._clock() + WAITS[0])  # or asked again by itself
        _send(client.behind, packet)

    def _from_ibsim(self, slot: int, client: Client) -> None:
        """Pass on what is new to a program: of two answers to one request a kernel drops the second."""
        with contextlib.suppress(ConnectionRefusedError):
            for packet, _ in _received(client.behind):
                if len(packet) != REQUEST:
                    continue
                is_response, is_returned = bool(packet[METHOD] & RESPONSE), packet[STATUS] == TIMED_OUT
                if is_response and is_returned:
                    continue  # whom it answers has gone; it may look like an answer to what this program asks
                answers = (is_response or is_returned) and packet[METHOD] & ~RESPONSE in ASKS
                if answers and not self._answered(_key(slot, packet)):
                    continue
                self._to_client(slot, packet)

    def _answered(self, key: Key) -> bool:
        """Whether somebody waits for this answer; from now on nobody does."""
        return self._asked.pop(key, None) is not None

    def _to_client(self, slot: int, packet: bytes | bytearray) -> None:
        """Send to a slot's program. Once its node says that it has gone, it is forgotten; ibsim forgets it, too."""
        try:
            self._fronts[slot].send(packet)
        except ConnectionRefusedError:
            self._died(slot)
        except OSError:
            pass


def _key(slot: int, packet: bytes) -> Key:
    return slot, packet[CLASS], packet[TRANSACTION]


def _socket() -> socket.socket:
    """Return a socket that ibsim sees as a program's."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind((HERE, 0))
    return made


def _received(listening: socket.socket) -> Iterator[tuple[bytes, Address]]:
    """Yield what has arrived, nothing of a closed socket. Raises ConnectionRefusedError: nobody is at the other end."""
    try:
        while True:
            yield listening.recvfrom(512)
    except ConnectionRefusedError:
        raise
    except OSError:
        return


def _send(sender: socket.socket, packet: bytes | bytearray, to: Address | None = None) -> None:
    """Send, as far as that is possible: a lost request is sent again."""
    with contextlib.suppress(OSError):
        if to:
            sender.sendto(packet, to)
        else:
            sender.send(packet)


def main() -> None:
    address, port, behind = sys.argv[1:]
    relay = Relay((address, int(port)), (HERE, int(behind)))
    print("ready", flush=True)
    while True:
        relay.turn(relay.wait())
        relay.expire()


if __name__ == "__main__":
    main()
