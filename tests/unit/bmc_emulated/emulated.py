"""What the tests of the emulated BMCs share."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bmc.machine import Processor
from bmc.spec import Fleet, Ports, Spec
from bmc.web import Web

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
    webs: dict[str, Web]
    clients: ExitStack  # closed before the servers are: sushy logs out when it is collected, and waits for an answer

    def url(self, name: str = "hal01") -> str:
        """Return where a BMC's HTTPS is."""
        return f"https://{self.fleet.named(name).address}:{self.webs[name].port}"

    def processor(self, name: str = "hal01") -> Processor:
        """Return a BMC."""
        return self.webs[name].processor


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
        "ports": Ports(https=0, ipmi=0, console=0),
        **more,
    }
    return Spec.model_validate(facts)
