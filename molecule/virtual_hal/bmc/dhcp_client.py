"""A small DHCP client that asks as petitboot's udhcpc does: RFC 2131 and 2132, architecture 00:0e (OPAL) in option 93.

It takes part with the MAC that it is told, whatever the interface has, and configures nothing: it returns what was
answered. It needs an interface that is up, root, and port 68 to itself: one at a time in a network namespace.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from bmc.petitboot import Lease

DISCOVER, OFFER, REQUEST, ACK, NAK = 1, 2, 3, 5, 6
OPAL, BIOS, EFI64 = 0x0E, 0, 7
"""Architectures of option 93: RFC 4578 and IANA's list of processor architectures."""
_COOKIE = bytes((99, 130, 83, 99))
_HEADER = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_ASKED_FOR = (1, 3, 6, 12, 15, 28, 42, 66, 67, 209, 210, 211)
_BROADCAST = 0x8000
SECONDS = (1.0, 2.0, 4.0)
"""How long each of three tries waits for an answer."""


@dataclass(frozen=True)
class Answer:
    """A message of the server's."""

    kind: int
    transaction: int
    mac: str
    address: str
    siaddr: str
    file: str
    options: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def server(self) -> str | None:
        """Option 54."""
        return socket.inet_ntoa(self.options[54]) if len(self.options.get(54, b"")) == 4 else None

    def lease(self) -> Lease:
        """As petitboot gets it from udhcpc. Option 67 is the file where the header has none."""
        text = {number: _text(value) for number, value in self.options.items() if number in (66, 67, 209, 210, 211)}
        return Lease(
            mac=self.mac,
            address=self.address,
            server=self.server,
            siaddr=self.siaddr if self.siaddr != "0.0.0.0" else None,
            file=self.file or None,
            options=text,
        )


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("latin-1")


def message(
    kind: int, mac: str, transaction: int, *, arch: int = OPAL, asked: str = "", server: str = "", user_class: str = ""
) -> bytes:
    """Return a message to the server; ``asked`` and ``server`` are in a REQUEST."""
    hardware = bytes(int(part, 16) for part in mac.split(":"))
    none = bytes(4)
    head = _HEADER.pack(
        1, 1, 6, 0, transaction, 0, _BROADCAST, none, none, none, none, hardware.ljust(16, b"\0"), b"", b""
    )
    options = [(53, bytes((kind,))), (61, b"\x01" + hardware), (93, struct.pack("!H", arch))]
    if asked:
        options.append((50, socket.inet_aton(asked)))
    if server:
        options.append((54, socket.inet_aton(server)))
    if user_class == "iPXE":
        # iPXE says what it is in 77, and its own encapsulated options in 175.
        options += [(77, b"iPXE"), (175, bytes((177, 1, 0)))]
    options.append((55, bytes(_ASKED_FOR)))
    body = b"".join(bytes((number, len(value))) + value for number, value in options)
    return (head + _COOKIE + body + b"\xff").ljust(300, b"\0")


def read(packet: bytes) -> Answer | None:
    """Return a server's message; None for anything else."""
    if len(packet) < _HEADER.size + 4 or packet[_HEADER.size : _HEADER.size + 4] != _COOKIE:
        return None
    fields = _HEADER.unpack_from(packet)
    options = _options(packet[_HEADER.size + 4 :])
    if fields[0] != 2 or options is None or len(options.get(53, b"")) != 1:
        return None
    overload = options.get(52, b"\0")[0] if options.get(52) else 0
    file = b"" if overload & 1 else fields[13].split(b"\0")[0]
    for bit, area in ((1, fields[13]), (2, fields[12])):
        if overload & bit:
            options = {**(_options(area) or {}), **options}
    return Answer(
        kind=options[53][0],
        transaction=fields[4],
        mac=":".join(f"{byte:02x}" for byte in fields[11][:6]),
        address=socket.inet_ntoa(fields[8]),
        siaddr=socket.inet_ntoa(fields[9]),
        file=_text(file),
        options=options,
    )


def _options(area: bytes) -> dict[int, bytes] | None:
    """Return the options; one that comes twice is one long one (RFC 3396). None when a length points outside."""
    options: dict[int, bytes] = {}
    at = 0
    while at < len(area) and area[at] != 255:
        if area[at] == 0:
            at += 1
            continue
        if at + 1 >= len(area) or at + 2 + area[at + 1] > len(area):
            return None
        number, length = area[at], area[at + 1]
        options[number] = options.get(number, b"") + area[at + 2 : at + 2 + length]
        at += 2 + length
    return options


def ask(
    interface: str, mac: str, *, arch: int = OPAL, user_class: str = "", seconds: tuple[float, ...] = SECONDS
) -> Answer | None:
    """DISCOVER and REQUEST by an interface; return what was acknowledged, None without an answer or when refused."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        link.bind(("", 68))
        transaction = secrets.randbits(32)

        def exchange(packet: bytes, wanted: Callable[[Answer], bool]) -> Answer | None:
            for wait in seconds:
                link.sendto(packet, ("255.255.255.255", 67))
                until = time.monotonic() + wait
                while (left := until - time.monotonic()) > 0:
                    link.settimeout(left)
                    try:
                        answer = read(link.recv(4096))
                    except TimeoutError:
                        break
                    if answer and answer.transaction == transaction and answer.mac == mac.lower() and wanted(answer):
                        return answer
            return None

        offer = exchange(
            message(DISCOVER, mac, transaction, arch=arch, user_class=user_class), lambda answer: answer.kind == OFFER
        )
        if offer is None or offer.server is None:
            return None
        request = message(
            REQUEST, mac, transaction, arch=arch, asked=offer.address, server=offer.server, user_class=user_class
        )
        done = exchange(request, lambda answer: answer.kind in (ACK, NAK))
        return done if done and done.kind == ACK else None


def told(answer: Answer) -> str:
    """Return an answer as JSON, for the firmware that asked in another process: its lease and the network's mask."""
    mask = answer.options.get(1, b"")
    lease = answer.lease()
    return json.dumps({**asdict(lease), "netmask": socket.inet_ntoa(mask) if len(mask) == 4 else None})


def main(interface: str, mac: str, *more: str) -> int:
    """Print what is answered, for somebody who looks for a fault; 1 when nobody answered.

    ``more``: the architecture's number in option 93 and the user class (or ""); then the answer is JSON.
    """
    if more:
        answer = ask(interface, mac, arch=int(more[0]), user_class=more[1])
        print("null" if answer is None else told(answer))
        return 0
    answer = ask(interface, mac)
    if answer is None:
        print(f"{mac}: no answer on {interface}")
        return 1
    print(f"{mac}: {answer.address} of {answer.server}")
    for number, value in sorted(answer.lease().options.items()):
        print(f"  option {number}: {value}")
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(*sys.argv[1:]))
