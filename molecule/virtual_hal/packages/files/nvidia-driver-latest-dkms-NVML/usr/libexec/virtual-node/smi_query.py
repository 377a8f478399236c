"""What `nvidia-smi --query-gpu` and `--query-compute-apps` answer, as CSV."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nvml import DEFAULT_CLOCKS, Gpu, Machine, library
from smi_log import SLOWDOWN, named


class Usage(Exception):
    """The command line, or a field in it, is wrong."""


# --query-gpu: value of a GPU, and its unit. Names: `nvidia-smi --help-query-gpu`.
Query = tuple[Callable[[Gpu], Any], "str | None"]
QUERIES: dict[str, Query] = {
    "timestamp": (lambda gpu: time.strftime("%Y/%m/%d %H:%M:%S.000"), None),
    "driver_version": (lambda gpu: library(Machine()), None),
    "count": (lambda gpu: len(Machine().driver["slots"]), None),
    "name": (lambda gpu: gpu.hardware["model"], None),
    "serial": (lambda gpu: gpu.hardware["serial"], None),
    "uuid": (lambda gpu: gpu.hardware["uuid"], None),
    "index": (lambda gpu: gpu.index, None),
    "pci.bus_id": (lambda gpu: gpu.bus_id, None),
    "pci.domain": (lambda gpu: f"0x{gpu.bus_id[4:8]}", None),
    "persistence_mode": (lambda gpu: named(gpu.persistent), None),
    "accounting.mode": (lambda gpu: "Disabled", None),
    "vbios_version": (lambda gpu: "88.00.43.00.04", None),
    "pstate": (lambda gpu: "P0", None),
    "clocks_throttle_reasons.hw_slowdown": (lambda gpu: named(gpu.celsius >= SLOWDOWN, "Active", "Not Active"), None),
    "memory.total": (lambda gpu: gpu.hardware["memory_mib"], "MiB"),
    "memory.used": (lambda gpu: gpu.memory_used, "MiB"),
    "memory.free": (lambda gpu: gpu.hardware["memory_mib"] - gpu.memory_used, "MiB"),
    "compute_mode": (lambda gpu: gpu.compute_mode, None),
    "utilization.gpu": (lambda gpu: 0, "%"),
    "utilization.memory": (lambda gpu: 0, "%"),
    "ecc.mode.current": (lambda gpu: named(gpu.ecc), None),
    "ecc.mode.pending": (lambda gpu: named(gpu.ecc_pending), None),
    "retired_pages.single_bit_ecc.count": (lambda gpu: 0, None),
    "retired_pages.double_bit.count": (lambda gpu: gpu.hardware.get("retired_double_bit", 0), None),
    "retired_pages.pending": (lambda gpu: named(bool(gpu.volatile.get("pending")), "Yes", "No"), None),
    "temperature.gpu": (lambda gpu: gpu.celsius, None),
    "temperature.memory": (lambda gpu: gpu.celsius - 3, None),
    "power.draw": (lambda gpu: "36.42", "W"),
    "power.limit": (lambda gpu: "300.00", "W"),
    "clocks.current.graphics": (lambda gpu: 135, "MHz"),
    "clocks.current.sm": (lambda gpu: 135, "MHz"),
    "clocks.current.memory": (lambda gpu: 877, "MHz"),
    "clocks.applications.graphics": (lambda gpu: gpu.clocks[1], "MHz"),
    "clocks.applications.memory": (lambda gpu: gpu.clocks[0], "MHz"),
    "clocks.default_applications.graphics": (lambda gpu: DEFAULT_CLOCKS[1], "MHz"),
    "clocks.default_applications.memory": (lambda gpu: DEFAULT_CLOCKS[0], "MHz"),
    "clocks.max.sm": (lambda gpu: 1530, "MHz"),
    "clocks.max.memory": (lambda gpu: 877, "MHz"),
}
COUNTERS = ("device_memory", "register_file", "l1_cache", "l2_cache", "total")
for counter in COUNTERS:
    for span in ("volatile", "aggregate"):
        QUERIES[f"ecc.errors.corrected.{span}.{counter}"] = (lambda gpu: 0, None)
        QUERIES[f"ecc.errors.uncorrected.{span}.{counter}"] = (lambda gpu: 0, None)
for counter in ("device_memory", "total"):
    QUERIES[f"ecc.errors.uncorrected.volatile.{counter}"] = (lambda gpu: gpu.double_bit, None)
    QUERIES[f"ecc.errors.uncorrected.aggregate.{counter}"] = (lambda gpu: gpu.hardware.get("double_bit", 0), None)
ALIASES = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.applications.gr": "clocks.applications.graphics",
    "clocks.applications.mem": "clocks.applications.memory",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
}
APP_QUERIES: dict[str, tuple[Callable[[Gpu, dict[str, Any]], Any], str | None]] = {
    "gpu_uuid": (lambda gpu, process: gpu.hardware["uuid"], None),
    "gpu_bus_id": (lambda gpu, process: gpu.bus_id, None),
    "gpu_serial": (lambda gpu, process: gpu.hardware["serial"], None),
    "gpu_name": (lambda gpu, process: gpu.hardware["model"], None),
    "pid": (lambda gpu, process: process["pid"], None),
    "process_name": (lambda gpu, process: process.get("name", "python"), None),
    "used_gpu_memory": (lambda gpu, process: process["memory_mib"], "MiB"),
}
APP_ALIASES = {"used_memory": "used_gpu_memory", "name": "process_name"}


def csv_form(form: str | None) -> tuple[bool, bool]:
    """Return (header, units)."""
    words = (form or "").split(",")
    if "csv" not in words or set(words) - {"csv", "noheader", "nounits"}:
        raise Usage('Error: "--format=" option is missing or its value is not valid; "csv" has to be in it.')
    return "noheader" not in words, "nounits" not in words


def csv(fields: list[tuple[str, Query]], rows: list[list[Any] | str], form: str | None) -> list[str]:
    """Return the lines; a row that is a text stands as it is."""
    header, units = csv_form(form)
    lines = []
    if header:
        lines.append(", ".join(name + (f" [{unit}]" if unit else "") for name, (_, unit) in fields))
    for row in rows:
        if isinstance(row, str):
            lines.append(row)
            continue
        shown = [
            f"{value} {unit}" if unit and units else str(value)
            for value, (_, (_, unit)) in zip(row, fields, strict=True)
        ]
        lines.append(", ".join(shown))
    return lines


def query(gpus: list[Gpu], names: str, form: str | None) -> list[str]:
    """Return what --query-gpu prints: a GPU that is lost has its message in place of its row."""
    fields = []
    for given in names.split(","):
        name = ALIASES.get(given.strip(), given.strip())
        if name not in QUERIES:
            raise Usage(f'Field "{given}" is not a valid field to query.\n')
        fields.append((given.strip(), QUERIES[name]))
    rows: list[list[Any] | str] = [
        gpu.lost_words if gpu.lost else [read(gpu) for _, (read, _) in fields] for gpu in gpus
    ]
    return csv(fields, rows, form)


def query_apps(gpus: list[Gpu], names: str, form: str | None) -> list[str]:
    """Return what --query-compute-apps prints."""
    fields = []
    for given in names.split(","):
        name = APP_ALIASES.get(given.strip(), given.strip())
        if name not in APP_QUERIES:
            raise Usage(f'Field "{given}" is not a valid field to query.\n')
        fields.append((given.strip(), APP_QUERIES[name]))
    rows = [[read(gpu, process) for _, (read, _) in fields] for gpu in gpus for process in gpu.processes]
    return csv(fields, rows, form)  # type: ignore[arg-type]
