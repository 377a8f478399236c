"""The stand-in of nvidia-smi answers in the forms of the real program, of which captures are kept."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from hal_inventory.capture.tools import nvidia_smi
from hal_inventory.capture.tools.indented import Section, parse
from tests.unit.roles.nvidia_driver.conftest import Node

Captured = Callable[[str], str]
QUERY = ("--query-gpu=index,uuid,temperature.gpu", "--format=csv,noheader,nounits")
LOST = "Unable to determine the device handle for GPU 0004:05:00.0: GPU is lost.  Reboot the system to recover this GPU"
AC922 = Path(__file__).parents[2] / "hal_inventory/capture/captures/nvidia_smi/ac922_first_of_four.txt"


def shape(text: str) -> str:
    """A table without what differs from machine to machine, number by number and at its width."""
    text = re.sub(r"\b(GeForce GTX 165\.\.\.|Tesla V100-SXM2\.\.\.)", lambda hit: "N" * len(hit[0]), text)
    return re.sub(r"[0-9]", "9", re.sub(r"(?<=\| )N/A", "N/A", text))


def outline(section: Section, depth: int = 0) -> list[str]:
    """Names of a log's values and headings in their order, without the values."""
    below = [f"{depth} {one.title}" for one in section.sections]
    return [f"{depth} {name}" for name in section.values] + [
        line for head, one in zip(below, section.sections, strict=True) for line in (head, *outline(one, depth + 1))
    ]


def test_the_log_has_the_outline_of_a_real_one_of_its_branch(node: Node, captured: Captured) -> None:
    status, made = node.smi("-q", "-i", "0")
    assert status == 0
    real, ours = (
        [line for line in outline(parse(text)) if "GPU 0000" not in line]
        for text in (captured("smi_query_440.100.txt"), made)
    )
    # A V100 counts errors by bit, the GPU of the capture by kind of memory: that part is compared below.
    counters = re.compile(r"[2-4] (SRAM|DRAM|Single Bit|Double Bit|Device|Register|L1|L2|Texture|CBU|Total)\b.*")
    assert [line for line in ours if not counters.match(line)] == [line for line in real if not counters.match(line)]


def test_the_log_stands_in_the_columns_of_a_real_one(node: Node, captured: Captured) -> None:
    real = captured("smi_query_440.100.txt")
    made = node.smi("-q", "-i", "0")[1]
    assert {line.index(": ") for line in real.splitlines() if ": " in line} == {36}
    assert {line.index(": ") for line in made.splitlines() if ": " in line} == {36}
    assert "            Single Bit            \n                Device Memory       : 0\n" in made
    assert "            Single Bit            \n                Device Memory       : 0\n" in AC922.read_text()


def test_the_table_is_a_real_one(node: Node, captured: Captured) -> None:
    head, *real = captured("smi_table_440.100.txt").splitlines()
    made_head, *made = node.smi("-i", "0")[1].splitlines()
    assert len(made_head) == len(head) == 31
    assert [len(line) for line in made] == [len(line) for line in real] == [79] * len(real)
    ac922 = captured("smi_table_ac922_418.67.txt").splitlines()
    everything = node.smi()[1].splitlines()[1 : 1 + len(ac922)]
    assert [shape(line) for line in everything[2:]] == [shape(line).replace(" On ", " Off") for line in ac922[2:]]


def test_the_topology_is_an_ac922s(node: Node, captured: Captured) -> None:
    status, made = node.smi("topo", "-m")
    assert status == 0
    real = [line.split("\t") for line in captured("topo_ac922.txt").splitlines()]
    # Without network cards and without the column that came with the branch 450.
    wanted = ["\t".join([*line[:5], line[9]]) for line in real if not line[0].startswith("mlx")]
    assert made.splitlines()[:5] == wanted


def test_our_own_parser_reads_the_log(node: Node) -> None:
    seen = nvidia_smi.parse(node.smi("-q")[1])
    assert (len(seen.answered), seen.attached, seen.lost) == (4, 4, ())
    assert [gpu.bus_id for gpu in seen.answered] == [
        "00000004:04:00.0",
        "00000004:05:00.0",
        "00000035:03:00.0",
        "00000035:04:00.0",
    ]
    node.break_("lose", "1")
    seen = nvidia_smi.parse(node.smi("-q")[1])
    assert (seen.answered, seen.lost) == (
        (),
        ("GPU 0004:05:00.0: GPU is lost.  Reboot the system to recover this GPU",),
    )


def test_xml_and_text_say_the_same(node: Node) -> None:
    node.break_("ecc", "2", "--errors", "3")
    root = ElementTree.fromstring(node.smi("-q", "-x")[1].partition("\n")[2].partition("\n")[2])
    gpus = root.findall("gpu")
    assert gpus[0].get("id") == "00000004:04:00.0"
    assert gpus[2].findtext("ecc_errors/volatile/double_bit/total") == "3"
    assert root.findtext("attached_gpus") == "4"
    text = parse(node.smi("-q", "-i", "2")[1]).sections
    volatile = next(one for one in text if one.title.startswith("GPU")).find("ECC Errors").find("Volatile")  # type: ignore[union-attr]
    assert volatile is not None
    assert volatile.find("Double Bit").values["Total"] == "3"  # type: ignore[union-attr]


def test_display_leaves_out_what_was_not_asked(node: Node) -> None:
    status, made = node.smi("-q", "-d", "TEMPERATURE", "-i", "3")
    assert status == 0
    gpu = next(one for one in parse(made).sections if one.title.startswith("GPU"))
    assert [one.title for one in gpu.sections] == ["Temperature"]


def test_csv_has_units_and_a_header_unless_they_are_not_wanted(node: Node) -> None:
    fields = "--query-gpu=index,memory.total,power.draw,clocks.applications.memory"
    assert node.smi(fields, "--format=csv", "-i", "1") == (
        0,
        "index, memory.total [MiB], power.draw [W], clocks.applications.memory [MHz]\n1, 16130 MiB, 36.42 W, 877 MHz\n",
    )
    assert node.smi(fields, "--format=csv,noheader,nounits", "-i", "1") == (0, "1, 16130, 36.42, 877\n")


def test_a_lost_gpu_has_its_message_and_the_others_their_rows(node: Node) -> None:
    node.break_("lose", "1")
    status, said = node.smi(*QUERY)
    assert status == 15
    assert [line[:2] for line in said.splitlines()] == ["0,", "Un", "2,", "3,"]
    for arguments in ((), ("-q",), ("-L", "-i", "1"), ("topo", "-m"), ("-i", "1", "-pm", "1")):
        status, said = node.smi(*arguments)
        assert (status, said.splitlines()[0]) == (15, LOST), arguments


@pytest.mark.parametrize(
    ("library", "loaded", "status", "words"),
    [
        ("440.64.00", "440.33.01", 18, "Failed to initialize NVML: Driver/library version mismatch"),
        (
            "440.33.01",
            None,
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running.",
        ),
    ],
)
def test_a_driver_that_does_not_answer_says_so(
    node: Node, library: str, loaded: str | None, status: int, words: str
) -> None:
    next(node.root.glob("usr/lib64/libnvidia*")).rename(node.root / f"usr/lib64/libnvidia-ml.so.{library}")
    node.driver(**({"loaded": loaded, "slots": [0, 1, 2, 3], "volatile": {}} if loaded else {}))
    for arguments in ((), ("-L",), QUERY, ("-q",), ("topo", "-m")):
        ended, said = node.smi(*arguments)
        assert (ended, said.splitlines()[0]) == (status, words)


def test_a_gpu_that_was_lost_at_boot_has_no_number_and_the_next_take_its(node: Node) -> None:
    node.driver(loaded="440.33.01", slots=[0, 2, 3], volatile={})
    rows = node.smi("--query-gpu=index,pci.bus_id", "--format=csv,noheader")[1].splitlines()
    assert rows == ["0, 00000004:04:00.0", "1, 00000035:03:00.0", "2, 00000035:04:00.0"]


def test_settings_are_said_and_remembered(node: Node) -> None:
    asked = ("--query-gpu=persistence_mode,compute_mode,clocks.applications.graphics", "--format=csv,noheader,nounits")
    said = [
        node.smi("-i", "0", *words)[1].splitlines()[0]
        for words in (("-pm", "1"), ("-pm", "1"), ("-c", "EXCLUSIVE_PROCESS"), ("-ac", "877,1530"))
    ]
    assert said == [
        "Enabled persistence mode for GPU 00000004:04:00.0.",
        "Persistence mode is already Enabled for GPU 00000004:04:00.0.",
        "Set compute mode to EXCLUSIVE_PROCESS for GPU 00000004:04:00.0.",
        'Applications clocks set to "(MEM 877, SM 1530)" for GPU 00000004:04:00.0',
    ]
    rows = node.smi(*asked)[1].splitlines()
    assert rows[:2] == ["Enabled, Exclusive_Process, 1530", "Disabled, Default, 1312"]
    assert node.smi("-ac", "877,99")[0] == 2
    node.smi("-rac")
    assert node.smi(*asked, "-i", "0")[1] == "Enabled, Exclusive_Process, 1312\n"


def test_error_correction_waits_for_a_reboot(node: Node) -> None:
    assert node.smi("-e", "0", "-i", "1")[1].splitlines() == [
        "Disabled ECC support for GPU 00000004:05:00.0.",
        "All done.",
        "Reboot required.",
    ]
    asked = ("--query-gpu=ecc.mode.current,ecc.mode.pending", "--format=csv,noheader", "-i", "1")
    assert node.smi(*asked) == (0, "Enabled, Disabled\n")


def test_a_gpu_in_use_is_not_reset_and_its_process_is_shown(node: Node) -> None:
    node.break_("use", "1", str(os.getpid()))
    status, said = node.smi("--gpu-reset", "-i", "1")
    assert status != 0
    assert "could not be reset:\n  GPU 00000004:05:00.0: In use by another client\n" in said
    apps = ("--query-compute-apps=gpu_bus_id,pid,used_memory", "--format=csv,noheader")
    assert node.smi(*apps) == (0, f"00000004:05:00.0, {os.getpid()}, 1024 MiB\n")
    row = next(line for line in node.smi()[1].splitlines() if str(os.getpid()) in line)
    assert len(row) == 79
    assert node.smi("--gpu-reset", "-i", "0") == (0, "GPU 00000004:04:00.0 was successfully reset.\nAll done.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--query-gpu=color", "--format=csv"), 2, 'Field "color" is not a valid field to query.'),
        (("--frobnicate",), 2, "Invalid option: --frobnicate"),
        (("-i", "7"), 6, "No devices were found"),
        (("--query-gpu=index",), 2, '"--format="'),
    ],
)
def test_what_is_wrong_is_refused(node: Node, arguments: tuple[str, ...], status: int, words: str) -> None:
    ended, said = node.smi(*arguments)
    assert ended == status
    assert words in said


def test_help_says_that_it_is_a_stand_in(node: Node) -> None:
    assert "stand-in of the virtual HAL" in node.smi("--help")[1]


def test_repair_makes_all_as_delivered(node: Node) -> None:
    for fault in (("lose", "0"), ("hot", "1"), ("ecc", "2"), ("retire", "3"), ("swap", "3", "Tesla P100")):
        node.break_(*fault)
    assert "as delivered" not in node.break_("show")
    # Device nodes are root's to make.
    if os.geteuid() == 0:
        node.break_("repair")
        assert node.break_("show").count("as delivered") == 4
        assert node.smi("--query-gpu=name", "--format=csv,noheader")[1].splitlines() == ["Tesla V100-SXM2-16GB"] * 4
