"""The parts of a build on the node, as its module has them, and a root to try them on."""

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils

from tests.unit.hal_cluster.provision.conftest import PROJECT

SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)

hold: Any = importlib.import_module("ansible.module_utils.hal_node.image.hold")
install: Any = importlib.import_module("ansible.module_utils.hal_node.image.install")
cleaning: Any = importlib.import_module("ansible.module_utils.hal_node.image.clean")
packing: Any = importlib.import_module("ansible.module_utils.hal_node.image.pack")
ImageError: Any = hold.ImageError

SHADOW = "root:*:18000:0:99999:7:::\nbin:!!:18000::::::\nmunge:!:18000::::::\n"
PRIVATE = "-----BEGIN {}PRIVATE KEY-----\nMIIE\n"


def run(argv: Sequence[str], environ_update: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        list(argv), capture_output=True, text=True, check=False, env={**os.environ, **(environ_update or {})}
    )
    return done.returncode, done.stdout, done.stderr


def write(root: Path, name: str, content: str = "x") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path
