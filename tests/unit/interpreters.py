"""Pythons for tests of what runs on nodes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "molecule" / "virtual_hal"))

from testbed import pythons

# Where this machine stands in for a node: not that of .venv, which is below a folder that may have a blank in its name.
LOCAL = str(Path(sys.executable).resolve())
LAB = Path(__file__).resolve().parents[2] / "plugins" / "module_utils"
# What a node may have as its own Python, and the same with this machine's.
NODES = pythons.VERSIONS
EVERY = ("local", *NODES)
# Now, because a test may set another cache.
BUILT = {version: str(pythons.program(version)) for version in NODES}


@functools.cache
def interpreter(version: str) -> str:
    """Return the path of a Python of NODES or EVERY. Without it the test fails: nobody would know what it did not run.

    HAL_TEST_PYTHON27 and HAL_TEST_PYTHON36 name others than those of `molecule/virtual_hal/setup pythons build`.
    """
    if version == "local":
        return LOCAL
    variable = "HAL_TEST_PYTHON" + version.replace(".", "")
    name = os.environ.get(variable) or BUILT[version]
    probe = "import sys; sys.stdout.write('%d.%d %s' % (sys.version_info[:2] + (sys.executable,)))"
    try:
        done = subprocess.run([name, "-c", probe], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.fail(f"no Python {version} here: {error}; molecule/virtual_hal/setup pythons build, or {variable}")
    found, _, path = done.stdout.partition(" ")
    if found != version:
        pytest.fail(f"{name} is not a Python {version}: {found or done.stderr.strip()}")
    return path


def beside(python: str) -> list[str]:
    """Return a command line's beginning: a program of a role finds the modules that a rollout puts beside it."""
    return ["env", f"PYTHONPATH={LAB}", python, "-B"]
