"""The small virtual HAL of these tests: made once, always removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "molecule" / "virtual_hal"))

from demo.mini import Mini
from running.ansible_run import Ansible
from running.ssh_config import Cluster


@pytest.fixture(scope="session")
def mini() -> Iterator[Mini]:
    """Fresh nodes, nothing rolled out. HAL_ROLLOUT_SITE: another inventory source, for slow nodes beside these."""
    mini = Mini()
    if site := os.environ.get("HAL_ROLLOUT_SITE"):
        sources = (Path(site),)
        mini.cluster, mini.ansible = Cluster(sources), Ansible(sources, virtual_name=Path(site).parent.name)
    mini.destroy()
    created = mini.create()
    assert created.status == 0, created.explain()
    if site:
        # systemctl's own is 25 seconds.
        line = {"path": "/etc/environment", "create": True, "line": "SYSTEMD_BUS_TIMEOUT=600s"}
        patient = mini.ansible.module("all", "ansible.builtin.lineinfile", line)
        assert patient.status == 0, patient.explain()
    yield mini
    mini.destroy()
