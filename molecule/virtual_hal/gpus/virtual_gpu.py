#!/usr/bin/python3
"""The emulated GPUs of a virtual node: what the machine has, and what is broken of it.

This is not a program of NVIDIA's, and no real node has it. The machine's GPUs are in /var/lib/virtual-node/gpus.json.
What the driver knows of them until the node stops is in /run/virtual-node/driver.json. The stand-ins for NVIDIA's
programs show what is there.
"""

from __future__ import annotations

import argparse
import copy
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

HARDWARE = "var/lib/virtual-node/gpus.json"
DRIVER = "run/virtual-node/driver.json"
LOCK = "run/virtual-node/lock"
CELSIUS = 33


class Machine:
    """The GPUs below a root folder. `hardware` outlives a reboot, `driver` does not (empty: not loaded)."""

    def __init__(self, root: str | None = None) -> None:
        self.root = Path(root or os.environ.get("VIRTUAL_NODE_ROOT") or "/")
        self.hardware: dict[str, Any] = _read(self.root / HARDWARE) or {"gpus": []}
        self.driver: dict[str, Any] = _read(self.root / DRIVER)
        self._remember()

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """All GPUs of the machine, those that are lost among them."""
        gpus: list[dict[str, Any]] = self.hardware["gpus"]
        return gpus

    def save(self) -> None:
        """Write what was changed here into both files. What another program has changed since they were read stays."""
        lock = self.root / LOCK
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # until it is closed
            self._write(HARDWARE, merged(self._was[HARDWARE], self.hardware, _read(self.root / HARDWARE)))
            self._write(DRIVER, self._driver_to_write())
        self._remember()

    def _driver_to_write(self) -> dict[str, Any]:
        now = _read(self.root / DRIVER)
        if not self.driver or (self._was[DRIVER] and not now):  # unloaded, by us or by another: nothing is known
            return {}
        changed: dict[str, Any] = merged(self._was[DRIVER], self.driver, now)
        return changed

    def _write(self, path: str, content: dict[str, Any]) -> None:
        if path == DRIVER and not content:
            (self.root / path).unlink(missing_ok=True)
            return
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        new = self.root / (path + ".new")
        new.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
        new.replace(self.root / path)

    def _remember(self) -> None:
        self._was = copy.deepcopy({HARDWARE: self.hardware, DRIVER: self.driver})

    def volatile(self, slot: int) -> dict[str, Any]:
        """What the driver remembers of the GPU in a slot until it is loaded anew."""
        remembered: dict[str, Any] = self.driver.setdefault("volatile", {}).setdefault(str(slot), {})
        return remembered


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return document


def merged(was: Any, ours: Any, now: Any) -> Any:
    """Return ``now`` with what was changed between ``was`` and ``ours``."""
    if ours == was:
        return now
    if isinstance(ours, dict) and isinstance(now, dict):
        before = was if isinstance(was, dict) else {}
        kept = {key: value for key, value in now.items() if key in ours or key not in before}
        changed = {key: value for key, value in ours.items() if key not in before or value != before[key]}
        return kept | {key: merged(before.get(key), value, now.get(key)) for key, value in changed.items()}
    if isinstance(ours, list) and isinstance(now, list) and all(isinstance(fact, dict) for fact in ours + now):
        listed = was if isinstance(was, list) else []
        if len(listed) == len(ours) == len(now):  # the GPUs, each in its place
            return [merged(*three) for three in zip(listed, ours, now, strict=True)]
        added = [fact for fact in ours if fact not in listed and fact not in now]
        return [fact for fact in now if fact in ours or fact not in listed] + added
    return ours


def lose(machine: Machine, options: argparse.Namespace) -> None:
    """The GPU falls off the bus; after a reboot the machine has one GPU less."""
    machine.gpus[options.gpu]["lost"] = True


def hot(machine: Machine, options: argparse.Namespace) -> None:
    """The GPU has this temperature."""
    machine.gpus[options.gpu]["celsius"] = options.celsius


def ecc(machine: Machine, options: argparse.Namespace) -> None:
    """Double-bit errors: counted until the driver is loaded anew, and for the GPU's lifetime."""
    seen = machine.volatile(options.gpu)
    seen["double_bit"] = seen.get("double_bit", 0) + options.errors
    gpu = machine.gpus[options.gpu]
    gpu["double_bit"] = gpu.get("double_bit", 0) + options.errors


def retire(machine: Machine, options: argparse.Namespace) -> None:
    """A page is to be retired, which the next load of the driver does."""
    machine.volatile(options.gpu)["pending"] = True
    gpu = machine.gpus[options.gpu]
    gpu["retired_double_bit"] = gpu.get("retired_double_bit", 0) + 1


def swap(machine: Machine, options: argparse.Namespace) -> None:
    """Somebody put another model of GPU into the slot."""
    gpu = machine.gpus[options.gpu]
    gpu.setdefault("declared", {"model": gpu["model"], "memory_mib": gpu["memory_mib"]})
    gpu["model"], gpu["memory_mib"] = options.model, options.memory_mib


def use(machine: Machine, options: argparse.Namespace) -> None:
    """A process that computes on the GPU, as long as it lives."""
    uses = machine.volatile(options.gpu).setdefault("processes", [])
    uses.append({"pid": options.pid, "memory_mib": options.memory_mib})


def repair(machine: Machine, _options: argparse.Namespace) -> None:
    """All GPUs are as delivered, and the driver finds them as after a boot; what it was told to set stays."""
    for gpu in machine.gpus:
        gpu.update(gpu.pop("declared", {}))
        for name in ("lost", "celsius", "double_bit", "retired_double_bit", "ecc_off", "ecc_off_pending"):
            gpu.pop(name, None)
    if machine.driver:
        machine.driver["volatile"] = {}
        machine.driver["slots"] = list(range(len(machine.gpus)))


def show(machine: Machine, _options: argparse.Namespace) -> None:
    """Print what the machine has, what is wrong with it, and which driver is loaded."""
    for slot, gpu in enumerate(machine.gpus):
        volatile = machine.driver.get("volatile", {}).get(str(slot), {})
        wrong = [name for name in ("lost",) if gpu.get(name)]
        wrong += [f"{gpu['celsius']} C"] if "celsius" in gpu else []
        wrong += [f"{volatile['double_bit']} double-bit errors"] if volatile.get("double_bit") else []
        wrong += ["page retirement pending"] if volatile.get("pending") else []
        print(f"{slot} {gpu['bus_id']} {gpu['model']}: {', '.join(wrong) or 'as delivered'}")
    print(f"driver: {machine.driver.get('loaded', 'not loaded')}")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(
        prog="virtual-gpu", description=__doc__.split("\n\n")[0] + " (Emulation of the virtual HAL.)"
    )
    commands = made.add_subparsers(dest="command", required=True)
    for action in (lose, hot, ecc, retire, swap, use, repair, show):
        command = commands.add_parser(action.__name__, help=action.__doc__)
        command.set_defaults(action=action)
        if action not in (repair, show):
            command.add_argument("gpu", type=int)
        if action is hot:
            command.add_argument("--celsius", type=int, default=95)
        elif action is ecc:
            command.add_argument("--errors", type=int, default=1)
        elif action is swap:
            command.add_argument("model")
        elif action is use:
            command.add_argument("pid", type=int)
        if action in (swap, use):
            command.add_argument("--memory-mib", type=int, default=32480 if action is swap else 1024)
    return made


def main(words: list[str]) -> int:
    """Do what the command line says."""
    options = parser().parse_args(words)
    machine = Machine()
    if "gpu" in options and not 0 <= options.gpu < len(machine.gpus):
        print(f"virtual-gpu: this machine has {len(machine.gpus)} GPUs, from 0", file=sys.stderr)
        return 2
    options.action(machine, options)
    if options.action is not show:
        machine.save()
    if options.action is repair and machine.driver:
        make_devices(machine)
    return 0


def make_devices(machine: Machine) -> None:
    """Make the device nodes of the GPUs that the driver has found, with its numbers (major 195), and remove others."""
    wanted = {f"nvidia{minor}": (195, minor) for minor in range(len(machine.driver["slots"]))}
    wanted |= {
        "nvidiactl": (195, 255),
        "nvidia-modeset": (195, 254),
        "nvidia-uvm": (510, 0),
        "nvidia-uvm-tools": (510, 1),
    }
    folder = machine.root / "dev"
    for path in folder.glob("nvidia[0-9]*"):
        if path.name not in wanted:
            path.unlink()
    for name, (major, minor) in wanted.items():
        path = folder / name
        if not path.exists() and machine.root == Path("/"):
            os.mknod(path, 0o020666, os.makedev(major, minor))
            path.chmod(0o666)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
