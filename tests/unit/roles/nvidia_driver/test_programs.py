"""The role's shell programs, with the stand-in of nvidia-smi and files of a driver that a container does not have."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.roles.nvidia_driver.conftest import PARTS, PROJECT, SMI, Node

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
        processes = ["/proc/[0-9]", "/proc/$pid"] if (node.root / "proc/4711").exists() else []
        own = ["/proc/driver", "/sys/module", *processes]
        text = (PROJECT / "roles/nvidia_driver/files" / name).read_text()
        for path in own:
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


NOT_DRAINED = "the node is not drained in Slurm, and a job may begin at any time"
NO_ANSWER = (
    "slurmd runs, and Slurm does not say whether jobs run here (systemctl stop slurmd there takes the node out of"
)
# As `scontrol --oneliner show node` prints it; source: captures of Slurm 20.02 in tests/unit/hal_node/slurm.
SHOWN = "NodeName=hal05 Arch=ppc64le CoresPerSocket=20 State={} ThreadsPerCore=4 Reason=for DRAIN tests [root@now]"


def says(node: Node, name: str, text: str) -> None:
    """Put a program on the node's PATH that runs this text of sh."""
    path = node.root / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def in_use(program: Program) -> list[str]:
    return program("driver_in_use.sh", "hal05", "RUNNING")


@pytest.mark.parametrize(
    ("state", "jobs", "said"),
    [
        ("IDLE+DRAIN", ":", ""),
        ("DOWN*+DRAIN", ":", ""),
        ("IDLE", ":", NOT_DRAINED),
        ("MIXED+DRAIN", "echo 4712; echo 4711; echo 4711", "jobs 4711, 4712 run here"),
        ("IDLE+DRAIN", "exit 1", NO_ANSWER),
        ("silent", ":", NO_ANSWER),
        ("", ":", NO_ANSWER),  # slurmd, and no scontrol that is found
    ],
)
def test_a_driver_is_free_where_slurm_says_drained_and_empty(
    node: Node, program: Program, state: str, jobs: str, said: str
) -> None:
    says(node, "pgrep", "exit 0")
    if state:
        says(node, "scontrol", f"echo '{SHOWN.format(state)}'" if state != "silent" else "exit 1")
        says(node, "squeue", jobs)
    (found,) = in_use(program) or [""]
    assert found.startswith(said) if said else not found


def test_where_no_slurmd_runs_the_processes_on_gpus_count(node: Node, program: Program) -> None:
    says(node, "pgrep", "exit 1")
    assert in_use(program) == []
    node.break_("use", "1", str(os.getpid()))
    name = Path("/proc/self/comm").read_text().strip()
    assert in_use(program) == [f"process {os.getpid()} ({name}) uses a GPU"]


def test_without_an_answer_of_nvidia_smi_whoever_has_a_gpu_open_counts(node: Node, program: Program) -> None:
    """Names of processes are anybody's: control characters are not printed."""
    says(node, "pgrep", "exit 1")
    says(node, "nvidia-smi", "exit 18")
    names = {1: "systemd", 4711: "pyt\x1bhon", 4712: "nvidia-persiste", **dict.fromkeys(range(5000, 5006), "worker")}
    for pid, name in names.items():
        folder = node.root / f"proc/{pid}/fd"
        folder.mkdir(parents=True)
        (folder.parent / "comm").write_text(f"{name}\n")
        (folder / "3").symlink_to("/dev/null" if pid == 1 else "/dev/nvidia0")
        (folder / "4").symlink_to("/dev/null" if pid == 1 else "/dev/nvidiactl")
    assert in_use(program) == [
        "process 4711 (python) uses a GPU",
        *(f"process {pid} (worker) uses a GPU" for pid in range(5000, 5004)),
        "2 more processes use GPUs",
    ]


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, ""),
        ({"nvidia-uninstall": ":", "rpm": "exit 0"}, ""),  # a package has it
        (
            {"nvidia-uninstall": ":", "rpm": "exit 1", "modinfo": "echo 418.67"},
            "driver 418.67, put here by NVIDIA's own installer",
        ),
        (
            {"nvidia-uninstall": ":", "rpm": "exit 1", "modinfo": "exit 1"},
            "driver of an unknown version, put here by NVIDIA's own installer",
        ),
    ],
)
def test_a_driver_of_nvidias_own_installer_is_met(
    node: Node, program: Program, programs: dict[str, str], said: str
) -> None:
    for name, text in programs.items():
        says(node, name, text)
    found = program("own_installer.sh")
    assert "".join(found).startswith(said) if said else found == []


def test_the_copy_of_the_rules_may_differ_by_the_marks_alone(program: Program, tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_text("a\nb\n")
    assert program("rule_differs.sh", str(original), str(copy)) == [f"{copy} does not exist"]
    copy.write_text("a\n# nvidia_driver: b\n")
    assert program("rule_differs.sh", str(original), str(copy)) == []
    copy.write_text("a\n# b\n")
    assert "< b" in program("rule_differs.sh", str(original), str(copy))
