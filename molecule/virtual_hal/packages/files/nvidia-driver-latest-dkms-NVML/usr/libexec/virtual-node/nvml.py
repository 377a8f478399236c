"""Stand-in for NVML and the kernel module behind it: which driver is loaded, which GPUs it has found, how they are set.

The errors and their numbers are NVML's (nvml.h, nvmlReturn_t), which nvidia-smi ends with.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

sys.path.insert(0, "/usr/libexec/virtual-node")
from virtual_gpu import CELSIUS, Machine, make_devices

__all__ = ["Gpu", "Machine", "NvmlError", "initialise", "library", "load"]

# The latest CUDA that a driver of the branch supports. Source: NVIDIA, CUDA Toolkit release notes, table "CUDA Driver".
CUDA = {"410": "10.0", "418": "10.1", "440": "10.2", "450": "11.0"}
PID_FILE = "run/nvidia-persistenced/nvidia-persistenced.pid"
DEFAULT_CLOCKS = [877, 1312]


class NvmlError(Exception):
    """A call failed: its number and its words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Gpu:
    """A GPU that the driver has found. `index` is its number in the driver, `slot` its place in the machine."""

    def __init__(self, machine: Machine, index: int, slot: int, persistent: bool) -> None:
        self._machine = machine
        self.index = index
        self.hardware: dict[str, Any] = machine.gpus[slot]
        self.volatile: dict[str, Any] = machine.volatile(slot)
        self._persistent = persistent

    @property
    def bus_id(self) -> str:
        return str(self.hardware["bus_id"])

    @property
    def lost(self) -> bool:
        return bool(self.hardware.get("lost"))

    @property
    def lost_words(self) -> str:
        bus = self.bus_id[4:]
        return (
            f"Unable to determine the device handle for GPU {bus}: GPU is lost.  Reboot the system to recover this GPU"
        )

    @property
    def persistent(self) -> bool:
        return bool(self.volatile.get("persistent", self._persistent))

    @property
    def celsius(self) -> int:
        return int(self.hardware.get("celsius", CELSIUS + self.index % 3))

    @property
    def compute_mode(self) -> str:
        return str(self.volatile.get("compute_mode", "Default"))

    @property
    def clocks(self) -> list[int]:
        clocks: list[int] = self.volatile.get("clocks", DEFAULT_CLOCKS)
        return clocks

    @property
    def ecc(self) -> bool:
        """As it is since the driver was loaded; ecc_off of the hardware is what it will be then."""
        return not self.hardware.get("ecc_off")

    @property
    def ecc_pending(self) -> bool:
        return not self.hardware.get("ecc_off_pending", self.hardware.get("ecc_off"))

    @property
    def double_bit(self) -> int:
        return int(self.volatile.get("double_bit", 0))

    @property
    def processes(self) -> list[dict[str, Any]]:
        """Those that live."""
        return [
            process
            for process in self.volatile.get("processes", [])
            if (self._machine.root / f"proc/{process['pid']}").exists()
        ]

    @property
    def memory_used(self) -> int:
        return sum(process["memory_mib"] for process in self.processes)


def library(machine: Machine) -> str:
    """Return the version of the installed library, which its file's name has."""
    libraries = sorted((machine.root / "usr/lib64").glob("libnvidia-ml.so.[0-9]*.[0-9]*"))
    if not libraries:
        raise NvmlError(12, "NVML Shared Library couldn't be found or loaded")
    return str(libraries[-1].name.partition(".so.")[2])


def module(machine: Machine) -> str | None:
    """Return the version of the module that is built for the running kernel; None when there is none."""
    kernel = (
        subprocess.run(["uname", "-r"], capture_output=True, text=True, check=False).stdout.strip()
        or platform.release()
    )
    for path in sorted((machine.root / f"lib/modules/{kernel}").glob("extra/nvidia.ko*")):
        done = subprocess.run(["modinfo", "-F", "version", path], capture_output=True, text=True, check=False)
        return done.stdout.strip() or None
    return None


def daemon_runs(machine: Machine) -> bool:
    """Return whether nvidia-persistenced holds the GPUs."""
    try:
        pid = int((machine.root / PID_FILE).read_text())
    except (OSError, ValueError):
        return False
    return bool((machine.root / f"proc/{pid}").exists())


def load(machine: Machine) -> None:
    """Load the module unless it is loaded: GPUs get numbers and device nodes, counters begin at zero."""
    if machine.driver:
        return
    version = module(machine)
    if version is None:
        raise NvmlError(9, "Module nvidia is not built for this kernel")
    for gpu in machine.gpus:
        pending = gpu.pop("ecc_off_pending", None)
        if pending is not None:
            gpu["ecc_off"] = pending
    slots = [slot for slot, gpu in enumerate(machine.gpus) if not gpu.get("lost")]
    machine.driver.update({"loaded": version, "slots": slots, "volatile": {}})
    machine.save()
    make_devices(machine)


def initialise(machine: Machine) -> list[Gpu]:
    """Return the GPUs of the loaded driver; raise NvmlError for what nvmlInit refuses."""
    installed = library(machine)
    if not machine.driver:
        raise NvmlError(
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running.\n",
        )
    if machine.driver["loaded"] != installed:
        raise NvmlError(18, "Failed to initialize NVML: Driver/library version mismatch")
    held = daemon_runs(machine)
    return [Gpu(machine, index, slot, held) for index, slot in enumerate(machine.driver["slots"])]


def is_root() -> bool:
    # Below a root folder of its own a program is whoever it is there.
    return os.geteuid() == 0 or "VIRTUAL_NODE_ROOT" in os.environ
