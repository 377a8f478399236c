"""Emulated BMCs for tests: molecule/virtual_hal/bmc without nodes, with certificates of a test's authority."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyghmi.ipmi.private.session
import pytest
from bmc.hardware import NoHardware
from bmc.machine import Machine
from bmc.serve import start
from bmc.spec import Fleet, Ports, Spec

from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.retry import Patience
from hal_cluster.bmc.tasks import run
from tests.unit import addresses
from tests.unit.hal_cluster.certificates.server import tls_certificate

SECRET = "wq8-Tramway-lan7"
"""The password of all of them: no message, output or log may have it."""
NEW_SECRET = "Zn4+heron+grave7"

PORTS = Ports(https=14443, ipmi=14623, console=14200)
"""Where they listen, each at an address of its own; the usual ones are root's."""

PATIENT = Limits(
    answers=Patience(seconds=60.0, first=0.05, longest=0.2),
    power=Patience(seconds=60.0, first=0.05, longest=0.2),
    shut_down=Patience(seconds=60.0, first=0.05, longest=0.2),
)
"""Where what is waited for does come: nothing is measured, and a busy machine takes its time."""
NOT_PATIENT = Limits(
    answers=Patience(seconds=0.3, first=0.05, longest=0.1),
    power=Patience(seconds=0.5, first=0.05, longest=0.1),
    shut_down=Patience(seconds=0.5, first=0.05, longest=0.1),
)


def overlook_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyghmi takes up an answer that comes within microseconds, as here, only when its time to send again has come."""
    wait = pyghmi.ipmi.private.session._io_wait

    def short(timeout: float, *arguments: Any, **keywords: Any) -> None:
        wait(min(timeout, 0.02), *arguments, **keywords)

    monkeypatch.setattr(pyghmi.ipmi.private.session, "_io_wait", short)


@dataclass
class Emulated:
    """One emulated BMC: how it is reached, and its machine behind it."""

    target: Target
    machine: Machine

    def fault(self, **faults: Any) -> None:
        """Switch faults on."""
        with self.machine.kept.change() as state:
            state.faults = state.faults.model_copy(update=faults)

    def client(self, **changes: Any) -> Bmc:
        """Return a client; ``changes`` are of the target."""
        return connect(replace(self.target, **changes))

    def run(self, action: str, *, check: bool = False, **changes: Any) -> dict[str, Any]:
        """Return what a task's result has; ``changes`` are of the module's arguments."""
        return run(task_of(self.target, action, **{"serial": self.machine.spec.serial, **changes}), check=check)


def task_of(target: Target, action: str, **changes: Any) -> dict[str, Any]:
    """Return the arguments of a task with the module hal_bmc, which waits a minute for anything."""
    return {
        **asdict(target),
        **dict.fromkeys(("wait_seconds", "power_seconds", "shut_down_seconds"), 60),
        **{"serial": "", "serials": {}, "action": action, "boot": None, "force": False, "former_password": None},
        **{"on_turns": None, "on_at_once": 1, "on_pause_seconds": 0, "ntp_servers": [], "clock_apart_seconds": 60},
        **{"authority": None, "names": [], "days": 365, "renew_days": 30, "console_seconds": 1},
        **changes,
    }


class Emulation:
    """Makes emulated BMCs; ``stack`` ends them."""

    def __init__(self, folder: Path, authority: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self.folder, self._stack, self.authority = folder, stack, authority
        self._count = 0

    def spec(self, name: str, kind: str, *, at: str = "", **values: Any) -> Spec:
        """Return a BMC at an address (of its own), with a certificate of the authority."""
        self._count += 1
        address = at or addresses.address()
        key, certificate = tls_certificate(self.authority, [f"{name}-bmc"], [address], 30)
        (self.folder / f"{name}-given.key").write_text(key)
        (self.folder / f"{name}-given.crt").write_text(certificate)
        given = {
            "model": "IBM Power System AC922 8335-GTH",
            "serial": f"SN-{name.upper()}",
            "password": SECRET,
            "macs": {"management": f"02:00:00:00:00:{self._count:02x}", "bmc": f"02:00:00:00:01:{self._count:02x}"},
            "certificate": self.folder / f"{name}-given.crt",
            "key": self.folder / f"{name}-given.key",
            "ports": PORTS,
        } | values
        return Spec.model_validate({"name": name, "kind": kind, "address": address, **given})

    def serve(self, *specs: Spec) -> list[Emulated]:
        """Let them listen."""
        fleet = Fleet(instance="test", state=self.folder, bmcs=specs)
        running = start(fleet, NoHardware(), self._stack)
        return [Emulated(self._target(spec), running.processors[spec.name].own) for spec in specs]

    def make(self, name: str, kind: str, **values: Any) -> Emulated:
        """Return one that listens."""
        return self.serve(self.spec(name, kind, **values))[0]

    def _target(self, spec: Spec) -> Target:
        user, password = spec.login
        return Target(
            name=spec.name,
            kind=spec.kind,
            address=spec.address,
            user=user,
            password=password,
            ca_file=str(self.authority / "tls_ca.pem"),
            https_port=spec.ports.https,
            ipmi_port=spec.ports.ipmi,
            console_port=spec.ports.console,
            timeout_seconds=5.0,
        )
