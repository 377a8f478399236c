"""What the tests of the emulated BMCs share."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from bmc.chassis import ask
from bmc.cli import switch
from bmc.machine import Processor
from bmc.serve import Running
from bmc.spec import Fleet, Ports, Spec

from tests.unit import addresses

QUIET = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
IPMI = 14623  # ipmi_sim cannot be asked which one it took
LONG_SECONDS = 600  # a condition that is not met by then never will be


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


def spec(name: str, kind: str, last: int, **more: Any) -> Spec:
    """Return a BMC of a small fleet, at an address that is given once: pyghmi remembers sessions by it."""
    model = {"supermicro": "IBM Power System LC922 9006-22P"}.get(kind, "IBM Power System AC922 8335-GTH")
    facts: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "address": addresses.address(),
        "serial": f"SERIAL-{name}",
        "model": model,
        "gpus": 4,
        "macs": {"management": f"02:48:41:4c:02:{last:02x}", "bmc": f"02:48:41:4c:03:{last:02x}"},
        "ports": Ports(https=0, ipmi=IPMI, console=0),
        **more,
    }
    return Spec.model_validate(facts)


LOGINS = {
    "hal01": ("root", "0penBmc"),
    "hal02": ("root", "0penBmc"),
    "hal-data": ("ADMIN", "ADMIN"),
    "hal-mgmt2": ("ADMIN", "ADMIN"),
    "dell": ("root", "calvin"),
    "other": ("admin", "admin"),
}


def asking(name: str = "hal01", password: str | None = None) -> requests.Session:
    """Return what asks a BMC with its name and password; the certificate is that of delivery, so it is not checked."""
    found = unchecked()
    user, delivered = LOGINS[name]
    found.auth = (user, password or delivered)
    return found


def unchecked() -> requests.Session:
    """Return what does not check certificates: those of delivery name nobody."""
    found = requests.Session()
    found.verify = found.trust_env = False  # the environment may name authorities, which would win
    return found


def switched(served: Served, name: str, fault: str, word: str = "", seconds: float = 0.0) -> None:
    """Switch a fault on as the command does, and let those who serve follow."""
    machines = {one: processor.own for one, processor in served.running.processors.items()}
    switch(machines[name], machines, served.fleet, fault, word, seconds)
    assert ask(str(served.running.control), ["refresh"]) == (True, "")


def ipmitool(
    served: Served, name: str, *words: str, password: str | None = None, briefly: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ipmitool on a BMC; its password is in the environment. It gives up after 20 seconds, or briefly one."""
    user, delivered = LOGINS[name]
    where = served.fleet.named(name)
    command = ["ipmitool", "-I", "lanplus", "-C", "3", "-H", where.address, "-p", str(where.ports.ipmi)]
    command += ["-N", "1", "-R", "1"] if briefly else ["-N", "20", "-R", "1"]  # nothing is sent twice
    command += ["-U", user, "-E", *words]
    environment = {**os.environ, "IPMI_PASSWORD": password or delivered}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
