"""Serve the BMCs of an instance: one process, each BMC at its own address. `python -m bmc.serve --help`

It prints "ready" when all listen, ends by SIGTERM, and ends by itself when the process ends that owns the addresses.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from testbed.errors import VirtualNodesError

from bmc.hardware import Hardware, NoHardware, VirtualNode
from bmc.machine import processors
from bmc.redfish import application
from bmc.spec import Fleet, read_fleet
from bmc.tls import Certificates
from bmc.web import Web, accept_for


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to end; return 0, or 1 after printing what is wrong."""
    parser = argparse.ArgumentParser(prog="bmc.serve", description="Serve the emulated BMCs of an instance.")
    parser.add_argument("fleet", type=Path, help="the BMCs, in JSON (molecule/shared/bmc/spec.py)")
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
    ended, tell = os.pipe2(os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(tell, b"."))
    own_network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    watched = [ended]
    if owner is not None:
        watched.append(os.pidfd_open(owner))
        enter_network(owner)  # before there are threads: the namespace is the thread's
    hardware: Hardware = VirtualNode(fleet.instance, own_network) if fleet.hardware == "nodes" else NoHardware()
    with ExitStack() as stack:
        start(fleet, hardware, stack)
        print("ready", flush=True)
        select.select(watched, [], [])
    return 0


def enter_network(pid: int) -> None:
    """Go into the network namespace of a process; raise VirtualNodesError when that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns is in Python 3.12 and later
    clone_newnet = 0x40000000
    with open(f"/proc/{pid}/ns/net") as namespace:
        if libc.setns(namespace.fileno(), clone_newnet) != 0:
            raise VirtualNodesError(
                f"network namespace of process {pid}: {os.strerror(ctypes.get_errno())}; needs root"
            )


def start(fleet: Fleet, hardware: Hardware, stack: ExitStack) -> dict[str, Web]:
    """Let all BMCs listen; ``stack`` ends them. Return those that serve HTTPS."""
    stopping = threading.Event()
    answer = application()
    found: dict[str, Web] = {}
    for name, processor in processors(fleet, hardware).items():
        stack.callback(processor.own.close)
        spec = processor.own.spec
        if spec.delivered.redfish:
            try:
                found[name] = Web(processor, Certificates(spec, fleet.state), answer, stopping)
            except OSError as error:
                raise VirtualNodesError(f"{name}: {spec.address} port {spec.ports.https}: {error.strerror}") from None
            stack.callback(found[name].close)
    ended, tell = os.pipe2(os.O_CLOEXEC)
    accepting = threading.Thread(target=accept_for, args=(list(found.values()), ended), name="https", daemon=True)
    accepting.start()
    for callback in (lambda: os.close(ended), accepting.join, lambda: os.close(tell), stopping.set):
        stack.callback(callback)
    return found


if __name__ == "__main__":
    sys.exit(main())
