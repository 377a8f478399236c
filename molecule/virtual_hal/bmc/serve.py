"""Serve the BMCs of an instance: one process, each BMC at its own address. `python -m bmc.serve --help`

It prints "ready" when all listen, ends by SIGTERM, and ends by itself when the process ends that owns the addresses.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from testbed.bmcs import LEASE
from testbed.errors import VirtualNodesError

from bmc.console import Console, Serial
from bmc.control import Control
from bmc.ends import Ends
from bmc.firmware import Firmware
from bmc.hardware import Hardware, NoHardware, VirtualNode
from bmc.ipmi import Ipmi, Ipmis, chassis, client
from bmc.listening import Listening, accept_for
from bmc.machine import Processor, processors
from bmc.place import container
from bmc.redfish import application
from bmc.spec import Fleet, read_fleet
from bmc.tls import Certificates
from bmc.web import Web

WORKERS = 4  # calls of podman at once


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to end; return 0, or 1 after printing what is wrong."""
    parser = argparse.ArgumentParser(prog="bmc.serve", description="Serve the emulated BMCs of an instance.")
    parser.add_argument("fleet", type=Path, help="the BMCs, in JSON (molecule/virtual_hal/bmc/spec.py)")
    parser.add_argument(
        "--network-of", type=int, metavar="PID", help="listen in the network namespace of this process, and end with it"
    )
    arguments = parser.parse_args(argv)
    try:
        fleet = read_fleet(arguments.fleet.read_text(), str(arguments.fleet))
        return serve(fleet, arguments.network_of)
    except OSError as error:
        print(f"bmc.serve: {error.filename or arguments.fleet}: {error.strerror}", file=sys.stderr)
    except VirtualNodesError as error:
        print(f"bmc.serve: {error}", file=sys.stderr)
    return 1


def serve(fleet: Fleet, owner: int | None = None) -> int:
    """Serve a fleet until SIGTERM, SIGINT or the end of ``owner``, in whose network namespace it listens."""
    lease = _lease(fleet)
    ended, tell = os.pipe2(os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(tell, b"."))
    own_network: int | None = None
    watched = [ended]
    if owner is not None:
        own_network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            watched.append(os.pidfd_open(owner))
        except ProcessLookupError:
            raise VirtualNodesError(f"process {owner}, which has the addresses, has ended") from None
        enter_network(owner)  # before there are threads: the namespace is the thread's
    hardware: Hardware = _nodes(fleet.instance, own_network) if fleet.hardware == "nodes" else NoHardware()
    with ExitStack() as stack:
        if isinstance(hardware, VirtualNode):
            hardware.ends = Ends()
            stack.callback(hardware.ends.close)
        start(fleet, hardware, stack)
        print("ready", flush=True)
        select.select(watched, [], [])
    lease.close()
    return 0


def _nodes(instance: str, network: int | None) -> VirtualNode:
    """Return the containers of an instance, with a firmware that boots them from the network."""
    node = VirtualNode(instance, network)
    node.network_boot = Firmware(partial(container, node))
    return node


def _lease(fleet: Fleet) -> IO[str]:
    """Return a file that is locked as long as the process lives; raise VirtualNodesError when another one has it."""
    fleet.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = (fleet.state / LEASE).open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        raise VirtualNodesError(
            f"process {handle.read().strip()} serves the BMCs of {fleet.instance} already"
        ) from None
    handle.truncate(0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    return handle


def enter_network(pid: int) -> None:
    """Go into the network namespace of a process; raise VirtualNodesError when that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns is in Python 3.12 and later
    clone_newnet = 0x40000000
    with open(f"/proc/{pid}/ns/net") as namespace:
        if libc.setns(namespace.fileno(), clone_newnet) != 0:
            raise VirtualNodesError(
                f"network namespace of process {pid}: {os.strerror(ctypes.get_errno())}; needs root"
            )


@dataclass
class Running:
    """What listens, by node."""

    processors: dict[str, Processor] = field(default_factory=dict)
    webs: dict[str, Web] = field(default_factory=dict)
    consoles: dict[str, Console] = field(default_factory=dict)
    control: Path = Path()


def start(fleet: Fleet, hardware: Hardware, stack: ExitStack) -> Running:
    """Let all BMCs listen; ``stack`` ends them. Raises VirtualNodesError that names BMC and address."""
    stopping = threading.Event()
    answer = application()
    ipmis = Ipmis()
    served = processors(fleet, hardware)
    running = Running(served)
    stack.callback(_each, [processor.own for processor in served.values()], "close")
    stack.callback(ipmis.close)
    control = Control(fleet.state, lambda words: _answer(served, ipmis, stopping, words))
    running.control = control.path
    stack.callback(control.close)
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        list(pool.map(lambda processor: processor.own.take_up(), served.values()))
    listening: list[Listening] = []
    with_ipmi: list[Ipmi] = []
    for name, processor in served.items():
        delivered = processor.own.spec.delivered
        ports = processor.own.spec.ports
        if delivered.redfish:
            certificates = Certificates(processor.own.spec, fleet.state)
            with _named(processor, ports.https):
                running.webs[name] = Web(processor, certificates, answer, stopping, ipmis.refresh)
            listening.append(running.webs[name])
        if delivered.console:
            with _named(processor, ports.console):
                running.consoles[name] = Console(processor, fleet.state, stopping)
            listening.append(running.consoles[name])
        if delivered.ipmi:
            serial = Serial(processor, stopping)
            listening.append(serial)
            with_ipmi.append(Ipmi(processor, fleet.state, client(control.path), serial.port))
            processor.own.before_login = with_ipmi[-1].take_password
        processor.own.after_power = ipmis.write_facts
    stack.callback(_each, listening, "close")
    ended, tell = os.pipe2(os.O_CLOEXEC)
    accepting = threading.Thread(target=accept_for, args=(listening, ended), name="accept", daemon=True)
    accepting.start()
    for callback in (lambda: os.close(ended), accepting.join, lambda: os.close(tell), stopping.set):
        stack.callback(callback)
    ipmis.start(with_ipmi)
    return running


@contextmanager
def _named(processor: Processor, port: int) -> Iterator[None]:
    """Say whose address it is that cannot be had."""
    try:
        yield
    except OSError as error:
        where = f"{processor.own.spec.address} port {port}"
        raise VirtualNodesError(f"{processor.name}: {where}: {error.strerror}") from None


def _each(things: Sequence[object], method: str) -> None:
    for thing in things:
        getattr(thing, method)()


def _answer(served: dict[str, Processor], ipmis: Ipmis, stopping: threading.Event, words: Sequence[str]) -> str:
    """Answer a request on the control socket: "refresh", or a BMC's name and what ipmi_sim asks of its chassis."""
    if words == ["refresh"]:
        ipmis.refresh()
        return ""
    processor = served.get(words[0])
    if processor is None:
        raise ValueError(f"{words[0]}: there is no such BMC")
    faults = processor.own.faults()
    stopping.wait(faults.slow_seconds)
    if faults.gateway_timeout:
        raise ValueError("504")  # ipmi_sim makes "unspecified error" of it
    return chassis(processor, words[1:])


if __name__ == "__main__":
    sys.exit(main())
