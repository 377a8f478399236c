"""What is shipped to nodes is imported under the name it has there, and answers under their Pythons, too (alike.py)."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from ansible.module_utils.hal_node.network import change, contact, places, write

from tests.unit.alike import alike

from .node import CONNECTION, Node

alike("hal_node.network.files", "hal_node.network.live")


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Below it are the folders that a change needs."""
    for name, path in vars(places).items():
        if isinstance(path, str) and path.startswith(("/run/hal/network", "/var/lib/hal/network", "/etc/sysconfig/")):
            monkeypatch.setattr(places, name, f"{tmp_path}/root{path}")
    return tmp_path / "root"


@pytest.fixture
def node(root: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Two interfaces that are as declared; the connection came in by eno1."""
    made = Node(root)
    for phase in (write, change):
        monkeypatch.setattr(phase, "look", lambda _: copy.deepcopy(made.now))
    for asking in (contact, change):
        monkeypatch.setattr(asking, "ssh_connection", lambda: CONNECTION)
    return made
