"""What the tests of every scenario get: its nodes over OpenSSH, and its model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

sys.path.insert(0, str(Path(__file__).resolve().parent / "shared"))

from ssh_config import Cluster


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The scenario's cluster, from its hal.yml."""
    scenario = os.environ.get("MOLECULE_SCENARIO_DIRECTORY")
    assert scenario, "run these tests with molecule: make molecule ROLE=..."
    return Cluster([Path(scenario) / "hal.yml"])


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> Callable[[str], Host]:
    """Return a function: a node's name -> its testinfra host."""

    @cache
    def connect(name: str) -> Host:
        assert name in cluster.slice("nodes"), f"{name} is not in this scenario: {cluster.slice('nodeset')}"
        return testinfra.get_host(f"ssh://{name}", ssh_config=str(cluster.ssh_config))

    return connect


@pytest.fixture(scope="session")
def site(cluster: Cluster) -> Callable[..., Any]:
    """Return a function: what lookup('hal', name, ...) gives in this scenario."""
    return cluster.slice
