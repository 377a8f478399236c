"""A small site whose BMCs are emulated ones on loopback addresses, for the playbooks as administrators call them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from bmc.spec import Ports

from tests.unit.bmc.emulated import OWN_SITE, SECRET, Emulated, Emulation

ROOT = Path(__file__).resolve().parents[3]
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
    "scontrol": 'for n in 1 2 3 4; do echo "NodeName=work$n State=IDLE SlurmdStartTime=2026-01-01T00:00:00 "; done\n',
    "squeue": 'case "$*" in *work2*) echo "77|alice|2026-12-01T00:00:00";; esac\n',
}


class Site:
    """The site's files, its BMCs, and how a playbook is run on it."""

    def __init__(self, folder: Path, emulation: Emulation) -> None:
        self.folder, self.emulation = folder, emulation
        self.bmcs: dict[str, Emulated] = {}
        (folder / "group_vars" / "all").mkdir(parents=True)
        self.model(MODEL)
        (folder / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
        policy = yaml.safe_load((ROOT / "inventory/hal/group_vars/all/bmc.yml").read_text())
        policy["hal_state_dir"] = str(folder / "state")
        self.policy(**policy, vault_bmc_password=SECRET)
        (folder / "state").mkdir()
        (folder / "state" / "ca").symlink_to(emulation.authority)
        (folder / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}")
            (folder / "bin" / name).chmod(0o755)

    def model(self, text: str) -> None:
        """Declare what exists."""
        text = text.replace("127.0.9.", f"{OWN_SITE}.")
        self.text = text
        (self.folder / "cluster.yml").write_text(text)

    def policy(self, **values: object) -> None:
        """Declare how it is configured, beside what is declared already."""
        path = self.folder / "group_vars" / "all" / "bmc.yml"
        path.write_text(yaml.safe_dump({**(yaml.safe_load(path.read_text()) if path.exists() else {}), **values}))

    def serve(self, **given: Mapping[str, object]) -> None:
        """Let the BMCs listen at the model's addresses; ``given`` are values of a node's."""
        ports = Ports()
        kinds = {"front": ("redfish", f"{OWN_SITE}.10", "S0")}
        kinds |= {"store": ("ipmi", f"{OWN_SITE}.12", "S8")} if "store:" in self.text else {}
        kinds |= {f"work{number}": ("openbmc", f"{OWN_SITE}.{100 + number}", f"S{number}") for number in range(1, 5)}
        specs = [
            self.emulation.spec(name, kind, at=address, serial=serial, ports=ports, **given.get(name, {}))
            for name, (kind, address, serial) in kinds.items()
        ]
        self.bmcs = {one.target.name: one for one in self.emulation.serve(*specs)}

    def play(self, playbook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Return a finished run, as talkative as it can be."""
        return subprocess.run(
            [
                str(Path(sys.executable).with_name("ansible-playbook")),
                *("-i", str(self.folder / "hal.yml"), "-vvv", str(ROOT / "playbooks" / playbook), *arguments),
            ],
            cwd=ROOT,
            env={
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_CALLBACKS_ENABLED": "",
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "HOME": os.environ.get("HOME", "/"),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


def must_listen_at_low_ports() -> None:
    """Skip a test where this user may not: the model has no ports, a BMC listens at 443."""
    try:
        with socket.socket() as here:
            here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            here.bind((f"{OWN_SITE}.9", 443))
    except PermissionError:
        pytest.skip("this user may not listen at port 443")
