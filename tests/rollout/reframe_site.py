"""ReFrame on the login node: its packages, and what it is to know of the cluster, from the model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

from ClusterShell.NodeSet import NodeSet
from running.ssh_config import Cluster
from testbed.cache import cache_dir, content_hash, made_once

HERE = Path(__file__).parent
LOCK, CHECKS = HERE / "reframe.lock", HERE / "reframe_checks.py"
LOGIN = "hal-login"
# Of nodes, whichever Python runs us: Debian 12's.
PYTHON = (
    *("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11"),
    *(word for abi in ("cp311", "abi3", "none") for word in ("--abi", abi)),
    *(word for glibc in (17, 26, 28) for word in ("--platform", f"manylinux_2_{glibc}_{os.uname().machine}")),
)


def packages() -> Path:
    """The folder with ReFrame and what it needs, as the lock says; made once."""

    def make(new: Path) -> None:
        words = ["--disable-pip-version-check", "--quiet", "--no-deps", "--require-hashes", *PYTHON]
        pip = [sys.executable, "-m", "pip", "install", *words, "--target", str(new), "-r", str(LOCK)]
        subprocess.run(pip, check=True)

    target = cache_dir() / "clients" / f"reframe-{content_hash([LOCK], *PYTHON)}"
    return made_once(target, "clients-reframe", make)


def configuration(cluster: Cluster) -> Mapping[str, Any]:
    """What ReFrame calls a site's configuration."""
    login = {
        "name": "login",
        "scheduler": "local",
        "launcher": "local",
        "environs": ["builtin"],
    }
    system = {
        "name": "hal",
        "hostnames": [LOGIN],
        "modules_system": "lmod",
        "partitions": [login, *(_partition(cluster, one) for one in cluster.slice("slurm.partitions"))],
    }
    return {
        "systems": [system],
        "general": [{"resolve_module_conflicts": False}],
    }


def _partition(cluster: Cluster, declared: Mapping[str, Any]) -> dict[str, Any]:
    nodes = list(NodeSet(declared["nodes"]))
    node = cluster.node(nodes[0])
    cpus, gpus = node["cpus"], [] if declared["refuses_gpus"] else node["gpus"]
    threads = cpus["threads_per_core"]
    return {
        "name": declared["name"],
        "scheduler": "slurm",
        "launcher": "srun",
        "environs": ["builtin"],
        "access": [f"--partition={declared['name']}"],
        "processor": {
            "num_cpus": cpus["total"],
            "num_sockets": cpus["sockets"],
            "num_cpus_per_socket": cpus["cores_per_socket"] * threads,
            "num_cpus_per_core": threads,
        },
        "features": ["slurm", *(["gpu"] if gpus else [])],
        "devices": [{"type": "gpu", "model": gpus[0]["type"].upper(), "num_devices": len(gpus)}] if gpus else [],
        "resources": [{"name": "gpu", "options": [f"--gres=gpu:{gpus[0]['type']}:{{count}}"]}] if gpus else [],
        "extras": {"nodes": nodes},
    }


def write(cluster: Cluster, folder: Path) -> None:
    """Write the configuration and the checks, for the home of who runs them."""
    (folder / "site.py").write_text(f"site_configuration = {pformat(configuration(cluster))}\n")
    (folder / "checks.py").write_text(CHECKS.read_text())
