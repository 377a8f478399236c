"""The program of the role node_health as it is on a node, and a scontrol that keeps what it is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hal_cluster import programs
from tests.unit.interpreters import LOCAL

PROJECT = Path(__file__).resolve().parents[4]
# A line of "scontrol --oneliner show node" of Slurm 22.05.8 on the virtual HAL, cut to what is read of it.
LINE = (
    "NodeName=hal01 Arch=x86_64 CoresPerSocket=20 CPUAlloc=0 CPUTot=160 Gres=gpu:v100:4 NodeAddr=10.64.0.101"
    " NodeHostName=hal01 Version=22.05.8 RealMemory=240000 State={state} ThreadsPerCore=4 Partitions=gpu,cpu"
    " SlurmdStartTime=2026-11-21T17:01:02 Comment=(null)"
)
OTHER = "NodeName=hal{number:02} State=IDLE{more} Partitions=gpu,cpu"
SCONTROL = """#!{python}
import json, sys, time
path = {state!r}
node = json.load(open(path))
words = sys.argv[1:]
node["calls"].append(words)
now = time.strftime(" [root@%Y-%m-%dT%H:%M:%S]")
if node["refuses"]:
    json.dump(node, open(path, "w"))
    sys.exit("slurm_update error: Unable to contact slurm controller (connect failure)")
if words[0] == "update":
    told = dict(word.split("=", 1) for word in words[1:])
    if told["State"] == "UNDRAIN":
        node.update(state="IDLE", reason="")
    else:
        node.update(state="IDLE+DRAIN", reason=told["Reason"] + now)
    # Others drain at the same moment.
    node["others"] += [one.replace("NOW", now) for one in node.pop("next", [])]
else:
    used = " GresUsed=" + node["gres_used"] if "--details" in words else ""
    print({line!r}.format(**node) + used + (" Reason=" + node["reason"] if node["reason"] else ""))
    for other in node["others"] if words[-1] == "node" else []:
        print(other)
json.dump(node, open(path, "w"))
"""


# What runs in place of /usr/sbin/hal-node-health: the program, with the files that it keeps below one folder.
DRIVER = """
import sys
sys.path.insert(0, {folder!r} + "/program")
import node_health, node_health_checks, node_health_gpus, node_health_slurm, node_health_space, node_health_users
import node_health_alarm, node_health_doubt, node_health_observe, node_health_slow, node_health_witness
node_health.CHECKS = {folder!r} + "/checks.json"
node_health.STATE = {folder!r} + "/drained.json"
node_health.SELF = [sys.executable, "-B", {folder!r} + "/driver.py"]
node_health.PAUSE_SECONDS, node_health.AGAIN_SECONDS = 0, 600
node_health_alarm.ALARM, node_health_doubt.DOUBTS = {folder!r} + "/alarm", {folder!r} + "/doubts.json"
node_health_observe.OBSERVED = {folder!r} + "/observed.json"
node_health_slow.slow = lambda: {slow!r}  # how busy this machine is changes no test
node_health_gpus.PAUSE_SECONDS, node_health_witness.SECONDS = 0, 600
node_health_checks.HUNG = {folder!r} + "/hung"
node_health_gpus.PROC = node_health_space.PROC = node_health_witness.PROC = {folder!r} + "/proc"
node_health_slurm.LOCK, node_health_slurm.SPARE = {folder!r} + "/lock", {folder!r} + "/spare.json"
node_health_slurm.SECONDS, node_health_users.SECONDS, node_health_space.SECONDS = 600, 600, 60
node_health_users.SUBUID = {folder!r} + "/subuid"
sys.exit(node_health.main(sys.argv[1:]))
"""
# Eve, and nobody else, has a name.
GETENT = """#!/bin/sh
for uid; do [ "$uid" != 1004 ] || echo "eve:x:1004:1004:a, b [c]:/home/eve:/bin/sh"; done
"""
STATUS = "Name:\t{name}\nState:\tS (sleeping)\nUid:\t{uid}\t0\t0\t0\nSigPnd:\t{own}\nShdPnd:\t{shared}\n"


@dataclass
class Installed:
    """A node: the program, what it asks, Slurm, and processes."""

    folder: Path
    checks: list[dict[str, Any]] = field(default_factory=list)
    seconds: int = 600
    gpu_settings: Sequence[Sequence[str]] = ()
    end_foreign_processes: bool = False
    witnesses: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    slow: bool = False
    observe_days: int = 0

    def __post_init__(self) -> None:
        """Install it."""
        for name, text in programs.files(PROJECT / "roles/node_health/files/node_health.py").items():
            path = self.folder / "program" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.folder / "bin").mkdir()
        (self.folder / "proc").mkdir()
        self.plant("getent", GETENT)
        self.slurm(state="IDLE")
        self.plant("scontrol", SCONTROL.format(python=LOCAL, state=str(self.folder / "slurm"), line=LINE))

    def plant(self, name: str, text: str) -> None:
        """Put a program where the node finds it first."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def slurm(
        self, state: str, reason: str = "", refuses: bool = False, gres_used: str = "gpu:v100:0(IDX:N/A)"
    ) -> None:
        """Make slurmctld say this of the node."""
        document = {"state": state, "reason": reason, "refuses": refuses, "calls": [], "gres_used": gres_used}
        document["others"] = [OTHER.format(number=number, more="") for number in range(2, 5)]
        (self.folder / "slurm").write_text(json.dumps(document))

    def runs(self, pid: int, uid: int, command: bytes = b"python", own: str = "0", shared: str = "0") -> None:
        """Show a process in /proc. Masks of signals that wait for it are ``own`` and ``shared``."""
        place = self.folder / "proc" / str(pid)
        place.mkdir(parents=True, exist_ok=True)
        name = command.decode("latin-1").replace("\n", "\\n")  # as the kernel does it
        (place / "status").write_text(STATUS.format(name=name, uid=uid, own=own, shared=shared))
        (place / "stat").write_bytes(b"%d (%s) S %s\n" % (pid, command, b" ".join(b"%d" % one for one in range(4, 53))))

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
            "end_foreign_processes": self.end_foreign_processes,
            "witnesses": self.witnesses,
            "most_drained_percent": 25,
            "window_minutes": 60,
            "observe_days": self.observe_days,
        }
        (self.folder / "driver.py").write_text(DRIVER.format(folder=str(self.folder), slow=self.slow))
        (self.folder / "checks.json").write_text(json.dumps(document))
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "NODE_PYTHON": python, **environment}
        return subprocess.run(
            [python, "-B", str(self.folder / "driver.py"), *arguments],
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


# ---------------------------------------------------------------- GPUs
SMI = """#!/bin/sh
echo "$*" >>{log}
case "$*" in *query-compute-apps*) {apps} ;; *query-gpu=gpu_uuid*) {numbers} ;; *) {settings} ;; esac
"""
NUMBERS = "; ".join(f"echo 'GPU-{number:04x}, {number}'" for number in range(4))


def smi(node: Installed, apps: str = ":", settings: str = ":", numbers: str = NUMBERS) -> Path:
    """Plant an nvidia-smi that notes how it was called."""
    log = node.folder / "smi"
    log.write_text("")
    node.plant("nvidia-smi", SMI.format(log=log, apps=apps, settings=settings, numbers=numbers))
    return log


def computes(*where: tuple[int, int]) -> str:
    """Return what prints processes on GPUs, as (process, GPU)."""
    return "; ".join(f"echo 'GPU-{gpu:04x}, {pid}'" for pid, gpu in where) or ":"


@pytest.fixture
def driver(hal01: Installed) -> Installed:
    """A node whose GPUs are well."""
    (hal01.folder / "gpu").write_text("well\n")
    hal01.asks({**file_is(hal01.folder / "gpu", "GPU lost", hardware=True), "role": "nvidia_driver"})
    hal01.gpu_settings = [["--reset-applications-clocks"], ["--compute-mode=DEFAULT"]]
    return hal01
