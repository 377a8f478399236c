"""hal-audit originals: what nodes say that they keep, equal lines as one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.audit.cli import main, originals, playbook

CONF = {
    "thing": "file:/etc/chrony.conf",
    "roles": ["time"],
    "was": "nothing",
    "now": "changed",
    "kept_at": "2026-11-27",
}
UNIT = {**CONF, "thing": "service:slurmd.service", "roles": ["slurm"], "kept_at": "2026-11-28"}


class Nodes:
    """Stands in for the inventory."""

    def __init__(self, _sources: Sequence[str]) -> None:
        """The same three nodes, whatever the sources."""

    def nodes(self) -> list[str]:
        """Return them."""
        return ["hal01", "hal02", "hal05"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were called; hal05 does not answer."""
    called: list[Sequence[str]] = []

    def call(command: Sequence[str], _extra: Any) -> subprocess.CompletedProcess[str]:
        called.append(command)
        folder = Path(command[command.index("--tree") + 1])
        said: dict[str, Any] = {"hal01": {"originals": [CONF, UNIT]}, "hal02": {"originals": [CONF]}}
        said["hal05"] = {"unreachable": True, "msg": "no route\nto host"}
        for node, answer in said.items():
            (folder / node).write_text(json.dumps(answer))
        return subprocess.CompletedProcess(command, 4, "", "")

    monkeypatch.setattr(originals, "Inventory", Nodes)
    monkeypatch.setattr(playbook, "call", call)
    return called


def test_equal_lines_of_several_nodes_are_one(asked: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["originals", "hal[01-02]"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NODES       WHAT                    ROLES  BEFORE   NOW      KEPT",
        "hal[01-02]  file:/etc/chrony.conf   time   nothing  changed  2026-11-27",
        "hal01       service:slurmd.service  slurm  nothing  changed  2026-11-28",
    ]
    assert "hal01,hal02" in asked[0]


def test_a_node_that_does_not_answer_is_named(asked: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["originals", "--json", "--role", "slurm"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == {"hal01": [UNIT], "hal02": []}
    assert said.err == "hal05: no route to host\n"


def test_nothing_kept_is_said(asked: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["originals", "hal02", "--role", "slurm"]) == 0
    assert capsys.readouterr().out == "Nothing is kept\n"


@pytest.mark.parametrize("nodes", [[], ["hal01"]])
def test_options_of_ansible_are_no_nodes(asked: list[Sequence[str]], nodes: list[str]) -> None:
    main(["originals", *nodes, "--", "-e", "word=x"])
    assert list(asked[0][asked[0].index("-e") :][:2]) == ["-e", "word=x"]


def test_options_of_ansible_are_behind_a_mark(asked: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["originals", "hal01", "hal02"], ["history", "--", "-e", "word=x"]):
        with pytest.raises(SystemExit):
            main(words)
    assert capsys.readouterr().err == (
        "hal-audit originals: unrecognized arguments: hal02\nhal-audit: unrecognized arguments: -e word=x\n"
    )
    assert asked == []


def test_unknown_nodes_and_roles_are_refused(asked: list[Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["originals", "hal55"]) == 1
    assert capsys.readouterr().err.startswith('no node "hal55"')
    assert main(["originals", "--role", "tiem"]) == 1
    assert capsys.readouterr().err.startswith('no role "tiem"')
    assert asked == []
