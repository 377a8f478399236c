"""From cluster.yml to a kickstart file: the slice ``boot``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision.boot import Installer, order
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.kickstart import Place, Server, disk_of, kickstart
from hal_cluster.provision.nodes import boot_node
from hal_cluster.provision.tokens import Token
from hal_inventory.compiled import slice_of
from tests.unit.hal_cluster.provision.conftest import PROJECT
from tests.unit.hal_cluster.provision.test_kickstart import FROM_IMAGE


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


def test_a_node_of_a_profile_that_refuses_it_is_never_installed_and_may_boot_the_rescue_mode(tmp_path: Path) -> None:
    login = replace(boot_node(site(tmp_path, virtual=True)["hal-login"]), disk="0x50248414c0100001")
    said = "^hal-login: its profile lc921 says reimage: refused$"
    where = Place("management", "255.255.255.0")
    token, server = Token("words", 1e10), Server("https://10.64.0.11:8481", "-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(ProvisionError, match=said):
        kickstart(login, where, FROM_IMAGE, server, token, virtual=True)
    tree = "http://10.64.0.11/images/tree"
    words = f"inst.stage2={tree}"
    with pytest.raises(ProvisionError, match=said):
        order(
            login,
            "management",
            "an image",
            Installer(f"{tree}/a", f"{tree}/b", words),
            "http://10.64.0.11:8480",
            "",
            token,
        )
    rescue = Installer(f"{tree}/a", f"{tree}/b", f"{words} inst.rescue")
    assert order(login, "management", "rescue", rescue, "http://10.64.0.11:8480", "", token)["node"] == "hal-login"


def test_what_a_profile_says_of_it_reaches_the_node_and_what_says_nothing_refuses(tmp_path: Path) -> None:
    found = site(tmp_path)
    allowed = {name for name, one in found.items() if boot_node(one).reimage == "allowed"}
    assert allowed == {"hal-test", *(f"hal{at:02d}" for at in range(1, 17))}
    unsaid = {name: value for name, value in found["hal05"].items() if name != "reimage"}
    assert boot_node(unsaid).reimage == "refused"


def test_a_node_without_a_declared_system_disk_is_refused(tmp_path: Path) -> None:
    found = site(tmp_path, virtual=True)
    assert found["hal-data"]["disk"] is None  # it has disks, and none is the system's
    with pytest.raises(ProvisionError, match="hal-data: no system disk is declared"):
        disk_of(boot_node(found["hal-data"]))
