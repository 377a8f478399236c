"""A site whose nodes boot by their BMCs: its BMCs, its server, and what it installs. The nodes are of one scenario."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from running.ssh_config import Cluster
from testing.bmc_site import BmcSite


@pytest.fixture(scope="session")
def bmcs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BmcSite]:
    """The scenario's BMCs with the site's password, and its server with an installer to boot."""
    scenario = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
    site = BmcSite(scenario, cluster, tmp_path_factory.mktemp("bmc-site"))
    with site.watched():
        yield site
