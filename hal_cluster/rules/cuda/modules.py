"""The modules that users load a toolkit by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hal_cluster.rules.cuda.packages import releases


def modules(toolkits: Sequence[object], default: str) -> list[dict[str, Any]]:
    """Return a module for each toolkit, as hal_module_files takes them; `default` is one of their releases.

    PATH and LD_LIBRARY_PATH: NVIDIA CUDA Installation Guide for Linux 10.2, "Environment Setup"; CUDA_HOME is what
    build systems of frameworks ask for.
    `toolkits`: cuda_toolkits, as `releases` takes them. `default`: the release that a user gets who names none.
    """
    found = []
    for release in dict.fromkeys(releases(toolkits)):
        root = f"/usr/local/cuda-{release}"
        found.append(
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
    return found
