"""How long an inventory takes: the plugin and the script against the same content as static JSON and YAML.

Prints one table of ratios for each size, measured side by side in one run: every round runs each way once, and the
median of the rounds counts. Ratios are of processor time, which others on the machine disturb less than the time on the
wall; seconds are of this machine today. Writes only below a temporary folder.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.bench.part import Goal, Measured, Session

ROOT = Path(__file__).resolve().parents[2]
LABELS = {
    "json": "static JSON",
    "plugin": "plugin",
    "cold": "plugin, empty cache",
    "script": "script",
    "alone": "script, without Ansible",
    "yaml": "static YAML",
}


def model(nodes: int) -> str:
    """Return a cluster.yml like HAL's with this many compute nodes: values that vendors assign are lists."""
    pairs = [f"{at:06d}" for at in range(nodes)]
    macs = [f"02:48:41:{pair[0:2]}:{pair[2:4]}:{pair[4:6]}" for pair in pairs]
    addresses = [f"{1 + at // 250}.{1 + at % 250}" for at in range(nodes)]
    gpus = [
        {"index": at, "type": "v100", "model": "V100", "memory_mb": 16384, "socket": at // 2, "link": "nvlink2"}
        for at in range(4)
    ]
    profile = {
        "model": "IBM Power System AC922 8335-GTH",
        "arch": "ppc64le",
        "cpus": {"model": "POWER9", "sockets": 2, "cores_per_socket": 20, "threads_per_core": 4},
        "memory_mb": 262144,
        "numa": [{"id": 0, "socket": 0, "cpus": "0-79"}, {"id": 8, "socket": 1, "cpus": "80-159"}],
        "gpus": gpus,
        "hcas": [{"model": "ConnectX-5", "ports": 2, "rate_gbps": 100}],
        "bmc": "openbmc",
        "kernel": "4.18.0-80.7.2.el7",
    }
    everywhere = ("repositories", "base", "time", "hosts", "ssh", "slurm_node", "slurm", "munge")
    site = {
        "format": 1,
        "name": "bench",
        "domain": "bench.example",
        "networks": {
            "management": {"kind": "ethernet", "cidr": "10.64.0.0/16"},
            "bmc": {"kind": "bmc", "cidr": "10.65.0.0/16"},
            "ipoib": {"kind": "infiniband", "cidr": "10.66.0.0/16"},
        },
        "profiles": {"ac922": profile},
        "nodes": {
            f"n[00001-{nodes:05d}]": {
                "role": "compute",
                "profile": "ac922",
                "serial": [f"S{pair}" for pair in pairs],
                "addresses": {
                    "management": [f"10.64.{address}" for address in addresses],
                    "bmc": [f"10.65.{address}" for address in addresses],
                    "ipoib": [f"10.66.{address}" for address in addresses],
                },
                "macs": {"management": macs},
            }
        },
        "groups": dict.fromkeys(everywhere, "all"),
        "partitions": {"gpu": {"nodes": "compute", "max_time": "24:00:00", "default_time": "04:00:00"}},
    }
    return str(yaml.dump(site, Dumper=yaml.CSafeDumper, sort_keys=False))


def static(listed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a --list document as a static inventory."""
    groups = {
        name: {"hosts": dict.fromkeys(group["hosts"])}
        for name, group in listed.items()
        if name not in ("_meta", "all") and group["hosts"]
    }
    return {"all": {"hosts": listed["_meta"]["hostvars"], "children": groups}}


class Bench:
    """One size: its files, and the commands that read them."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = nodes
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "HAL_"))},
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "HAL_CACHE_DIR": str(folder / "cache"),
            "HAL_INVENTORY_SOURCES": str(folder / "hal.yml"),
        }
        (folder / "ansible.cfg").write_text(
            f"[defaults]\ninventory_plugins={ROOT}/plugins/inventory\n"
            "[inventory]\nenable_plugins=hal,script,yaml\nany_unparsed_is_failed=True\n"
        )
        (folder / "cluster.yml").write_text(model(nodes))
        (folder / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
        listed = json.loads(self.run(self.script()))
        content = static(listed)
        (folder / "static.json").write_text(json.dumps(content))
        (folder / "static.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))

    def script(self) -> list[str]:
        return [sys.executable, str(ROOT / "inventory" / "hal_inventory.py"), "--list"]

    def commands(self) -> dict[str, list[str]]:
        listing = [str(Path(sys.executable).with_name("ansible-inventory")), "--list", "-i"]
        return {
            "json": [*listing, str(self.folder / "static.json")],
            "plugin": [*listing, str(self.folder / "hal.yml")],
            "cold": [*listing, str(self.folder / "hal.yml")],
            "script": [*listing, str(ROOT / "inventory" / "hal_inventory.py")],
            "alone": self.script(),
            "yaml": [*listing, str(self.folder / "static.yaml")],
        }

    def run(self, command: Sequence[str]) -> bytes:
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
        return done.stdout

    def timed(self, command: Sequence[str]) -> tuple[bytes, float, float]:
        """Run a command; return its output, its seconds of processor time and those on the wall."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        output = self.run(command)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall

    def measure(self, rounds: int) -> dict[str, dict[str, float]]:
        """Return the median seconds of each way; stops when they do not list the same."""
        commands = self.commands()
        cpu: dict[str, list[float]] = {name: [] for name in commands}
        wall: dict[str, list[float]] = {name: [] for name in commands}
        wanted: Any = None
        for at in range(rounds):
            for name, command in commands.items():
                if name == "cold":
                    for entry in (self.folder / "cache" / "inventory").glob("*.json"):
                        entry.unlink()
                output, used, waited = self.timed(command)
                cpu[name].append(used)
                wall[name].append(waited)
                if at == 0 and name != "alone":
                    listed = json.loads(output)
                    wanted = wanted or comparable(listed)
                    if comparable(listed) != wanted:
                        sys.exit(f"{LABELS[name]} does not list the same as {LABELS['json']}")
        return {
            name: {"cpu_seconds": statistics.median(cpu[name]), "wall_seconds": statistics.median(wall[name])}
            for name in commands
        }


def comparable(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a listing without the order and the empty groups, in which sources may differ."""
    return {
        "hostvars": listed["_meta"]["hostvars"],
        "groups": {
            name: sorted(group["hosts"]) for name, group in listed.items() if name != "_meta" and group.get("hosts")
        },
    }


def table(nodes: int, measured: Mapping[str, Mapping[str, float]]) -> str:
    """Return the lines for one size."""
    lines = [f"{f'{nodes} nodes':<28}{'wall s':>9}{'CPU s':>9} {'/ JSON':>8} {'YAML /':>8}"]
    cpu = {name: seconds["cpu_seconds"] for name, seconds in measured.items()}
    for name, label in LABELS.items():
        ratio, faster = cpu[name] / cpu["json"], cpu["yaml"] / cpu[name]
        wall = measured[name]["wall_seconds"]
        lines.append(f"  {label:<26}{wall:>9.2f}{cpu[name]:>9.2f} {ratio:>8.2f} {faster:>8.2f}")
    return "\n".join(lines)


def goals(nodes: int, measured: Mapping[str, Mapping[str, float]]) -> list[Goal]:
    """What the plugin is held against, in processor time."""
    cpu = {name: seconds["cpu_seconds"] for name, seconds in measured.items()}
    return [
        Goal(f"{nodes} nodes, plugin / static JSON", cpu["plugin"] / cpu["json"], 1.3),
        Goal(f"{nodes} nodes, static YAML / plugin", cpu["yaml"] / cpu["plugin"], 4, at_least=True),
    ]


def part(session: Session) -> Measured:
    """Each size in turn; the goals are those of the largest."""
    measured = {}
    for nodes in session.options.sizes:
        with tempfile.TemporaryDirectory(prefix="hal-bench-") as folder:
            measured[nodes] = Bench(Path(folder), nodes).measure(session.options.rounds)
        print(table(nodes, measured[nodes]), flush=True)
    largest = max(measured)
    return Measured(measured, goals(largest, measured[largest]))
