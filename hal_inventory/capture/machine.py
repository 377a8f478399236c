"""What one machine is, from its capture: facts by the fields of the model, and what is wrong with the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hal_inventory.capture.document import BmcCapture, Capture, IpmiCapture, NodeCapture
from hal_inventory.capture.tools import dmidecode, ibstat, ip, ipmitool, lsblk, lscpu, nvidia_smi, redfish

# Modules are at least that big, and firmware keeps less than that for itself.
_MODULE_MB = 8192
_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


@dataclass(frozen=True)
class Fault:
    """Something that a machine says is wrong with it, or that could not be read; ``field`` is the capture's."""

    field: str
    message: str


@dataclass(frozen=True)
class Machine:
    """Facts of one machine; None and empty are what the capture does not say."""

    host: str
    addresses: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, ip.Link] = field(default_factory=dict)
    serial: str | None = None
    model: str | None = None
    memory_mb: int = 0
    processors: lscpu.Processors | None = None
    kernel: str | None = None
    gpus: nvidia_smi.Gpus | None = None
    ports: tuple[ibstat.Port, ...] = ()
    disks: tuple[lsblk.Disk, ...] = ()
    bmc_macs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    faults: tuple[Fault, ...] = ()


def of_capture(capture: Capture) -> Machine:
    """Return the machine of any capture."""
    if isinstance(capture, NodeCapture):
        return of_node(capture)
    return of_bmc(capture) if isinstance(capture, BmcCapture) else of_ipmi(capture)


def of_node(capture: NodeCapture) -> Machine:
    """Return a machine by its own tools."""
    said = {name: output.stdout for name, output in capture.outputs.items()}
    processors = lscpu.parse(said.get("lscpu", ""))
    system = dmidecode.parse(said.get("dmidecode", ""))
    nvidia = capture.outputs.get("nvidia_smi")
    gpus = nvidia_smi.parse(f"{nvidia.stdout}\n{nvidia.stderr}") if nvidia and nvidia.status is not None else None
    ports = ibstat.parse(said.get("ibstat", ""))
    bonds = {path: text for path, text in capture.files.items() if path.startswith("/proc/net/bonding/")}
    bmc = ipmitool.mac(said.get("ipmitool", ""))
    files = {path: text.strip() for path, text in capture.files.items()}
    serial = dmidecode.value(re.sub(r"^IBM,\d\d", "", files.get("/proc/device-tree/system-id", "")))
    return Machine(
        host=capture.host.partition(".")[0].lower(),
        addresses=ip.addresses(said.get("ip_address", "")),
        links=ip.links(said.get("ip_link", ""), bonds),
        serial=serial or (system.serial if system else None),
        model=dmidecode.value(files.get("/proc/device-tree/model", "")) or (system.model if system else None),
        memory_mb=(system.memory_mb if system else 0) or _memory(capture.files, processors),
        processors=processors,
        kernel=said.get("uname", "").strip() or None,
        gpus=gpus,
        ports=ports,
        disks=lsblk.parse(said.get("lsblk", "")),
        bmc_macs=((bmc, ()),) if bmc else (),
        faults=tuple(_faults(capture, processors, gpus, ports)),
    )


def of_bmc(capture: BmcCapture) -> Machine:
    """Return a machine by its BMC."""
    seen = redfish.parse(capture.resources)
    faults = () if seen.serial else (Fault("resources", "no system or chassis has a serial number"),)
    return Machine(
        host=(seen.host_name or "").partition(".")[0].lower(),
        serial=seen.serial,
        model=seen.model,
        memory_mb=seen.memory_mb,
        bmc_macs=seen.macs,
        faults=faults,
    )


def of_ipmi(capture: IpmiCapture) -> Machine:
    """Return a machine by its BMC's FRU."""
    serial = dmidecode.value(capture.serial or "")
    return Machine(
        host="",
        serial=serial,
        model=dmidecode.value(capture.model or ""),
        bmc_macs=tuple((mac, ()) for mac in capture.macs),
        faults=() if serial else (Fault("serial", "FRU 0 of the BMC has no serial number"),),
    )


def _memory(files: Mapping[str, str], processors: lscpu.Processors | None) -> int:
    """Return the memory of the NUMA nodes that have CPUs, rounded up to whole modules.

    MemTotal of the machine would include that of the GPUs on an AC922: their memory is NUMA nodes without CPUs.
    """
    total = 0
    for number, _cpus in processors.numa if processors else ():
        matched = _TOTAL.search(files.get(f"/sys/devices/system/node/node{number}/meminfo", ""))
        if matched is None:
            return 0
        total += int(matched[1]) // 1024
    return -(-total // _MODULE_MB) * _MODULE_MB


def _faults(
    capture: NodeCapture,
    processors: lscpu.Processors | None,
    gpus: nvidia_smi.Gpus | None,
    ports: tuple[ibstat.Port, ...],
) -> list[Fault]:
    faults = [
        Fault(f"outputs.{name}", output.stderr.strip())
        for name, output in sorted(capture.outputs.items())
        if output.status is None and output.stderr.startswith("no answer")
    ]
    if processors is None:
        faults.append(Fault("outputs.lscpu", "has no processors in it"))
    elif processors.offline:
        faults.append(Fault("outputs.lscpu", f"processors {processors.offline} are off"))
    faults += [Fault("outputs.nvidia_smi", lost) for lost in (gpus.lost if gpus else ())]
    if gpus and len(gpus.answered) < gpus.attached:
        faults.append(Fault("outputs.nvidia_smi", f"{len(gpus.answered)} of {gpus.attached} GPUs answered"))
    faults += [
        Fault("outputs.ibstat", f"port {port.name} is {port.state}, {port.physical}")
        for port in ports
        if (port.state, port.physical) != ("Active", "LinkUp")
    ]
    return faults
