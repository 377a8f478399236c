"""The role's shell programs, with the stand-in of nvidia-smi and files of a driver that a container does not have."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.nvidia_driver.conftest import PARTS, PROJECT, SMI, Node

Program = Callable[..., list[str]]
# As /proc/driver/nvidia/params shows them; source: public posts of the file, drivers 410 to 470.
PARAMS = 'Mobile: 4294967295\nEnableStreamMemOPs: 1\nRegistryDwords: "PeerMappingOverride=1"\nRmMsg: ""\n'


@pytest.fixture
def program(node: Node) -> Program:
    """Run a file of the role on the emulated node: its lines. Paths of the kernel are below the node's folder."""
    bin_folder = node.root / "bin"
    bin_folder.mkdir()
    smi = bin_folder / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(SMI)])} "$@"\n')
    smi.chmod(0o755)

    def run(name: str, *arguments: str) -> list[str]:
        text = (PROJECT / "roles/nvidia_driver/files" / name).read_text()
        for path in ("/proc/driver", "/sys/module"):
            text = text.replace(path, f"{node.root}{path}")
        done = subprocess.run(
            ["/bin/sh", "-c", text, name, *arguments],
            env={
                "PATH": f"{bin_folder}:{os.environ['PATH']}",
                "VIRTUAL_NODE_ROOT": str(node.root),
                "PYTHONPATH": os.pathsep.join(map(str, PARTS)),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    return run


def pending(program: Program, memory: str = "no", **options: str) -> list[str]:
    """What waits for a reboot of a node that should have 440.33.01."""
    return program(
        "reboot_pending.sh", "440.33.01", memory, "yes", *(f"{key}={value}" for key, value in options.items())
    )


def test_a_node_as_it_should_be_waits_for_nothing(node: Node, program: Program) -> None:
    params = node.root / "proc/driver/nvidia/params"
    params.parent.mkdir(parents=True)
    params.write_text(PARAMS)
    assert pending(program, EnableStreamMemOPs="1", RegistryDwords="PeerMappingOverride=1") == []
    assert pending(program, EnableStreamMemOPs="0", RmMsg="x") == [
        "the loaded module has EnableStreamMemOPs=1, not 0",
        "the loaded module has RmMsg=, not x",
    ]
    params.write_text(PARAMS.replace("=1", "=1;"))
    assert pending(program, RegistryDwords="PeerMappingOverride=1") == []


def test_what_waits_for_a_reboot_is_said(node: Node, program: Program) -> None:
    (node.root / "sys/module/nouveau").mkdir(parents=True)
    node.break_("lose", "0")
    assert pending(program, memory="yes") == [
        "nouveau is loaded; nvidia cannot be",
        "udev has brought memory of GPUs on-line",
    ]
    node.driver(loaded="418.87.00", slots=[0], volatile={})
    assert pending(program)[1:] == ["another driver than the installed 440.33.01 is loaded"]
    next(node.root.glob("usr/lib64/libnvidia*")).rename(node.root / "usr/lib64/libnvidia-ml.so.418.87.00")
    node.driver(loaded="418.87.00", slots=[1, 2, 3], volatile={})
    assert pending(program)[1:] == ["driver 418.87.00 is loaded, not 440.33.01"]


def test_without_a_loaded_driver_nothing_waits(node: Node, program: Program) -> None:
    node.driver()
    assert pending(program, memory="yes") == []
    assert program("driver_in_use.sh", "440.64.00") == []


def test_only_another_driver_that_is_in_use_is_in_the_way(node: Node, program: Program) -> None:
    assert program("driver_in_use.sh", "440.64.00") == []
    node.break_("use", "1", str(os.getpid()))
    assert program("driver_in_use.sh", "440.33.01") == []
    assert program("driver_in_use.sh", "440.64.00") == [
        "driver 440.33.01 is used by 1 processes: 440.64.00 was not installed"
    ]


def test_the_copy_of_the_rules_may_differ_by_the_marks_alone(program: Program, tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_text("a\nb\n")
    assert program("rule_differs.sh", str(original), str(copy)) == [f"{copy} does not exist"]
    copy.write_text("a\n# nvidia_driver: b\n")
    assert program("rule_differs.sh", str(original), str(copy)) == []
    copy.write_text("a\n# b\n")
    assert "< b" in program("rule_differs.sh", str(original), str(copy))
