"""What firmware and installer do on the network: ask DHCP, take the address that is given, fetch files.

Everything is asked with the node's own MAC and address: the interface has none but what DHCP gave.
"""

from __future__ import annotations

import json
from typing import Any

from bmc.petitboot import Lease
from bmc.place import INTERFACE, PROGRAMS, Done, Place

DHCP_SECONDS = 60.0
FETCH_SECONDS = 120.0
IMAGE_SECONDS = 900.0


class Network:
    """The first port of a machine."""

    def __init__(self, place: Place, mac: str) -> None:
        """Know the place and the port's MAC."""
        self._place = place
        self._mac = mac

    def clear(self) -> None:
        """Take away what the container brought: a machine that starts has no address."""
        self._place.run(["ip", "address", "flush", "dev", INTERFACE])

    def ask(self, arch: int, user_class: str = "") -> Lease | None:
        """Ask DHCP and take what it gives; None when nobody answers. ``arch`` is option 93 of RFC 4578."""
        client = f"cd {PROGRAMS} && exec python3 -B -m bmc.dhcp_client {INTERFACE} {self._mac} {arch} '{user_class}'"
        done = self._place.run(["sh", "-c", client], seconds=DHCP_SECONDS)
        said: dict[str, Any] | None = json.loads(done.out) if done.status == 0 else None
        if said is None:
            return None
        netmask = said.pop("netmask") or "255.255.255.0"
        given = Lease(**{**said, "options": {int(number): text for number, text in said["options"].items()}})
        self.clear()
        self._place.run(["ip", "address", "add", f"{given.address}/{netmask}", "dev", INTERFACE])
        return given

    def fetch(self, url: str) -> bytes | None:
        """Return a small file; None when it is not there."""
        done = self._curl(url, "--max-filesize", "1048576")
        return done.out if done.status == 0 else None

    def save(self, url: str, path: str, seconds: float = FETCH_SECONDS) -> str | None:
        """Fetch a file to a path of the place; return why it could not be, None when it is there."""
        done = self._curl(url, "--output", path, seconds=seconds)
        return None if done.status == 0 else done.last_words

    def missing(self, url: str) -> str | None:
        """Return why a file could not be fetched, None when it is there; nothing is fetched."""
        done = self._curl(url, "--head", "--output", "/dev/null")
        return None if done.status == 0 else done.last_words

    def _curl(self, url: str, *more: str, seconds: float = FETCH_SECONDS) -> Done:
        quiet = ["--fail", "--silent", "--show-error", "--noproxy", "*", "--max-time", f"{seconds:g}"]
        return self._place.run(["curl", *quiet, *more, "--", url], seconds=seconds + 30)
