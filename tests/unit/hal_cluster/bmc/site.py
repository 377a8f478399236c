"""A small site whose BMCs are emulated ones on loopback addresses, for the playbooks as administrators call them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.unit import addresses, warm
from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, PORTS, SECRET, Emulated, Emulation
from tests.unit.playing import CALLBACK_PLUGINS, UNRECORDED

ROOT = Path(__file__).resolve().parents[4]
MODEL = """\
format: 1
name: ember
domain: ember.example
networks:
  management: {kind: ethernet, cidr: 10.99.0.0/24}
  bmc: {kind: bmc, cidr: 127.0.9.0/24}
profiles:
  worker:
    model: IBM Power System AC922 8335-GTH
    arch: ppc64le
    cpus: {model: POWER9, sockets: 2, cores_per_socket: 4, threads_per_core: 4}
    memory_mb: 262144
    bmc: openbmc
    kernel: 4.18.0
  server:
    model: x86 server
    arch: x86_64
    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}
    memory_mb: 65536
    bmc: redfish
    kernel: 3.10.0
  box:
    model: x86 server
    arch: x86_64
    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}
    memory_mb: 65536
    kernel: 3.10.0
nodes:
  front:
    role: login
    profile: server
    serial: S0
    addresses: {management: 10.99.0.10, bmc: 127.0.9.10}
  aside:
    role: management
    profile: box
    serial: S9
    addresses: {management: 10.99.0.11}
  work[1-4]:
    role: compute
    profile: worker
    serial: "S[1-4]"
    addresses:
      management: 10.99.0.[101-104]
      bmc: 127.0.9.[101-104]
services:
  slurm_controller: front
groups:
  slurm_node: compute
partitions:
  gpu: {nodes: compute, max_time: "24:00:00", default_time: "04:00:00", default: true}
"""
# Slurm's own programs, as far as plugins/modules/hal_slurm_node.py asks them: work2 has a job.
PROGRAMS = {
    "scontrol": 'cat "$(dirname "$0")/../slurm"\n',
    "squeue": 'case "$*" in *work2*) echo "77|alice|2026-12-01T00:00:00";; esac\n',
}


class Site:
    """The site's files, its BMCs, and how a playbook is run on it."""

    def __init__(self, folder: Path, emulation: Emulation) -> None:
        self.folder, self.emulation = folder, emulation
        self.network = addresses.network()
        self.bmcs: dict[str, Emulated] = {}
        (folder / "group_vars" / "all").mkdir(parents=True)
        self.model(MODEL)
        (folder / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\nstate: state\n")
        policy = yaml.safe_load((ROOT / "inventory/hal/group_vars/all/bmc.yml").read_text())
        self.policy(**policy, vault_bmc_password=SECRET)
        (folder / "state").mkdir()
        (folder / "state" / "ca").symlink_to(emulation.authority)
        (folder / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}")
            (folder / "bin" / name).chmod(0o755)
        self.slurm()

    def model(self, text: str) -> None:
        """Declare what exists."""
        text = text.replace("127.0.9.", f"{self.network}.")
        self.text = text
        (self.folder / "cluster.yml").write_text(text)

    def policy(self, **values: object) -> None:
        """Declare how it is configured, beside what is declared already."""
        path = self.folder / "group_vars" / "all" / "bmc.yml"
        path.write_text(yaml.safe_dump({**(yaml.safe_load(path.read_text()) if path.exists() else {}), **values}))

    def slurm(self, **states: str) -> None:
        """Let slurmctld have the nodes in these states, the others idle; it is asked on this computer."""
        self.policy(ansible_connection="local", ansible_python_interpreter="{{ ansible_playbook_python | quote }}")
        every = {f"work{number}": "IDLE" for number in range(1, 5)} | states
        lines = [f"NodeName={name} State={state} SlurmdStartTime=2026-01-01T00:00:00 " for name, state in every.items()]
        (self.folder / "slurm").write_text("\n".join(lines) + "\n")

    def serve(self, *names: str, **given: Mapping[str, object]) -> None:
        """Let the BMCs of nodes listen at the model's addresses; ``given`` are values of a node's."""
        known = {"front": ("redfish", 10, "S0"), "store": ("ipmi", 12, "S8")}
        known |= {f"work{number}": ("openbmc", 100 + number, f"S{number}") for number in range(1, 5)}
        specs = []
        for name in names:
            kind, last, serial = known[name]
            at = f"{self.network}.{last}"
            specs.append(self.emulation.spec(name, kind, at=at, serial=serial, **given.get(name, {})))
        self.bmcs = {one.target.name: one for one in self.emulation.serve(*specs)}

    def play(self, playbook: str, *arguments: str, started: bool = False) -> subprocess.CompletedProcess[str]:
        """Return a finished run, as talkative as it can be; ``started`` as a process of its own, not a fork of one."""
        actions = f"{Path(__file__).with_name('action_plugins')}:{ROOT / 'plugins' / 'action'}"
        ports = {f"{name}_port": number for name, number in PORTS.model_dump().items()}
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        words = [program, "-i", str(self.folder / "hal.yml"), "-vvv", str(ROOT / "playbooks" / playbook), *arguments]
        environment = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACK_PLUGINS": CALLBACK_PLUGINS,
            "ANSIBLE_CALLBACKS_ENABLED": UNRECORDED,
            "ANSIBLE_ACTION_PLUGINS": actions,
            "TEST_BMC_PORTS": json.dumps(ports),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", "/"),
        }
        if not started:
            return warm.run(words, environment, timeout=600)
        return subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
        )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a run printed, after a look whether it tells what it must not."""
    text = done.stdout + done.stderr
    assert SECRET not in text
    assert NEW_SECRET not in text
    assert "Traceback" not in text
    return " ".join(text.split())


def recap(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[int, int]]:
    """Return how many tasks changed something, and how many failed, by node."""
    rows = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=(\d+) ", done.stdout, re.MULTILINE)
    return {name: (int(changed), int(failed)) for name, changed, failed in rows}
