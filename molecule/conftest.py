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

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "shared")]

from ssh_config import Cluster  # noqa: E402  found through the line above

from tests import skips  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """A test that skips proves nothing, here neither."""
    config.pluginmanager.register(skips.Skips(skips.load()), "skips")


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
