"""The program of the role node_health as it is on a node, and a scontrol that keeps what it is told."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL

PROJECT = Path(__file__).resolve().parents[3]
# A line of "scontrol --oneliner show node" of Slurm 22.05.8 on the virtual HAL, cut to what is read of it.
LINE = (
    "NodeName=hal01 Arch=x86_64 CoresPerSocket=20 CPUAlloc=0 CPUTot=160 Gres=gpu:v100:4 NodeAddr=10.64.0.101"
    " NodeHostName=hal01 Version=22.05.8 RealMemory=240000 State={state} ThreadsPerCore=4"
    " SlurmdStartTime=2026-11-21T17:01:02 Comment=(null)"
)
SCONTROL = """#!{python}
import json, sys
path = {state!r}
node = json.load(open(path))
words = sys.argv[1:]
node["calls"].append(words)
if node["refuses"]:
    json.dump(node, open(path, "w"))
    sys.exit("slurm_update error: Unable to contact slurm controller (connect failure)")
if words[0] == "update":
    told = dict(word.split("=", 1) for word in words[1:])
    if told["State"] == "UNDRAIN":
        node.update(state="IDLE", reason="")
    else:
        node.update(state="IDLE+DRAIN", reason=told["Reason"] + " [root@2026-11-21T17:30:00]")
else:
    print({line!r}.format(**node) + (" Reason=" + node["reason"] if node["reason"] else ""))
json.dump(node, open(path, "w"))
"""


@dataclass
class Installed:
    """A node: the program, what it asks, and Slurm."""

    folder: Path
    checks: list[dict[str, Any]] = field(default_factory=list)
    seconds: int = 10
    gpu_settings: Sequence[Sequence[str]] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Install it."""
        spec = importlib.util.spec_from_file_location("hal_node_health", PROJECT / "plugins/lookup/hal_node_health.py")
        assert spec
        assert spec.loader
        lookup = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(lookup)
        for one in lookup.LookupModule().run(["program"], folder=str(self.folder / "program"))[0]:
            path = Path(one["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(one["content"])
        (self.folder / "bin").mkdir()
        self.slurm(state="IDLE")
        self.plant("scontrol", SCONTROL.format(python=LOCAL, state=str(self.folder / "slurm"), line=LINE))

    def plant(self, name: str, text: str) -> None:
        """Put a program where the node finds it first."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def slurm(self, state: str, reason: str = "", refuses: bool = False) -> None:
        """Make slurmctld say this of the node."""
        document = {"state": state, "reason": reason, "refuses": refuses, "calls": []}
        (self.folder / "slurm").write_text(json.dumps(document))

    @property
    def node(self) -> Mapping[str, Any]:
        """What slurmctld has: state, reason, calls."""
        read: Mapping[str, Any] = json.loads((self.folder / "slurm").read_text())
        return read

    def asks(self, *checks: Mapping[str, Any]) -> None:
        """Declare what is asked."""
        self.checks = [{"why": "jobs fail", "hardware": False, "role": "base", **check} for check in checks]

    def run(
        self, *arguments: str, python: str = sys.executable, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run hal-node-health, with the files it keeps below this folder."""
        document = {
            "node": "hal01",
            "seconds": self.seconds,
            "checks": self.checks,
            "gpu_settings": list(self.gpu_settings),
            "gpu_wait_seconds": 0,
        }
        (self.folder / "checks.json").write_text(json.dumps(document))
        driver = "\n".join(
            [
                "import sys",
                f"sys.path.insert(0, {str(self.folder / 'program')!r})",
                "import node_health, node_health_checks, node_health_slurm",
                f"node_health.CHECKS = {str(self.folder / 'checks.json')!r}",
                f"node_health.STATE = {str(self.folder / 'drained.json')!r}",
                f"node_health_slurm.LOCK = {str(self.folder / 'lock')!r}",
                "node_health_slurm.SECONDS, node_health.PAUSE_SECONDS = 30, 0",
                f"node_health_checks.HUNG = {str(self.folder / 'hung')!r}",
                "sys.exit(node_health.main(sys.argv[1:]))",
            ]
        )
        variables = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **environment}
        return subprocess.run(
            [python, "-B", "-c", driver, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=variables,
            timeout=600,
        )


@pytest.fixture
def hal01(tmp_path: Path) -> Installed:
    """A node that Slurm calls IDLE."""
    return Installed(tmp_path)


def file_is(path: Path, words: str, *, content: str = "well", hardware: bool = False) -> dict[str, Any]:
    """Return a check that a file has this content."""
    question = {"file": {"path": str(path)}, "equal": content}
    return {"id": f"{path.name} is {content}", "words": words, "hardware": hardware, "question": question}
