"""The program at the controller."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from bmc.petitboot import Kernel, Lease, boot

from hal_cluster.provision.cli import main
from tests.unit.hal_cluster.provision.conftest import PROJECT

SAMPLES = Path(__file__).parent / "captures" / "petitboot"
TREE = "http://10.64.0.11/images/centos-7.7-power9"


def test_an_image_is_made_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "images" / "image_key"
    assert main(["key", str(key)]) == 0
    assert main(["key", str(key)]) == 0
    assert "image_key: was there; its public part is" in capsys.readouterr().out
    (tmp_path / "root.tar.xz").write_text("root")
    (tmp_path / "packages").write_text("bash-4.2.46-33.el7.ppc64le\nkernel-4.18.0-80.7.2.el7.ppc64le\n")
    words = ["--name", "compute", "--version", "1", "--arch", "ppc64le", "--kernel", "4.18.0-80.7.2.el7"]
    places = ["--into", str(tmp_path / "images"), "--key", str(key), "--packages", str(tmp_path / "packages")]
    assert main(["seal", str(tmp_path / "root.tar.xz"), *places, *words]) == 0
    folder = capsys.readouterr().out.strip()
    assert folder == str(tmp_path / "images" / "compute-1-ppc64le")
    assert main(["check", folder, "--key", f"{key}.pem"]) == 0
    assert "compute-1-ppc64le: whole and signed; kernel 4.18.0-80.7.2.el7, 2 packages" in capsys.readouterr().out
    assert main(["check", folder, "--key", f"{key}.pem", "--arch", "x86_64"]) == 2
    assert capsys.readouterr().err == "compute-1-ppc64le: is for ppc64le, and x86_64 is needed\n"
    assert main(["seal", str(tmp_path / "nowhere.tar"), *places, *words]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/nowhere.tar: cannot be read: No such file or directory\n"


def test_what_another_machine_packed_is_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["key", str(tmp_path / "key")]) == 0
    told = {
        "name": "ac922", "version": "20261122.101500", "arch": "ppc64le", "kernel": "4.18.0-80.7.2.el7", "size": "4711",
        "file": "rootfs.tar.gz", "sha256": "0" * 64, "packages": ["b-1-1.noarch", "a-1-1.noarch"],
        "made_from": {"commit": "x"},
    }  # fmt: skip
    words = ["sign", "--into", str(tmp_path / "images"), "--key", str(tmp_path / "key")]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(told)))
    capsys.readouterr()
    assert main(words) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder == tmp_path / "images" / "ac922-20261122.101500-ppc64le"
    written = json.loads((folder / "manifest.json").read_text())
    assert written["size"] == 4711
    assert written["packages"] == ["a-1-1.noarch", "b-1-1.noarch"]
    assert written["created"].endswith("Z")
    assert written["made_from"] == {"commit": "x"}
    for text in ("", "[]", "{}", json.dumps({**told, "more": 1})):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(words) == 2
        said = "sign: standard input is not a manifest; JSON, as playbooks/image.yml writes it\n"
        assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("armed.cfg", 0, "boots its default entry"),
        ("standing.cfg", 0, "no entry: the disk is booted"),
        ("default_below_label.cfg", 2, "line 4: DEFAULT below LABEL is not looked at"),
    ],
)
def test_a_configuration_is_looked_at(name: str, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["petitboot", str(SAMPLES / name)]) == status
    captured = capsys.readouterr()
    assert said in (captured.err if status else captured.out)
    assert main(["petitboot", "/nowhere"]) == 2
    assert capsys.readouterr().err == "/nowhere: No such file or directory\n"


def test_a_rescue_order_boots_the_installer(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--inventory",
        str(PROJECT / "inventory/hal/hal.yml"),
        "--tree",
        f"{TREE}/",
        "--server",
        "http://10.64.0.11:8480",
    ]
    assert main(["rescue", "hal05", *words]) == 0
    order = json.loads(capsys.readouterr().out)
    assert (order["node"], order["address"], order["what"]) == ("hal05", "10.64.0.105", "rescue mode")
    lease = Lease("02:48:41:4c:02:05", "10.64.0.105", options={209: "http://x/y"})
    found = boot(lease, lambda url: order["config"].encode()).decision
    assert isinstance(found, Kernel)
    assert found.url == f"{TREE}/ppc/ppc64/vmlinuz"
    assert "inst.rescue" in found.append.split()
    assert main(["rescue", "hal99", *words]) == 2
    assert "hal99: " in capsys.readouterr().err
    assert main(["rescue", "hal05", *words, "--hours", "48"]) == 2
    assert "at most 86400 s" in capsys.readouterr().err
