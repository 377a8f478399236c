"""What a node gets for its toolkits: the names of NVIDIA's packages, and the modules that users load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from hal_cluster.rules.cuda.versions import toolkit_release


def releases(toolkits: Sequence[object]) -> list[str]:
    """Return the releases of declared toolkits: 10.2 for 10.2 and for 10.2.89.

    VersionError for anything else.
    """
    return [toolkit_release(toolkit)[0] for toolkit in toolkits]


def dashed(release: str) -> str:
    """Return a release as names of packages have it: 10-2."""
    return release.replace(".", "-")


def toolkit_packages(toolkits: Sequence[object]) -> list[str]:
    """Return what to install: cuda-toolkit-10-2, or cuda-toolkit-10-2-10.2.89 for an exact version.

    VersionError for anything else.
    """
    names = []
    for toolkit in toolkits:
        release, exact = toolkit_release(toolkit)
        names.append(f"cuda-toolkit-{dashed(release)}" + (f"-{exact}" if exact else ""))
    return names


def with_driver(packages: Iterable[str]) -> list[str]:
    """Return those that bring a driver with them.

    Such packages are cuda and cuda-runtime-10-2. Their driver would come beside the one that the site declares.
    """
    from hal_cluster.rules.cuda.table import load

    names = load().driver_packages.names
    return [package for package in packages if any(re.fullmatch(name, package) for name in names)]


def undeclared(installed: Iterable[str], toolkits: Sequence[object]) -> dict[str, list[str]]:
    """Return the installed packages of toolkits that nobody declared, by release, sorted.

    `installed`: names of packages. `toolkits`: as `releases` takes them.
    """
    kept = set(releases(toolkits))
    names: dict[str, list[str]] = {}
    for name in sorted(set(installed)):
        release = _release_of(name)
        if release and release not in kept:
            names.setdefault(release, []).append(name)
    return names


def modules(toolkits: Sequence[object], default: str) -> list[dict[str, Any]]:
    """Return a module for each toolkit, as hal_module_files takes them; `default` is one of their releases.

    PATH and LD_LIBRARY_PATH: NVIDIA CUDA Installation Guide for Linux 10.2, "Environment Setup"; CUDA_HOME is what
    build systems of frameworks ask for.
    `toolkits`: cuda_toolkits, as `releases` takes them. `default`: the release that a user gets who names none.
    """
    made = []
    for release in dict.fromkeys(releases(toolkits)):
        root = f"/usr/local/cuda-{release}"
        made.append(
            {
                "name": "cuda",
                "version": release,
                "title": f"NVIDIA CUDA toolkit {release}: compiler, libraries, profiler",
                "help": f"nvcc and its relatives, and the libraries in {root}.\nnvidia-smi says which driver is here.",
                "default": release == default,
                "family": "cuda",
                "roots": [f"{root}/bin/nvcc"],
                "set": {"CUDA_HOME": root},
                "prepend": {"PATH": [f"{root}/bin"], "LD_LIBRARY_PATH": [f"{root}/lib64"]},
                "owner_role": "cuda",
            }
        )
    return made


def _release_of(name: str) -> str | None:
    """Return 10.2 of cuda-nvcc-10-2, 11.3 of libcublas-devel-11-3; None for what belongs to no one toolkit."""
    match = re.fullmatch(r"(?:cuda|gds|lib(?:cu|npp|nv))[\w-]*?-(\d{1,2}-\d{1,2})(?:-config-common)?", name)
    return match[1].replace("-", ".") if match else None
