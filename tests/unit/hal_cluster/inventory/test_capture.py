"""The command on the controller: a diff that applies, remarks beside it, JSON, and errors in one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.inventory.capture import SCRIPT
from hal_cluster.inventory.cli import main
from hal_inventory.load import load

Machine = Callable[..., dict[str, Any]]
Write = Callable[[str, dict[str, Any]], str]
MODEL = """\
format: 1
name: ember
domain: ember.example
networks:
  management: {kind: ethernet, cidr: 10.20.0.0/24}
profiles:
  server:
    model: a server
    arch: x86_64
    cpus: {model: Xeon, sockets: 1, cores_per_socket: 1, threads_per_core: 1}
    memory_mb: 1024
    kernel: 3.10.0-1062.el7
nodes:
  front: {role: login, profile: server, serial: !placeholder FRONT, addresses: {management: 10.20.0.1}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and its source, which is the working directory."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/cluster.yml").write_text(MODEL)
    (tmp_path / "site/hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_the_diff_applies_and_then_there_is_nothing_to_propose(
    site: Path, machine: Machine, write: Write, captured: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    system = captured("dmidecode/r720.txt").replace("PowerEdge R720", "a server")
    lscpu = "Architecture: x86_64\nCPU(s): 1\nThread(s) per core: 1\nCore(s) per socket: 1\nSocket(s): 1\n"
    file = write("front.json", machine("front", lscpu=lscpu, dmidecode=system))
    assert main(["-i", "site/hal.yml", "capture", file]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    subprocess.run(["git", "apply"], input=said.out, text=True, check=True, capture_output=True)
    assert load("site/cluster.yml").nodes["front"].serial == "7GTKD92"
    assert load("site/cluster.yml").placeholders == ()

    assert main(["-i", "site/hal.yml", "capture", file]) == 0
    assert capsys.readouterr() == ("", "nothing to propose\n")


def test_findings_stand_beside_the_diff_and_set_the_status(
    site: Path, machine: Machine, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write("front.json", machine("front", {"/proc/device-tree/system-id": "ABC1"}, uname="3.10.0-957.el7.x86_64"))
    assert main(["-i", "site/hal.yml", "capture", file]) == 2
    said = capsys.readouterr()
    assert "+  front: {role: login, profile: server, serial: ABC1, addresses" in said.out
    assert said.err.splitlines() == [
        "front.json: outputs.lscpu: has no processors in it",
        "site/cluster.yml:12: profiles.server.kernel: is 3.10.0-1062.el7; front.json says 3.10.0-957.el7",
    ]
    assert main(["-i", "site/hal.yml", "--json", "capture", file]) == 2
    data = json.loads(capsys.readouterr().out)
    assert data["proposed"] == [
        {"field": "nodes.front.serial", "node": "front", "value": "ABC1", "source": "front.json"}
    ]
    assert [one["field"] for one in data["findings"]] == ["outputs.lscpu", "profiles.server.kernel"]
    assert data["diff"] == said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "capture needs the files that its script printed on machines (--script prints the script)"),
        (["gone.json"], "gone.json: no such file"),
        (["--node", "frnt", "x.json"], 'unknown node "frnt"; did you mean "front"?'),
        (["--node", "front", "x.json", "y.json"], "--node names the node of one file; these are several"),
        (["site/hal.yml"], "site/hal.yml: is not the JSON of a capture: Expecting value at line 1"),
    ],
)
def test_a_call_that_cannot_work_says_so_in_one_line(
    site: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-i", "site/hal.yml", "capture", *arguments]) == 2
    assert capsys.readouterr() == ("", message + "\n")


def test_the_script_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--script"]) == 0
    assert capsys.readouterr().out == SCRIPT.read_text()
