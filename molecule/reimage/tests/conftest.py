"""The site that is reimaged: BMCs with the site's password, an image that its server has, nodes that take jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running.ssh_config import Cluster
from testinfra.host import Host
from testing.reimage_site import ReimageSite


@pytest.fixture(scope="session")
def hal(
    cluster: Cluster, node: Callable[[str], Host], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReimageSite]:
    """The scenario's site."""
    scenario = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
    site = ReimageSite(
        scenario, cluster, tmp_path_factory.mktemp("reimage"), reimage_playbook=str(scenario / "converge.yml")
    )
    with site.watched():
        with ThreadPoolExecutor(1) as pool:
            # The BMCs' playbook waits for BMCs, the image's for one node: they run side by side.
            image = pool.submit(site.make_image)
            site.first_contact()
            site.serve_installer()
            image.result()
        yield site
