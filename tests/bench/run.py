#!/usr/bin/env python3
"""Ratios, measured side by side in one run (make bench). Goals are said to be met or not; none fails the run.

Parts: inventory (the plugin and the script against static JSON and YAML), rollout (the virtual HAL from nothing to a
job on every GPU, then again), calls (how often Ansible goes to each node for each role), pipelining (the same role, its
modules sent both ways), audit (the audit beside a ping and beside check mode, what recording costs, what a node pays),
reimage (one node, four and sixteen at once, by step),
scale_config (what deciding on 500 attributes of 1,000 nodes costs), bmcs (sixteen BMCs at once against one), provision
(DHCP and boot configurations of 10,000 nodes beside templates of them).
Each is a function in PARTS.

Inventory, scale_config, bmcs and provision need no nodes; the others use a virtual HAL of their own, which is removed
afterwards; one that `make demo` started is left alone.
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

# Found through the line above.
from running import surroundings  # noqa: E402

from tests.bench import audit, bmcs, calls, inventory, provision, reimage, rollout, scale_config  # noqa: E402
from tests.bench.part import NotMeasured, Part, Session  # noqa: E402

# In the order they run: the rollout measures how the nodes come up, those after it use them.
PARTS: dict[str, Part] = {
    "inventory": inventory.part,
    "rollout": rollout.part,
    "calls": calls.part,
    "pipelining": calls.pipelining,
    "audit": audit.part,
    "reimage": reimage.part,
    "scale_config": scale_config.part,
    "bmcs": bmcs.part,
    "provision": provision.part,
}
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
    surroundings.take_ours()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    facts = machine()
    results: dict[str, Any] = {"machine": facts, "goals": []}
    # What is printed on the way is for people; --json leaves stdout to the object.
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        print(header(facts) + "\n", flush=True)
        session = Session(options, STATE)
        try:
            for name in [name for name in PARTS if name in options.parts]:
                measured = PARTS[name](session)
                print("".join(f"{goal}\n" for goal in measured.goals), flush=True)
                results[name] = measured.numbers
                results["goals"] += [{**asdict(goal), "met": goal.met} for goal in measured.goals]
                if measured.failed:
                    raise NotMeasured(measured.failed)
        except NotMeasured as error:
            results["failed"] = f"{name}: {error}"
            print(results["failed"], flush=True)
        except KeyboardInterrupt:
            results["failed"] = f"{name}: stopped"
            print(results["failed"], flush=True)
        finally:
            session.close()
    if options.json:
        print(json.dumps(results, indent=2, sort_keys=True))
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())
