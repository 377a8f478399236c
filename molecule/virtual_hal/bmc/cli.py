"""`molecule/virtual_hal/setup bmc`: break and mend emulated BMCs while they run, look at them, serve them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.cache import cache_dir
from testbed.errors import VirtualNodesError
from testbed.run import LAB, as_root

from bmc.chassis import ask
from bmc.control import SOCKET
from bmc.hardware import VirtualNode
from bmc.machine import Machine, processors, repair, swap
from bmc.spec import Fleet, read_fleet

FLEET = "fleet.json"
# Faults that are a switch, by the field that they set.
SWITCHES = {
    "silent": "silent",
    "504": "gateway_timeout",
    "power-ignored": "power_ignored",
    "boot-override-ignored": "boot_override_ignored",
    "boot-override-lost": "boot_override_lost",
    "disk-missing": "disk_missing",
    "old-firmware": "old_firmware",
}
WITH_A_WORD = ("wrong-serial", "swapped-with")
FAULTS = (*SWITCHES, "slow", *WITH_A_WORD, "password-must-change", "repair", "show")


def folder(instance: str) -> Path:
    """Return where the BMCs of an instance keep their state."""
    return cache_dir() / "bmc" / instance


def load(instance: str) -> Fleet:
    """Return the BMCs of an instance; raise VirtualNodesError when it has none."""
    path = folder(instance) / FLEET
    try:
        return read_fleet(path.read_text(), str(path))
    except FileNotFoundError:
        raise VirtualNodesError(
            f"instance {instance} has no emulated BMCs: set virtual_bmcs: true and make the nodes"
        ) from None


def main(argv: Sequence[str], instance: str) -> int:
    """Run one command; return 0, or raise VirtualNodesError that says what is wrong."""
    parser = argparse.ArgumentParser(prog="setup bmc", description="Emulated BMCs of the virtual nodes.")
    parts = parser.add_subparsers(dest="part", required=True)
    fault = parts.add_parser("fault", help="switch a fault on while the BMC runs, or all of them off (repair)")
    fault.add_argument("node")
    fault.add_argument("fault", choices=FAULTS)
    fault.add_argument("word", nargs="?", default="", help="wrong-serial: which; swapped-with: which node")
    fault.add_argument("--seconds", type=float, default=0.0, help="slow: how long each answer takes")
    parts.add_parser("show", help="all BMCs: power, boot override, faults")
    console = parts.add_parser("console", help="what a node printed on its console")
    console.add_argument("node")
    serve = parts.add_parser("serve", help="serve them; nodes create calls this")
    serve.add_argument("--network-of", type=int, metavar="PID", help="in this process's network namespace")
    arguments = parser.parse_args(argv)
    if arguments.part == "fault":
        if (arguments.fault in WITH_A_WORD) != bool(arguments.word):
            parser.error("wrong-serial needs a serial number, swapped-with a node; the others take no word")
        if (arguments.fault == "slow") != (arguments.seconds > 0):
            parser.error("slow needs --seconds, more than 0; the others take none")
    fleet = load(instance)
    if os.geteuid() != 0 and fleet.hardware == "nodes":  # the state is root's, as containers are
        words = [sys.executable, str(LAB / "setup"), "bmc", "--instance", instance, *argv]
        command = as_root(words, {"HAL_CACHE_DIR": str(cache_dir())})
        os.execvp(command[0], command)
    if arguments.part == "serve":
        from bmc.serve import serve as run  # the servers' libraries take half a second

        return run(fleet, arguments.network_of)
    hardware = VirtualNode(instance) if fleet.hardware == "nodes" else None
    machines = {name: processor.own for name, processor in processors(fleet, hardware).items()}
    if arguments.part == "show":
        print("\n".join(shown(machines)))
    elif arguments.part == "console":
        print(_named(machines, fleet, arguments.node).console(), end="")
    else:
        machine = _named(machines, fleet, arguments.node)
        switch(machine, machines, fleet, arguments.fault, arguments.word, arguments.seconds)
        print(f"{arguments.node}: {', '.join(_faults(machine)) or 'works'}")
        if arguments.fault != "show":
            _tell(fleet)
    return 0


def switch(
    machine: Machine, machines: Mapping[str, Machine], fleet: Fleet, fault: str, word: str = "", seconds: float = 0.0
) -> None:
    """Switch a fault on, or repair; raise VirtualNodesError for one that this kind of BMC cannot have."""
    name, kind = machine.spec.name, machine.spec.kind
    if fault == "old-firmware" and kind != "openbmc":
        raise VirtualNodesError(f"{name}: its BMC is of kind {kind}; old-firmware is OpenBMC's")
    if fault == "password-must-change" and not machine.spec.delivered.redfish:
        raise VirtualNodesError(f"{name}: its BMC is of kind {kind}; IPMI knows no password that has to be changed")
    if fault == "swapped-with":
        other = _named(machines, fleet, word)
        for swapped in (machine, other):
            repair_swap(swapped, machines)
        swap(machine, other)
    elif fault == "repair":
        repair(machine, machines.values())
    elif fault != "show":
        with machine.kept.change() as state:
            if fault in SWITCHES:
                setattr(state.faults, SWITCHES[fault], True)
            elif fault == "slow":
                state.faults.slow_seconds = seconds
            elif fault == "wrong-serial":
                state.faults.serial = word
            else:
                for user in state.users.values():
                    user.must_change = True


def repair_swap(machine: Machine, machines: Mapping[str, Machine]) -> None:
    """Put the cables of a BMC back, those of the one it was swapped with too."""
    for connected in machines.values():
        if connected is machine or connected.faults().swapped_with == machine.spec.name:
            with connected.kept.change() as state:
                state.faults.swapped_with = None


def shown(machines: Mapping[str, Machine]) -> list[str]:
    """Return a table of the BMCs: a heading, then one line each."""
    rows = [("NODE", "KIND", "ADDRESS", "POWER", "NEXT START", "FAULTS")]
    for name, machine in machines.items():
        override = machine.override()
        start = "-" if override.enabled == "disabled" else f"{override.target}, {override.enabled}"
        try:
            power = "on" if machine.power() else "off"
        except VirtualNodesError:
            power = "unknown"
        spec = machine.spec
        rows.append((name, spec.kind, spec.address, power, start, ", ".join(_faults(machine)) or "-"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _faults(machine: Machine) -> list[str]:
    must = any(user.must_change for user in machine.users().values())
    return [*machine.faults().shown(), *(["password-must-change"] if must else [])]


def _named(machines: Mapping[str, Machine], fleet: Fleet, name: str) -> Machine:
    return machines[fleet.named(name).name]


def _tell(fleet: Fleet) -> None:
    """Let the serving process follow what was changed; say so when there is none."""
    try:
        done, text = ask(str(fleet.state / SOCKET), ["refresh"])
    except OSError:
        print("nobody serves these BMCs now: the next who does will follow", file=sys.stderr)
        return
    if not done:
        raise VirtualNodesError(f"the serving process: {text.strip()}")
