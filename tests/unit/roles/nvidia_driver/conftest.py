"""Emulated GPUs below a folder, and the stand-in of nvidia-smi as a program that reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(PROJECT / "molecule" / "virtual_hal"))
from testbed import gpus  # noqa: E402  found through the line above

FILES = PROJECT / "molecule/virtual_hal/packages/files"
SMI = FILES / "nvidia-driver-latest-dkms-cuda/usr/bin/nvidia-smi"
PARTS = [PROJECT / "molecule/virtual_hal/gpus", FILES / "nvidia-driver-latest-dkms-NVML/usr/libexec/virtual-node"]


@dataclass(frozen=True)
class Node:
    """An AC922's GPUs, with a driver loaded."""

    root: Path

    def smi(self, *arguments: str) -> tuple[int, str]:
        """Run nvidia-smi: exit status and output."""
        return self._run(SMI, *arguments)

    def break_(self, *arguments: str) -> str:
        """Run virtual-gpu."""
        status, said = self._run(PARTS[0] / "virtual_gpu.py", *arguments)
        assert status == 0, said
        return said

    def driver(self, **values: object) -> None:
        """Write what the driver knows; nothing for one that is not loaded."""
        path = self.root / "run/virtual-node/driver.json"
        path.write_text(json.dumps(values)) if values else path.unlink()

    def _run(self, program: Path, *arguments: str) -> tuple[int, str]:
        variables = {"VIRTUAL_NODE_ROOT": str(self.root), "PYTHONPATH": os.pathsep.join(map(str, PARTS))}
        done = subprocess.run(
            [sys.executable, program, *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Four V100 on two sockets, driver 440.33.01."""
    for folder in ("var/lib/virtual-node", "run/virtual-node", "usr/lib64", "dev", f"proc/{os.getpid()}"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/lib64/libnvidia-ml.so.440.33.01").touch()
    model = [
        {"index": i, "model": "Tesla V100-SXM2-16GB", "memory_mb": 16384, "socket": i // 2, "link": "nvlink2"}
        for i in range(4)
    ]
    numa = [{"id": 0, "socket": 0, "cpus": "0-63"}, {"id": 8, "socket": 1, "cpus": "64-127"}]
    made = gpus.hardware("hal01", "ppc64le", model, numa, {})
    (tmp_path / "var/lib/virtual-node/gpus.json").write_text(json.dumps({"gpus": made}))
    node = Node(tmp_path)
    node.driver(loaded="440.33.01", slots=[0, 1, 2, 3], volatile={})
    return node


@pytest.fixture
def captured() -> Callable[[str], str]:
    """Read a capture of a real program's output."""
    return lambda name: (Path(__file__).parent / "captures" / name).read_text()
