"""From cluster.yml to a kickstart file: the slice ``boot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_inventory.compiled import slice_of
from hal_provision.errors import ProvisionError
from hal_provision.kickstart import disk_of
from hal_provision.nodes import boot_node
from tests.unit.provision.conftest import PROJECT


def site(folder: Path, *, virtual: bool = False) -> dict[str, dict[str, Any]]:
    (folder / "cluster.yml").write_text((PROJECT / "inventory/hal/cluster.yml").read_text())
    (folder / "hal.yml").write_text(f"plugin: hal\ncluster: cluster.yml\nvirtual: {str(virtual).lower()}\n")
    return {one["name"]: one for one in slice_of(folder / "hal.yml", "boot", {})}


def test_a_node_is_what_the_model_says(tmp_path: Path) -> None:
    found = site(tmp_path)["hal05"]
    assert {name: found[name] for name in ("fqdn", "arch", "kernel", "disk")} == {
        "fqdn": "hal05.hal.example",
        "arch": "ppc64le",
        "kernel": "4.18.0-80.7.2.el7",
        "disk": "0x50248414c1050001",
    }
    assert found["macs"] == {"management": "02:48:41:4c:02:05", "bmc": "02:48:41:4c:03:05"}
    assert found["addresses"]["management"] == "10.64.0.105"


def test_placeholders_stop_a_real_site_and_no_virtual_one(tmp_path: Path) -> None:
    real = boot_node(site(tmp_path)["hal05"])
    assert {"serial", "macs.management", "disks.system"} <= set(real.placeholders)
    with pytest.raises(ProvisionError, match=r"hal05: .*macs\.management.* in cluster.yml are placeholders"):
        disk_of(real)
    (tmp_path / "virtual").mkdir()
    assert disk_of(boot_node(site(tmp_path / "virtual", virtual=True)["hal05"])) == "disk/by-id/wwn-0x50248414c1050001"


def test_a_node_without_a_declared_system_disk_is_refused(tmp_path: Path) -> None:
    found = site(tmp_path, virtual=True)
    assert found["hal-data"]["disk"] is None  # it has disks, and none is the system's
    with pytest.raises(ProvisionError, match="hal-data: no system disk is declared"):
        disk_of(boot_node(found["hal-data"]))
