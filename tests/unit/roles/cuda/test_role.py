"""The role cuda's own decisions: what it refuses before it contacts a node, and how it reads nvcc and nvidia-smi.

captures/nvcc-*.txt: outputs of `nvcc --version` on x86_64 Linux that users published: 10.1 (an Ubuntu with 10.1.243),
10.2 (a system with driver 440.33.01), 11.3 (a container of CUDA 11.3.1).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playing import play_text

ROOT = Path(__file__).resolve().parents[4]
CAPTURES = sorted((Path(__file__).parent / "captures").glob("nvcc-*.txt"))
EXPECT = {entry["id"]: entry for entry in yaml.safe_load((ROOT / "roles/cuda/expect.yml").read_text())}
SCRIPT = ROOT / "roles/cuda/files/driver_too_old.sh"
STAND_INS = ROOT / "molecule/virtual_hal/packages/files"
PLAY = """
- hosts: cuda
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: cuda, tasks_from: validate}
"""


def selected(name: str, text: str) -> list[str]:
    """What an entry's select makes of a text, as hal_expect does it."""
    pattern = re.compile(EXPECT[name]["command"]["select"])
    return [match[1] for line in text.splitlines() if (match := pattern.fullmatch(line.strip()))]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_the_release_is_read_from_what_nvcc_says(capture: Path) -> None:
    release = capture.stem.removeprefix("nvcc-")
    assert selected("compiler of each toolkit is of its release", capture.read_text()) == [release]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_the_stand_in_says_what_nvcc_says_and_that_it_is_none(capture: Path) -> None:
    release = capture.stem.removeprefix("nvcc-")
    program = STAND_INS / f"cuda-nvcc-{release.replace('.', '-')}/usr/local/cuda-{release}/bin/nvcc"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", str(program), *words], capture_output=True, text=True, check=False)

    assert run("--version").stdout == capture.read_text()
    assert "stand-in" in run("--help").stdout
    assert (run("x.cu").returncode, run("x.cu").stdout) == (1, "")


def test_another_text_is_no_release() -> None:
    name = "compiler of each toolkit is of its release"
    assert selected(name, "nvcc: this is a stand-in of the virtual HAL, it compiles nothing") == []
    assert selected(name, "Cuda compilation tools, release 10.2") == []


@pytest.fixture
def smi(tmp_path: Path) -> Path:
    """A folder for PATH in which nvidia-smi prints what the test writes to `rows`."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/rows\nexit $(cat {tmp_path}/status)\n")
    program.chmod(0o755)
    (tmp_path / "status").write_text("0")
    return tmp_path


@pytest.mark.parametrize(
    ("minimum", "rows", "status", "printed"),
    [
        ("440.33", "440.33.01\n" * 4, 0, ""),
        ("440.33", "440.100\n", 0, ""),
        ("450.80.02", "440.33.01\n" * 4, 0, "driver 440.33.01 is loaded, 450.80.02 or later is needed\n"),
        ("440.33", "418.87.01\n", 0, "driver 418.87.01 is loaded, 440.33 or later is needed\n"),
        # nvidia-smi(1): 15 is a GPU that is lost; the rows of the others are there.
        ("440.33", "440.33.01\nUnable to determine the device handle for GPU 0004:05:00.0: GPU is lost.\n", 15, ""),
    ],
)
def test_the_loaded_driver_is_compared(smi: Path, minimum: str, rows: str, status: int, printed: str) -> None:
    (smi / "rows").write_text(rows)
    (smi / "status").write_text(str(status))
    done = asked(smi, minimum)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_no_driver_is_unknown_and_no_pass(smi: Path) -> None:
    (smi / "rows").write_text("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    (smi / "status").write_text("9")
    done = asked(smi, "440.33")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "nvidia-smi shows no driver\n")


def asked(folder: Path, minimum: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C"}
    return subprocess.run(
        ["sh", str(SCRIPT), minimum], env=environment, capture_output=True, text=True, check=False, timeout=600
    )


def validated(folder: Path, **variables: Any) -> tuple[int, dict[str, list[str]]]:
    """Status, and by host what the role says before it contacts a node."""
    done = play_text(folder, PLAY, "hal-login,hal01", **variables)
    said: dict[str, list[str]] = {}
    for task in json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"]:
        for host, result in task["hosts"].items():
            message = result.get("msg", "")
            if result.get("failed") or (task["task"]["name"].startswith("cuda : Say") and not result.get("skipped")):
                said.setdefault(host, []).extend(message if isinstance(message, list) else [message])
    return done.returncode, said


def test_hal_s_own_declarations_go_together(tmp_path: Path) -> None:
    assert validated(tmp_path) == (0, {})


def test_a_driver_that_is_too_old_is_refused_where_gpus_are(tmp_path: Path) -> None:
    status, said = validated(tmp_path, nvidia_driver_version="418.87.01")
    assert status != 0
    assert list(said) == ["hal01"]
    assert said["hal01"] == [
        "CUDA 10.2 needs driver 440.33 or later (NVIDIA, CUDA 13.2 Update 2 release notes, table 3); 418.87.01 is"
        " declared: set nvidia_driver_version, or leave cuda_toolkits at 10.1"
    ]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"cuda_toolkits": ["11.3"]}, "NVIDIA has no packages of CUDA 11.3 for rhel7 on ppc64le"),
        ({"cuda_toolkits": ["10.7"]}, "CUDA 10.7 is not in the table; take one of 10.0, 10.1, 10.2"),
        ({"cuda_toolkits": []}, "cuda_toolkits is empty: name one, or take"),
        ({"cuda_default": "10.1"}, "cuda_default is 10.1, cuda_toolkits has 10.2: name one of these"),
        ({"cuda_packages_extra": ["cuda-runtime-10-2"]}, "cuda_packages_extra has cuda-runtime-10-2: these install"),
    ],
)
def test_what_cannot_be_is_refused_on_every_node(tmp_path: Path, variables: dict[str, Any], words: str) -> None:
    status, said = validated(tmp_path, **variables)
    assert status != 0
    assert sorted(said) == ["hal-login", "hal01"]
    assert all(any(words in " ".join(one.split()) for one in lines) for lines in said.values())


def test_the_packages_that_bring_a_driver_are_the_table_s() -> None:
    """expect.yml looks for them on the node by one regular expression."""
    pattern = yaml.safe_load((ROOT / "roles/cuda/vars/main.yml").read_text())["__cuda_with_driver"]
    names = yaml.safe_load((ROOT / "hal_cluster/rules/cuda/compatibility.yml").read_text())["driver_packages"]["names"]
    assert pattern.replace("(?:", "(").split("|") == names
