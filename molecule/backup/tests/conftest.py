"""Fixtures of the scenario backup."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from testinfra.host import Host

sys.path.insert(0, str(Path(__file__).resolve().parent))

from backup_cluster import Node


@pytest.fixture
def login(node: Node) -> Host:
    """The controller, where users submit."""
    return node("hal-login")


@pytest.fixture
def database(node: Node) -> Host:
    """The node with slurmdbd."""
    return node("hal-mgmt1")


@pytest.fixture
def server(node: Node) -> Host:
    """The node that keeps the archives."""
    return node("hal-data")
