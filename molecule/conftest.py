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
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from running.ssh_config import Cluster  # noqa: E402  found through the line above
from testing import faults  # noqa: E402

from tests import skips  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """A test that skips proves nothing, here neither."""
    config.pluginmanager.register(skips.Skips(skips.load()), "skips")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A scenario's faults.yml is a list of tests."""
    return faults.File.from_parent(parent, path=file_path) if file_path.name == faults.NAME else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults first: they need nodes as the rollout has left them."""
    items.sort(key=lambda item: item.path.name != faults.NAME)


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
