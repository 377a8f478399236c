"""Roles take the networks that a site has, whatever their names: the manual's own example and a lone network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playing import play

ROOT = Path(__file__).resolve().parents[4]
MANUAL = "".join(
    re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/site-model.md").read_text(), re.DOTALL | re.MULTILINE)
)
# Slurm's own needs, a database among them, are not looked at here.
MANUAL = MANUAL.replace("  slurm: login or slurm_node\n  munge: slurm\n", "  hosts: all\n  ssh: all\n")
ALONE = """
format: 1
name: lone
domain: lone.example
networks: {management: {kind: ethernet, cidr: 10.9.0.0/24}}
profiles:
  server:
    model: any
    arch: x86_64
    cpus: {model: any, sockets: 1, cores_per_socket: 8, threads_per_core: 1}
    memory_mb: 16384
    kernel: 3.10.0-1062.el7
    interfaces: {management: {name: em1}}
nodes: {one: {role: login, profile: server, addresses: {management: 10.9.0.1}}}
services: {portal: one}
groups: {hosts: all, firewall: all, ssh: all, network: all}
"""
PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: hosts, tasks_from: validate}
    - import_role: {name: firewall, tasks_from: validate}
    - import_role: {name: network, tasks_from: validate}
    - debug:
        msg:
          hosts: "{{ lookup('ansible.builtin.template', TEMPLATE) }}"
          open: "{{ __firewall_open }}"
          principals: "{{ ssh_host_principals }}"
      vars: {hosts_extra: []}
    - import_role: {name: ssh, tasks_from: validate}
      when: false
""".replace("TEMPLATE", f"'{ROOT}/roles/hosts/templates/hosts.j2'")


def rendered(folder: Path, model: str, node: str) -> dict[str, Any]:
    (folder / "cluster.yml").write_text(model)
    (folder / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\nvirtual: true\n")
    (folder / "play.yml").write_text(PLAY)
    done = play(
        folder / "play.yml", "-i", str(folder / "hal.yml"), f"--limit={node}", sites=(),
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
    )  # fmt: skip
    assert done.returncode == 0, [one for one in done.stdout.splitlines() if '"msg"' in one] + [done.stderr]
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    found: dict[str, Any] = next(
        one["hosts"][node]["msg"] for one in tasks if isinstance(one["hosts"][node].get("msg"), dict)
    )
    return found


@pytest.mark.parametrize(
    ("model", "node", "lines", "principals"),
    [
        (
            MANUAL,
            "node02",
            ["10.20.0.12 node02.ember.example node02", "10.20.1.12 node02-bmc.ember.example node02-bmc",
             "10.20.2.12 node02-ib.ember.example node02-ib"],
            ["node02", "node02.ember.example", "10.20.0.12", "node02-ib", "10.20.2.12"],
        ),
        (ALONE, "one", ["10.9.0.1 one.lone.example one"], ["one", "one.lone.example", "10.9.0.1"]),
    ],
    ids=["manual", "alone"],
)  # fmt: skip
def test_any_networks_will_do(tmp_path: Path, model: str, node: str, lines: list[str], principals: list[str]) -> None:
    found = rendered(tmp_path, model, node)
    written = found["hosts"].splitlines()
    assert [line for line in lines if line not in written] == []
    assert found["principals"] == principals
    assert "management port 22/tcp" in found["open"]
