"""The wheel of py-rattler that nodes install with: which one, and how to get it. Nodes have no way to PyPI."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from hal_cluster.environments.errors import HalEnvironmentsError

VERSION = "0.25.0"
# Checksums are PyPI's, of the release's files for glibc 2.17 (CentOS 7) and Python 3.8 or later.
WHEELS = {
    "ppc64le": (
        "py_rattler-0.25.0-cp38-abi3-manylinux_2_17_ppc64le.manylinux2014_ppc64le.whl",
        "3d704df01d1fb90df54e7416329f90975fda36a5a22558f88fbdb05462e6e0d9",
    ),
    "x86_64": (
        "py_rattler-0.25.0-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "b642304155f492c7dd3eb772df5e8e97942bff445ab8e343dc7a173e3efbfcf1",
    ),
}


def bring(arch: str, folder: Path) -> Path:
    """Return the wheel in a folder, fetched by pip, with its settings, unless it is there; checked in any case."""
    name, sha256 = WHEELS[arch]
    path = folder / name
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        stored = Path(os.environ.get("HAL_WHEELHOUSE", "/nonexistent")) / name  # docs/operations.md: without a network
        if stored.is_file():
            shutil.copyfile(stored, path)
    if not path.is_file():
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                "--only-binary=:all:", f"--platform=manylinux_2_17_{arch}", "--python-version=3.8", "--abi=abi3",
                "--implementation=cp", f"--dest={folder}", f"py-rattler=={VERSION}",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode or not path.is_file():
            why = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
            raise HalEnvironmentsError(f"{name} cannot be had: {why}. With a network elsewhere, put it into {folder}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise HalEnvironmentsError(f"{path}: has sha256 {digest}, PyPI's is {sha256}: remove it")
    return path
