"""A virtual HAL of the benchmark's own, beside one that may be running: other networks, other container names."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
if str(PROJECT / "molecule" / "virtual_hal") not in sys.path:
    sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from demo.mini import NODES  # noqa: E402  found through the line above
from running import strategy  # noqa: E402
from running.ansible_run import Ansible  # noqa: E402
from running.ssh_config import STATE, Cluster  # noqa: E402
from running.stages import Runner, Stage  # noqa: E402

NAME = "bench"
# What inventory/virtual/mini.yml keeps.
MINI = "hal-login or hal-mgmt[1-2] or hal-data or hal[01-02]"
IMAGE_KEY = STATE / "images" / NAME / "image_key"  # its public part comes to the server in the rollout
NETWORKS = {"management": "10.65.40.0/24", "bmc": "10.67.40.0/24", "ipoib": "10.66.40.0/24"}


class Instance:
    """The nodes, and how Ansible is told of them. Made by `create`, removed by `destroy`."""

    def __init__(self, nodes: str, state: Path) -> None:
        """`nodes`: full or mini; `state`: a folder for the inventory source."""
        source = state / "hal.yml"
        content = {
            "plugin": "hal",
            "base": str(PROJECT / "inventory/virtual/hal.yml"),
            "networks": NETWORKS,
            **({"only": MINI} if nodes == "mini" else {}),
        }
        state.mkdir(parents=True, exist_ok=True)
        source.write_text(json.dumps(content))  # JSON is YAML
        sources = [source]
        self.ansible = Ansible(sources, virtual_name=NAME)
        self.cluster = Cluster(sources)
        self.names: list[str] = self.cluster.slice("nodes")

    def images(self) -> Sequence[Stage]:
        """What the nodes are made of; nothing to do when it is there."""
        setup = [sys.executable, "molecule/virtual_hal/setup"]
        return [
            Stage("node image", [*setup, "image", "build"]),
            Stage("package repository", [*setup, "packages", "build"]),
            Stage("key of images", [sys.executable, "-m", "hal_cluster.provision", "key", str(IMAGE_KEY)]),
        ]

    def create(self) -> Stage:
        """Start the nodes."""
        return Stage(f"{len(self.names)} nodes", self.ansible.command(*NODES, virtual_bmcs=True))

    def rollout(self, name: str) -> Stage:
        """Roll site.yml out."""
        return Stage(name, self.ansible.command("playbooks/site.yml"))

    def bring_up(self, runner: Runner) -> bool:
        """All of it, for whoever measures something else: as quickly as it goes."""
        rollout = replace(self.rollout("rollout"), env=strategy.environment())
        return runner.run(*self.images()) and runner.run(self.create()) and runner.run(rollout)

    def cpu_files(self) -> dict[str, str]:
        """The kernel's file with the processor time of each running node, by name; none where there is no such file."""
        form = '{{index .Config.Labels "hal.node"}} {{.State.CgroupPath}}'
        containers = [f"{NAME}-{name}" for name in self.names]
        argv = ["molecule/virtual_hal/podman", "inspect", "--format", form, *containers]
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        found: dict[str, str] = {}
        for line in done.stdout.splitlines():
            name, _, group = line.partition(" ")
            places = [Path(f"/sys/fs/cgroup/cpuacct{group}/cpuacct.usage"), Path(f"/sys/fs/cgroup{group}/cpu.stat")]
            found.update((name, str(path)) for path in places if path.is_file())
        return found

    def memory_mb(self) -> int | None:
        """Memory of all processes in the nodes, shared pages counted once; None when it cannot be read."""
        inspected = subprocess.run(
            [
                "molecule/virtual_hal/podman",
                "inspect",
                "--format",
                "{{.State.Pid}}",
                *(f"{NAME}-{name}" for name in self.names),
            ],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            nodes = {os.readlink(f"/proc/{pid}/ns/pid") for pid in inspected.stdout.split()}
        except OSError:
            return None
        total_kb = 0
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it may have ended meanwhile
                if os.readlink(process / "ns" / "pid") in nodes:
                    rollup = (process / "smaps_rollup").read_text()
                    total_kb += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        return total_kb // 1024 or None

    def destroy(self) -> None:
        """Remove the nodes and their networks."""
        subprocess.run(
            [sys.executable, "molecule/virtual_hal/setup", "nodes", "destroy", "--instance", NAME],
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
            check=True,
        )
