"""Pythons for tests of what runs on nodes."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Where this machine stands in for a node: not that of .venv, which is below a folder that may have a blank in its name.
LOCAL = str(Path(sys.executable).resolve())


def interpreter(version: str) -> str:
    """Return the path of a Python of this version, as "3.6"; without one the test is skipped.

    HAL_TEST_PYTHON36 names one, else python3.6 has to be on PATH.
    """
    found = _interpreter(version)
    if not found:
        pytest.skip(f"no Python {version} here; HAL_TEST_PYTHON{version.replace('.', '')} can name one")
    return found


@functools.cache
def _interpreter(version: str) -> str:
    name = os.environ.get("HAL_TEST_PYTHON" + version.replace(".", "")) or shutil.which(f"python{version}")
    if not name:
        return ""
    probe = "import sys; sys.stdout.write('%d.%d %s' % (sys.version_info[:2] + (sys.executable,)))"
    done = subprocess.run([name, "-c", probe], capture_output=True, text=True, check=False)
    found, _, path = done.stdout.partition(" ")
    return path if done.returncode == 0 and found == version else ""
