"""The command hal-inventory adopt: it shows, it writes when told, and it leaves the file where it cannot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.inventory.cli import main
from hal_inventory.load import load
from tests.unit.hal_inventory.capture.test_adopt import EMBER


def bmc(serial: str | None = "XYZ9", mac: str = "02:00:00:00:09:99") -> dict[str, Any]:
    system = {"@odata.type": "#ComputerSystem.v1_6_0.ComputerSystem", "SerialNumber": serial}
    port = {"MACAddress": mac, "IPv4Addresses": [{"Address": "10.20.1.12"}]}
    resources = {"/redfish/v1/Systems/system": system, "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0": port}
    return {"format": 1, "kind": "bmc", "address": "10.20.1.12", "taken_at": "x", "resources": resources}


class Site:
    """A folder with a model, its source and a file of what a BMC said; the command is called in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.model, self._capsys = folder, folder / "site/cluster.yml", capsys
        self.model.parent.mkdir()
        self.model.write_text(EMBER)
        (folder / "site/hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
        self.says(bmc())

    def says(self, document: Any) -> None:
        (self.folder / "bmc.json").write_text(json.dumps(document))

    def adopt(self, *words: str, node: str = "node2") -> tuple[int, str, str]:
        self._capsys.readouterr()
        status = main(["-i", "site/hal.yml", "adopt", node, "--bmc-file", "bmc.json", *words])
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return status, said.out, said.err

    def untouched(self) -> bool:
        return self.model.read_text() == EMBER and len(list(self.model.parent.iterdir())) == 2


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache"))
    return Site(tmp_path, capsys)


def test_without_write_it_shows_what_it_would_write_and_how(site: Site) -> None:
    status, out, err = site.adopt()
    assert status == 0
    assert out.splitlines()[:3] == [
        "FIELD     LINE  DECLARED           FOUND              BY",
        "serial      28  ABC2               XYZ9               bmc.json  new",
        "macs.bmc    35  02:00:00:00:01:12  02:00:00:00:09:99  bmc.json  was a placeholder",
    ]
    assert '+    serial: [ABC1, XYZ9, !placeholder "NODE[3-4]"]  # two came later\n' in out
    assert err == "Is that the machine in the rack? Then give the command again, with --write\n"
    assert site.untouched()


def test_with_write_the_file_is_replaced_with_its_mode_and_what_comes_next_is_said(site: Site) -> None:
    site.model.chmod(0o640)
    inode = site.model.stat().st_ino
    status, out, err = site.adopt("--write")
    assert status == 0
    assert '+        "02:00:00:00:09:99",  # node2\n' in out
    assert err.splitlines()[0] == "site/cluster.yml: written. Next:"
    assert "  git commit site/cluster.yml\n" in err
    assert "playbooks/site.yml --tags provision_server" in err
    assert "playbooks/reimage.yml -e reimage_nodes=node2" in err
    node = load("site/cluster.yml").nodes["node2"]
    assert (node.serial, node.macs["bmc"]) == ("XYZ9", "02:00:00:00:09:99")
    assert site.model.stat().st_mode & 0o7777 == 0o640
    assert site.model.stat().st_ino != inode, "it was replaced at once, never half written"
    assert sorted(path.name for path in site.model.parent.iterdir()) == ["cluster.yml", "hal.yml"]
    again, out, err = site.adopt("--write")
    assert (again, err) == (0, "site/cluster.yml has all of this: nothing to adopt\n")


def test_what_no_bmc_tells_is_given(site: Site) -> None:
    site.says(bmc(serial="FRONT", mac="02:00:00:00:01:01"))
    words = [
        "--disk",
        "0x5000c500a1b2c3ff",
        "--disk",
        "scratch=0x5000c500a1b2c3fe",
        "--mac",
        "management=02:AA:00:00:00:01",
    ]
    assert site.adopt(*words, "--write", node="front")[0] == 0
    node = load("site/cluster.yml").nodes["front"]
    assert node.parts["disks"] == {"system": "0x5000c500a1b2c3ff", "scratch": "0x5000c500a1b2c3fe"}
    assert node.macs == {"management": "02:aa:00:00:00:01", "bmc": "02:00:00:00:01:01"}


def test_json_has_the_same(site: Site) -> None:
    status, out, _ = site.adopt("--json")
    found = json.loads(out)
    assert (status, found["node"], found["findings"]) == (0, "node2", [])
    assert found["identities"][0] == {
        "field": "serial",
        "line": 28,
        "declared": "ABC2",
        "found": "XYZ9",
        "source": "bmc.json",
        "state": "new",
    }
    assert found["diff"].startswith("--- a/site/cluster.yml\n")


@pytest.mark.parametrize(
    ("node", "document", "words", "said"),
    [
        ("node2", bmc(serial="ABC1"), [], "which is the serial number of node1: the two are swapped"),
        ("node2", bmc(serial=None), [], "bmc.json: resources: no system or chassis has a serial number"),
        (
            "node2",
            {"format": 1, "kind": "node", "host": "a", "taken_at": "", "outputs": {}, "files": {}},
            [],
            "is of a system",
        ),
        ("node3", bmc(), [], "write a list with one value a node there"),
        ("node[2-3]", bmc(), [], "adopt takes the name of one node; node[2-3] is 2: node2, node3"),
        ("compute", bmc(), [], "adopt takes the name of one node; compute is 4: "),
        ("nod2", bmc(), [], 'unknown node "nod2"'),
        ("node2,node3", bmc(), [], "adopt takes the name of one node; node2,node3 is 2: "),
        ("node2", bmc(), ["--disk", "system="], "--disk system=: is not NAME=VALUE"),
        ("node2", bmc(), ["--mac", "02:00:00:00:09:98"], "--mac 02:00:00:00:09:98: is not NAME=VALUE"),
        ("front", bmc(), ["--disk", "0x5000c500a1b2c3ff", "--disk", "system=0x5000c500a1b2c3fe"], "is given twice"),
        ("front", bmc(), ["--disk", "0x5000c500a1b2c311"], "as it would be: WWN used twice: 0x5000c500a1b2c311"),
    ],
)
def test_what_is_refused_writes_nothing_and_says_why(
    site: Site, node: str, document: Any, words: list[str], said: str
) -> None:
    site.says(document)
    status, _, err = site.adopt("--write", *words, node=node)
    assert status == 2
    assert said in err
    assert site.untouched()


def test_two_nodes_are_not_taken(site: Site) -> None:
    with pytest.raises(SystemExit) as ended:
        site.adopt("node3")
    assert ended.value.code == 2
    assert site.untouched()


def test_a_file_that_somebody_changed_meanwhile_is_not_overwritten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def changed(descriptor: int) -> None:
        real(descriptor)
        site.model.write_text(EMBER + "# theirs\n")

    monkeypatch.setattr("os.fsync", changed)
    status, _, err = site.adopt("--write")
    assert status == 2
    assert "was changed by somebody else meanwhile; nothing is written" in err
    assert site.model.read_text() == EMBER + "# theirs\n"
    assert len(list(site.model.parent.iterdir())) == 2


def test_a_write_that_fails_leaves_the_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    status, _, err = site.adopt("--write")
    assert status == 2
    assert err.splitlines()[-1] == "site/cluster.yml: cannot be written: No space left on device; it is as it was"
    assert site.untouched()


def test_a_node_outside_the_source_s_part_has_no_bmc_to_ask(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.folder / "site/hal.yml").write_text("plugin: hal\ncluster: cluster.yml\nonly: front\n")
    assert main(["-i", "site/hal.yml", "adopt", "node2"]) == 2
    assert capsys.readouterr().err == "node2 is not in this source's part of the site; name another with -i\n"
    assert site.untouched()


def test_all_of_it_is_on_the_disk_before_it_takes_the_file_s_place(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = list[int](), os.fsync

    def watched(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        assert site.model.read_text() == EMBER
        real(descriptor)

    monkeypatch.setattr("os.fsync", watched)
    assert site.adopt("--write")[0] == 0
    assert synced == [site.model.stat().st_size]
