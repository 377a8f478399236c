"""hal-inventory capture --bmc, by hal_cluster.bmc.capture: what BMCs propose for the model, and its faults."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest

from hal_cluster.bmc.models import Target
from hal_cluster.inventory.cli import main
from hal_inventory.load import load
from tests.unit.hal_cluster.bmc.emulated import PORTS, SECRET
from tests.unit.hal_cluster.bmc.site import MODEL, Site

STORE = """\
  store:
    role: data
    profile: plain
    serial: !placeholder STORE
    addresses: {management: 10.99.0.12, bmc: 127.0.9.12}
    macs: {bmc: !placeholder "02:00:00:00:00:01"}
"""
PLAIN = """\
  plain:
    model: IBM Power System AC922 8335-GTH
    arch: ppc64le
    cpus: {model: POWER9, sockets: 2, cores_per_socket: 4, threads_per_core: 4}
    memory_mb: 262144
    bmc: ipmi
    kernel: 4.18.0
nodes:
"""


@pytest.fixture
def site(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    ports = {f"{name}_port": number for name, number in PORTS.model_dump().items()}
    # The usual ports are root's.
    monkeypatch.setattr("hal_cluster.inventory.capture_bmc.Target", partial(Target, **ports))
    macs = 'macs: {bmc: !placeholder "02:00:00:00:09:[01-04]"}'
    text = MODEL.replace('serial: "S[1-4]"', f'serial: !placeholder "PLACEHOLDER-[1-4]"\n    {macs}')
    site.model(text.replace("nodes:\n", PLAIN, 1).replace("services:\n", f"{STORE}services:\n"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HAL_BMC_PASSWORD", SECRET)
    return site


def test_serial_numbers_and_macs_come_from_the_bmcs(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.serve("work1", "work2", "work3", "work4", "store", work4={"certificate": None, "key": None})
    words = ["-i", "site/hal.yml", "capture", "--bmc", "compute or store", "--ca-file", "site/state/ca/tls_ca.pem"]
    assert main(words) == 2, "one BMC is not believed"
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "BMC of work4: login of root: its certificate is signed only by itself; it shows sha256:" in said.err
    subprocess.run(["git", "apply"], input=said.out, text=True, check=True, capture_output=True)
    nodes = load("site/cluster.yml").nodes
    assert [nodes[f"work{at}"].serial for at in range(1, 5)] == ["S1", "S2", "S3", "PLACEHOLDER-4"]
    assert nodes["store"].serial == "S8"
    for name in ("work1", "work2", "work3", "store"):
        assert nodes[name].macs["bmc"] == site.bmcs[name].machine.spec.macs["bmc"]
    pin = said.err.split("sha256:")[1][:64]
    assert main([*words[:4], "work4", "--pin", f"work4=sha256:{pin}"]) == 0
    said = capsys.readouterr()
    assert "S4" in said.out


def test_one_that_says_something_else_than_is_declared_is_a_finding(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.model(MODEL)
    site.serve("work1", "work2")
    site.bmcs["work1"].fault(swapped_with="work2")
    status = main(["-i", "site/hal.yml", "capture", "--bmc", "work1", "--ca-file", "site/state/ca/tls_ca.pem"])
    said = capsys.readouterr()
    assert status == 2
    assert "nodes.work[1-4].serial: work1 has S1 here; BMC of work1 says S2" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bmc", "compute and front"], "--bmc compute and front: no node is selected"),
        (["--bmc", "work1", "x.json"], "--bmc asks the BMCs itself: give it without FILE and --node"),
        (["--bmc", "work1", "--pin", "work2=ab"], "--pin work2=ab: work2 is not one of the nodes that are asked"),
        (["--bmc", "work1", "--pin", "ab"], "--pin ab: is not NODE=FINGERPRINT"),
        (["--bmc", "aside"], "BMC of aside: bmc: the model has no BMC for this node"),
        (["--bmc", "work1"], "the check of its certificate: neither a file of authorities nor a fingerprint"),
    ],
)
def test_slips_are_one_line(site: Site, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-i", "site/hal.yml", "capture", *words]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_a_password_that_everybody_knows_reads_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HAL_BMC_PASSWORD", "0penBmc")
    main(["-i", "site/hal.yml", "capture", "--bmc", "work1", "--ca-file", "site/state/ca/tls_ca.pem"])
    assert "its password is one that everybody knows, or empty" in capsys.readouterr().err


def test_a_replaced_board_is_adopted_from_what_its_bmc_says_and_a_swapped_one_is_not(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    macs = 'macs: {bmc: ["02:00:00:00:09:01", "02:00:00:00:09:02", "02:00:00:00:09:03", "02:00:00:00:09:04"]}'
    site.model(MODEL.replace('serial: "S[1-4]"', f"serial: [S1, OLD, S3, S4]  # by rack\n    {macs}"))
    site.serve("work1", "work2")
    before = load("site/cluster.yml").nodes
    words = ["-i", "site/hal.yml", "adopt", "work2", "--ca-file", "site/state/ca/tls_ca.pem", "--write"]
    site.bmcs["work2"].fault(swapped_with="work1")
    assert main(words) == 2
    said = capsys.readouterr()
    assert "BMC of work2 says S1, which is the serial number of work1: the two are swapped" in said.err
    assert load("site/cluster.yml").nodes == before
    site.bmcs["work2"].fault(swapped_with=None)
    assert main(words) == 0
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    after = load("site/cluster.yml").nodes
    assert (after["work2"].serial, after["work2"].macs["bmc"]) == ("S2", site.bmcs["work2"].machine.spec.macs["bmc"])
    assert {name: node for name, node in after.items() if name != "work2"} == {
        name: node for name, node in before.items() if name != "work2"
    }
    assert main([*words[:3], "aside"]) == 2
    assert "BMC of aside: bmc: the model has no BMC for this node" in capsys.readouterr().err


def test_what_virtual_machines_say_never_takes_the_place_of_a_placeholder(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.model(MODEL.replace('serial: "S[1-4]"', "serial: [S1, !placeholder OLD, OLDER, S4]"))
    text = Path("site/cluster.yml").read_text()
    site.serve("work2", "work3")
    Path("virtual").mkdir()
    Path("virtual/hal.yml").write_text("plugin: hal\ncluster: ../site/cluster.yml\nvirtual: true\n")
    words = ["-i", "virtual/hal.yml", "adopt", "--ca-file", "site/state/ca/tls_ca.pem", "--write"]
    assert main([*words, "work2"]) == 2
    said = capsys.readouterr().err
    assert "virtual/hal.yml is virtual, and so is what its BMCs say: site/cluster.yml keeps its placeholders" in said
    assert "(serial of work2)" in said
    assert Path("site/cluster.yml").read_text() == text
    assert main([*words, "work3"]) == 0
    assert load("site/cluster.yml").nodes["work3"].serial == "S3"
