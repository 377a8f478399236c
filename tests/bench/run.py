#!/usr/bin/env python3
"""Ratios, measured side by side in one run (make bench). Nothing here passes or fails because of a time.

Parts: inventory (the plugin and the script against static JSON and YAML), rollout (the virtual HAL from nothing to a
job on every GPU, then again), calls (how often Ansible goes to each node for each role), pipelining (the same role, its
modules sent both ways).

The last three use a virtual HAL of their own, which is removed afterwards; one that `make demo` started is left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "shared")]

from tests.bench import calls, inventory, rollout  # noqa: E402  found through the line above
from tests.bench.instance import Instance  # noqa: E402

from stages import Runner  # noqa: E402  # isort: skip

PARTS = ("inventory", "rollout", "calls", "pipelining")
STATE = PROJECT / ".state" / "bench"


def machine() -> dict[str, str]:
    """What the numbers were measured on, and when."""
    with open("/proc/meminfo") as lines:
        memory = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal"))
    with open("/proc/cpuinfo") as lines:
        model = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "cpu\t"))), "?"
        )
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": output("git", "describe", "--always", "--dirty"),
        "cores": f"{os.cpu_count()} ({model})",
        "memory": f"{memory / 2**20:.1f} GiB",
        "load before": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "system": f"{platform.freedesktop_os_release().get('PRETTY_NAME', '?')}, kernel {platform.release()}",
        "python": platform.python_version(),
        "ansible-core": importlib.metadata.version("ansible-core"),
        "podman": output("podman", "--version").removeprefix("podman version "),
        "ssh": output("ssh", "-V"),
    }


def output(*argv: str) -> str:
    """What a command says of itself, "not there" without it."""
    try:
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "not there"
    return (done.stdout or done.stderr).strip()


def header(facts: dict[str, str]) -> str:
    """The machine as text."""
    rows = "\n".join(f"  {name:<13} {value}" for name, value in facts.items())
    return f"Seconds are of this machine at this time, which others may have used too: compare the ratios.\n{rows}"


def measure_inventory(sizes: list[int], rounds: int) -> dict[int, dict[str, dict[str, float]]]:
    """Seconds of each way to read an inventory, by number of nodes; prints a table for each."""
    measured = {}
    for nodes in sizes:
        with tempfile.TemporaryDirectory(prefix="hal-bench-") as folder:
            measured[nodes] = inventory.Bench(Path(folder), nodes).measure(rounds)
        print(inventory.table(nodes, measured[nodes]), flush=True)
    return measured


def measure_nodes(options: argparse.Namespace) -> dict[str, Any]:
    """The parts that need nodes. The nodes are removed whatever happens."""
    results: dict[str, Any] = {}
    instance = Instance(options.nodes, STATE)
    instance.destroy()
    try:
        if "rollout" in options.parts:
            whole = rollout.measure(instance)
            print(rollout.table(whole), flush=True)
            results["rollout"] = whole.as_json()
            if whole.failed:
                return results
        elif not instance.bring_up(Runner("bench")):
            return {"failed": "the nodes could not be rolled out"}
        if "calls" in options.parts:
            counted = calls.measure(instance, STATE)
            print(calls.table(counted), flush=True)
            results["calls"] = calls.as_json(counted)
        if "pipelining" in options.parts:
            compared = calls.compare(instance, STATE, options.role, options.rounds)
            print(calls.comparison_table(compared), flush=True)
            results["pipelining"] = compared.as_json()
    except calls.NotMeasured as error:
        print(error, flush=True)
        results["failed"] = str(error)
    finally:
        if not options.keep:
            instance.destroy()
    return results


def main() -> int:
    """Measure the parts asked for; 1 when one of them could not be measured, never because of a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all without one")
    parser.add_argument("--nodes", choices=("full", "mini"), default=os.environ.get("NODES", "full"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[22, 1736, 10000], help="nodes of the inventory part")
    parser.add_argument("--rounds", type=int, default=3, help="runs each way; the median counts")
    parser.add_argument("--role", default="base", help="the role of the part pipelining")
    parser.add_argument("--keep", action="store_true", help="leave the nodes running")
    parser.add_argument("--json", action="store_true", help="print one object with everything measured")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    options.parts = options.parts or list(PARTS)
    os.environ["ANSIBLE_CONFIG"] = str(PROJECT / "ansible.cfg")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    facts = machine()
    results: dict[str, Any] = {"machine": facts}
    # What is printed on the way is for people; --json leaves stdout to the object.
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        print(header(facts) + "\n", flush=True)
        if "inventory" in options.parts:
            results["inventory"] = measure_inventory(options.sizes, options.rounds)
        if set(options.parts) - {"inventory"}:
            results |= measure_nodes(options)
    if options.json:
        print(json.dumps(results, indent=2, sort_keys=True))
    failed = results.get("failed") or results.get("rollout", {}).get("failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
