"""Sixteen BMCs at once against one, and against one after the other: emulated ones that take a while to answer.

No node is needed. A real BMC is slow and the controller idle meanwhile; here each answer is held back by a quarter of a
second, so that what is measured is whether one holds up another, and not how fast this machine emulates.
"""

from __future__ import annotations

import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import BmcError
from hal_cluster.bmc.many import ask_all
from hal_cluster.bmc.models import Power, Target
from tests.bench.part import Goal, Measured, NotMeasured, Session

PROJECT = Path(__file__).resolve().parents[2]
MANY = 16
ANSWER_SECONDS = 0.25
MOST_TIMES = 2.0
"""How many times as long sixteen may take as one; one after the other it is sixteen times."""


def power(target: Target) -> Power:
    """Log in, ask one thing, log out."""
    bmc = connect(target)
    try:
        return bmc.power()
    finally:
        bmc.close()


@contextmanager
def served(folder: Path) -> Iterator[list[Target]]:
    """Sixteen slow BMCs, in a process of their own."""
    from bmc.machine import Machine
    from bmc.spec import Fleet, Ports, Spec

    from tests.unit.authority import make
    from tests.unit.hal_cluster.certificates.server import tls_certificate

    make(folder / "ca")
    password, specs = secrets.token_urlsafe(12), []
    for number in range(1, MANY + 1):
        name, address = f"bench{number:02d}", f"127.0.0.{100 + number}"
        key, certificate = tls_certificate(folder / "ca", [name], [address], 2)
        (folder / f"{name}.given.key").write_text(key)
        (folder / f"{name}.given.crt").write_text(certificate)
        with socket.socket() as free:
            free.bind((address, 0))
            port = int(free.getsockname()[1])
        specs.append(
            Spec(
                name=name,
                kind="redfish",
                address=address,
                serial=name,
                model="x",
                password=password,
                certificate=folder / f"{name}.given.crt",
                key=folder / f"{name}.given.key",
                ports=Ports(https=port),
            )
        )
    fleet = Fleet(instance="bench", state=folder / "state", bmcs=tuple(specs))
    (folder / "state").mkdir(mode=0o700)
    for spec in specs:
        with Machine(spec, fleet.state).kept.change() as state:
            state.faults.slow_seconds = ANSWER_SECONDS
    (folder / "fleet.json").touch(0o600)
    (folder / "fleet.json").write_text(fleet.model_dump_json())
    path = f"{PROJECT / 'molecule/virtual_hal'}:{PROJECT}"
    serving = subprocess.Popen(
        [sys.executable, "-m", "bmc.serve", str(folder / "fleet.json")],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if serving.stdout is None or serving.stdout.readline().strip() != "ready":
            raise NotMeasured("the emulated BMCs did not start")
        yield [
            Target(
                name=spec.name,
                kind=spec.kind,
                address=spec.address,
                user=spec.login[0],
                password=password,
                ca_file=str(folder / "ca" / "tls_ca.pem"),
                https_port=spec.ports.https,
            )
            for spec in specs
        ]
    finally:
        serving.terminate()
        serving.wait()


def seconds(targets: list[Target], at_once: int) -> float:
    """How long it takes to ask them all. NotMeasured when one did not answer."""
    began = time.monotonic()
    said = ask_all(targets, power, at_once)
    took = time.monotonic() - began
    for outcome in said.values():
        if isinstance(outcome, BmcError):
            raise NotMeasured(str(outcome))
    return took


def part(session: Session) -> Measured:
    """One, sixteen at once, and sixteen one after the other (once: it takes long), turn by turn."""
    with tempfile.TemporaryDirectory(prefix="hal-bench-bmc-") as folder, served(Path(folder)) as targets:
        turns = [(seconds(targets[:1], 1), seconds(targets, MANY)) for _ in range(session.options.rounds)]
        after_each_other = seconds(targets, 1)
    one, many = (statistics.median(turn[at] for turn in turns) for at in (0, 1))
    print(
        f"BMCs: power of {MANY}, each answer {ANSWER_SECONDS} s late\n"
        f"  {'one':<28}{one:>8.2f} s\n"
        f"  {f'{MANY} at once':<28}{many:>8.2f} s   {many / one:.2f} times one\n"
        f"  {f'{MANY} one after the other':<28}{after_each_other:>8.2f} s   {after_each_other / one:.2f} times one",
        flush=True,
    )
    numbers = {"one_seconds": one, "at_once_seconds": many, "after_each_other_seconds": after_each_other}
    return Measured(numbers, [Goal(f"{MANY} BMCs at once / one", many / one, MOST_TIMES)])
