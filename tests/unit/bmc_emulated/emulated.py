"""What the tests of the emulated BMCs share."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bmc.machine import Processor
from bmc.serve import Running
from bmc.spec import Fleet, Ports, Spec

LONG_SECONDS = 60  # a condition that is not met by then never will be


def wait_until(condition: Callable[[], Any]) -> Any:
    """Return what the condition gives as soon as it is something; fail when it stays nothing."""
    end = time.monotonic() + LONG_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "never happened"
        time.sleep(0.02)
    return found


@dataclass
class Served:
    """BMCs that are served: where, and what is behind."""

    fleet: Fleet
    running: Running
    clients: ExitStack  # closed before the servers are: sushy logs out when it is collected, and waits for an answer

    def url(self, name: str = "hal01") -> str:
        """Return where a BMC's HTTPS is."""
        return f"https://{self.fleet.named(name).address}:{self.running.webs[name].port}"

    def processor(self, name: str = "hal01") -> Processor:
        """Return a BMC."""
        return self.running.processors[name]


def free_port(address: str) -> int:
    """Return a port of an address that nobody has: ipmi_sim cannot be asked which one it took."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind((address, 0))
        return int(udp.getsockname()[1])


def spec(name: str, kind: str, last: int, **more: Any) -> Spec:
    """Return a BMC of a small fleet."""
    model = {"supermicro": "IBM Power System LC922 9006-22P"}.get(kind, "IBM Power System AC922 8335-GTH")
    facts: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "address": f"127.0.8.{last}",
        "serial": f"SERIAL-{name}",
        "model": model,
        "gpus": 4,
        "macs": {"management": f"02:48:41:4c:02:{last:02x}", "bmc": f"02:48:41:4c:03:{last:02x}"},
        "ports": Ports(https=0, ipmi=free_port(f"127.0.8.{last}"), console=0),
        **more,
    }
    return Spec.model_validate(facts)
