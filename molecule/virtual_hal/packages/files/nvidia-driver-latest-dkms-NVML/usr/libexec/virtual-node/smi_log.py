"""What `nvidia-smi -q` knows of a GPU, once, for text and XML: (words of the text, tag of the XML, value or a list of these).

Order and words are those of drivers of the branch 440 (a log of 440.100 and one of an AC922 are kept beside the tests);
a V100 counts ECC errors by single and double bit, later GPUs by SRAM and DRAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

# ruff: noqa: E501  one line an entry
Entry = tuple["str | None", "str | None", Any]

# -d NAME: the headings that stay. Source: nvidia-smi(1), "-d TYPE, --display=TYPE".
DISPLAYS = {
    "MEMORY": ("FB Memory Usage", "BAR1 Memory Usage"),
    "UTILIZATION": ("Utilization", "Encoder Stats", "FBC Stats"),
    "ECC": ("Ecc Mode", "ECC Errors"),
    "TEMPERATURE": ("Temperature",),
    "POWER": ("Power Readings",),
    "CLOCK": (
        "Clocks",
        "Applications Clocks",
        "Default Applications Clocks",
        "Max Clocks",
        "Max Customer Boost Clocks",
        "Clock Policy",
    ),
    "COMPUTE": ("Compute Mode",),
    "PIDS": ("Processes",),
    "PERFORMANCE": ("Performance State", "Clocks Throttle Reasons"),
    "PAGE_RETIREMENT": ("Retired Pages",),
}
# Of a V100-SXM2: slows down from here on. Source: NVIDIA, Tesla V100 thermal limits, as `nvidia-smi -q -d TEMPERATURE` shows them.
SHUTDOWN, SLOWDOWN, OPERATING = 90, 87, 83


def named(value: bool, yes: str = "Enabled", no: str = "Disabled") -> str:
    return yes if value else no


def counters(double: int, kind: str) -> list[Entry]:
    cbu = "N/A" if kind == "single" else 0
    values: list[Entry] = [
        ("Device Memory", "device_memory", double),
        ("Register File", "register_file", 0),
        ("L1 Cache", "l1_cache", 0),
        ("L2 Cache", "l2_cache", 0),
        ("Texture Memory", "texture_memory", "N/A"),
        ("Texture Shared", "texture_shm", "N/A"),
        ("CBU", "cbu", cbu),
        ("Total", "total", double),
    ]
    return values


def errors(double: int) -> list[Entry]:
    return [
        ("Single Bit            ", "single_bit", counters(0, "single")),
        ("Double Bit            ", "double_bit", counters(double, "double")),
    ]


def no_clocks(graphics: int, memory: int) -> list[Entry]:
    return [("Graphics", "graphics_clock", f"{graphics} MHz"), ("Memory", "mem_clock", f"{memory} MHz")]


def all_clocks(graphics: int, memory: int, video: int) -> list[Entry]:
    return [
        ("Graphics", "graphics_clock", f"{graphics} MHz"),
        ("SM", "sm_clock", f"{graphics} MHz"),
        ("Memory", "mem_clock", f"{memory} MHz"),
        ("Video", "video_clock", f"{video} MHz"),
    ]


def pair(tag: str, value: str = "N/A") -> list[Entry]:
    return [("Current", f"current_{tag}", value), ("Pending", f"pending_{tag}", value)]


def gpu_log(gpu: Any) -> list[Entry]:
    """Return everything of one GPU."""
    total = gpu.hardware["memory_mib"]
    domain, bus = gpu.bus_id.split(":")[:2]
    throttled = gpu.celsius >= SLOWDOWN
    retired = gpu.hardware.get("retired_double_bit", 0)
    memory_clock, graphics_clock = gpu.clocks
    active = {True: "Active", False: "Not Active"}
    processes = [
        (None, "process_info", [
            ("Process ID", "pid", process["pid"]),
            ("    Type", "type", "C"),
            ("    Name", "process_name", process.get("name", "python")),
            ("    Used GPU Memory", "used_memory", f"{process['memory_mib']} MiB"),
        ])
        for process in gpu.processes
    ]  # fmt: skip
    return [
        ("Product Name", "product_name", gpu.hardware["model"]),
        ("Product Brand", "product_brand", gpu.hardware["model"].split()[0]),
        ("Display Mode", "display_mode", "Enabled"),
        ("Display Active", "display_active", "Disabled"),
        ("Persistence Mode", "persistence_mode", named(gpu.persistent)),
        ("Accounting Mode", "accounting_mode", "Disabled"),
        ("Accounting Mode Buffer Size", "accounting_mode_buffer_size", 4000),
        ("Driver Model", "driver_model", pair("dm")),
        ("Serial Number", "serial", gpu.hardware["serial"]),
        ("GPU UUID", "uuid", gpu.hardware["uuid"]),
        ("Minor Number", "minor_number", gpu.index),
        ("VBIOS Version", "vbios_version", "88.00.43.00.04"),
        ("MultiGPU Board", "multigpu_board", "No"),
        ("Board ID", "board_id", f"0x{int(domain[4:], 16) << 16 | int(bus, 16) << 8:x}"),
        ("GPU Part Number", "gpu_part_number", "900-2G503-0400-000"),
        ("Inforom Version", "inforom_version", [
            ("Image Version", "img_version", "G503.0201.00.03"),
            ("OEM Object", "oem_object", "1.1"),
            ("ECC Object", "ecc_object", "5.0"),
            ("Power Management Object", "pwr_object", "N/A"),
        ]),
        ("GPU Operation Mode", "gpu_operation_mode", [("Current", "current_gom", "N/A"), ("Pending", "pending_gom", "N/A")]),
        ("GPU Virtualization Mode", "gpu_virtualization_mode", [
            ("Virtualization Mode", "virtualization_mode", "None"), ("Host VGPU Mode", "host_vgpu_mode", "N/A"),
        ]),
        ("IBMNPU", "ibmnpu", [("Relaxed Ordering Mode", "relaxed_ordering_mode", "Disabled")]),
        ("PCI", "pci", [
            ("Bus", "pci_bus", f"0x{bus}"),
            ("Device", "pci_device", "0x00"),
            ("Domain", "pci_domain", f"0x{domain[4:]}"),
            ("Device Id", "pci_device_id", "0x1DB110DE"),
            ("Bus Id", "pci_bus_id", gpu.bus_id),
            ("Sub System Id", "pci_sub_system_id", "0x121210DE"),
            ("GPU Link Info", "pci_gpu_link_info", [
                ("PCIe Generation", "pcie_gen", [("Max", "max_link_gen", 3), ("Current", "current_link_gen", 3)]),
                ("Link Width", "link_widths", [("Max", "max_link_width", "16x"), ("Current", "current_link_width", "2x")]),
            ]),
            ("Bridge Chip", "pci_bridge_chip", [("Type", "bridge_chip_type", "N/A"), ("Firmware", "bridge_chip_fw", "N/A")]),
            ("Replays Since Reset", "replay_counter", 0),
            ("Replay Number Rollovers", "replay_rollover_counter", 0),
            ("Tx Throughput", "tx_util", "0 KB/s"),
            ("Rx Throughput", "rx_util", "0 KB/s"),
        ]),
        ("Fan Speed", "fan_speed", "N/A"),
        ("Performance State", "performance_state", "P0"),
        ("Clocks Throttle Reasons", "clocks_throttle_reasons", [
            ("Idle", "clocks_throttle_reason_gpu_idle", active[not gpu.processes]),
            ("Applications Clocks Setting", "clocks_throttle_reason_applications_clocks_setting", "Not Active"),
            ("SW Power Cap", "clocks_throttle_reason_sw_power_cap", "Not Active"),
            ("HW Slowdown", "clocks_throttle_reason_hw_slowdown", active[throttled]),
            ("    HW Thermal Slowdown", "clocks_throttle_reason_hw_thermal_slowdown", active[throttled]),
            ("    HW Power Brake Slowdown", "clocks_throttle_reason_hw_power_brake_slowdown", "Not Active"),
            ("Sync Boost", "clocks_throttle_reason_sync_boost", "Not Active"),
            ("SW Thermal Slowdown", "clocks_throttle_reason_sw_thermal_slowdown", active[OPERATING <= gpu.celsius < SLOWDOWN]),
            ("Display Clock Setting", "clocks_throttle_reason_display_clocks_setting", "Not Active"),
        ]),
        ("FB Memory Usage", "fb_memory_usage", memory(total, gpu.memory_used)),
        ("BAR1 Memory Usage", "bar1_memory_usage", memory(16384, 0)),
        ("Compute Mode", "compute_mode", gpu.compute_mode),
        ("Utilization", "utilization", [
            ("Gpu", "gpu_util", "0 %"), ("Memory", "memory_util", "0 %"), ("Encoder", "encoder_util", "0 %"), ("Decoder", "decoder_util", "0 %"),
        ]),
        ("Encoder Stats", "encoder_stats", [
            ("Active Sessions", "session_count", 0), ("Average FPS", "average_fps", 0), ("Average Latency", "average_latency", 0),
        ]),
        ("FBC Stats", "fbc_stats", [
            ("Active Sessions", "session_count", 0), ("Average FPS", "average_fps", 0), ("Average Latency", "average_latency", 0),
        ]),
        ("Ecc Mode", "ecc_mode", [
            ("Current", "current_ecc", named(gpu.ecc)), ("Pending", "pending_ecc", named(gpu.ecc_pending)),
        ]),
        ("ECC Errors", "ecc_errors", [
            ("Volatile", "volatile", errors(gpu.double_bit)),
            ("Aggregate", "aggregate", errors(gpu.hardware.get("double_bit", 0))),
        ]),
        ("Retired Pages", "retired_pages", [
            ("Single Bit ECC", "multiple_single_bit_retirement", 0),
            ("Double Bit ECC", "double_bit_retirement", retired),
            ("Pending Page Blacklist", "pending_retirement", "Yes" if gpu.volatile.get("pending") else "No"),
        ]),
        ("Temperature", "temperature", [
            ("GPU Current Temp", "gpu_temp", f"{gpu.celsius} C"),
            ("GPU Shutdown Temp", "gpu_temp_max_threshold", f"{SHUTDOWN} C"),
            ("GPU Slowdown Temp", "gpu_temp_slow_threshold", f"{SLOWDOWN} C"),
            ("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", f"{OPERATING} C"),
            ("Memory Current Temp", "memory_temp", f"{gpu.celsius - 3} C"),
            ("Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "85 C"),
        ]),
        ("Power Readings", "power_readings", [
            ("Power Management", "power_management", "Supported"),
            ("Power Draw", "power_draw", "36.42 W"),
            ("Power Limit", "power_limit", "300.00 W"),
            ("Default Power Limit", "default_power_limit", "300.00 W"),
            ("Enforced Power Limit", "enforced_power_limit", "300.00 W"),
            ("Min Power Limit", "min_power_limit", "150.00 W"),
            ("Max Power Limit", "max_power_limit", "300.00 W"),
        ]),
        ("Clocks", "clocks", all_clocks(135, 877, 555)),
        ("Applications Clocks", "applications_clocks", no_clocks(graphics_clock, memory_clock)),
        ("Default Applications Clocks", "default_applications_clocks", no_clocks(1312, 877)),
        ("Max Clocks", "max_clocks", all_clocks(1530, 877, 1372)),
        ("Max Customer Boost Clocks", "max_customer_boost_clocks", [("Graphics", "graphics_clock", "1530 MHz")]),
        ("Clock Policy", "clock_policy", [
            ("Auto Boost", "auto_boost", "N/A"), ("Auto Boost Default", "auto_boost_default", "N/A"),
        ]),
        ("Processes", "processes", processes or "None"),
    ]  # fmt: skip


def memory(total: int, used: int) -> list[Entry]:
    return [
        ("Total", "total", f"{total} MiB"),
        ("Used", "used", f"{used} MiB"),
        ("Free", "free", f"{total - used} MiB"),
    ]


def text(entries: list[Entry], depth: int = 1) -> Iterator[str]:
    """Yield the lines below a GPU."""
    for words, _, value in entries:
        if words is None:
            yield from text(value, depth)
        elif isinstance(value, list):
            yield "    " * depth + words
            yield from text(value, depth + 1)
        else:
            yield ("    " * depth + words).ljust(36) + f": {value}"


def xml(entries: list[Entry], depth: int = 2) -> Iterator[str]:
    """Yield the lines inside <gpu>."""
    for _, tag, value in entries:
        space = "\t" * depth
        if isinstance(value, list):
            yield f"{space}<{tag}>"
            yield from xml(value, depth + 1)
            yield f"{space}</{tag}>"
        elif (tag, value) == ("processes", "None"):
            yield f"{space}<processes>"
            yield f"{space}</processes>"
        else:
            yield f"{space}<{tag}>{escape(str(value))}</{tag}>"
