"""hal-audit adopt from end to end, with Ansible's programs played: what is kept, called, said and returned."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.audit.cli import adopt, playbook
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import Store, read_json, write_json

Called = Callable[[list[str], dict[str, str]], subprocess.CompletedProcess[str]]


def entry(role: str, name: str) -> dict[str, Any]:
    """An entry of a proposal."""
    return {"resource": f"file:/{name}", "role": role, "declared": {}, "task": f"{role}|x|Write {name}"}


def proposal(node: str, *adoptable: dict[str, Any], differs: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """What check mode proposes for a node."""
    run = {"id": "r", "commit": "abc", "started": 1.0}
    return {"format": 1, "node": node, "run": run, "adoptable": list(adoptable), "differs": list(differs), "roles": {}}


class World:
    """The controller's folder, and what was called."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.calls: list[tuple[list[str], dict[str, str]]] = []
        self.play: Called = lambda command, extra: subprocess.CompletedProcess(command, 0, "", "")

    def __call__(self, **more: Any) -> int:
        given = {"sources": ["i"], "limit": "", "rest": ["-v"], "accept": False, "as_json": False, **more}
        return adopt.adopt(argparse.Namespace(**given))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A site of three nodes."""
    made = World(tmp_path / "audit")

    class Inventory:
        def __init__(self, sources: list[str]) -> None:
            assert sources == ["i"]

        def nodes(self, limit: str) -> list[str]:
            return [] if limit == "none" else ["n1", "n2", "n3"]

        def store(self, _node: str) -> Store:
            return made.store

    def call(command: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        made.calls.append((command, extra))
        return made.play(command, extra)

    monkeypatch.setattr(adopt, "Inventory", Inventory)
    monkeypatch.setattr(playbook, "call", call)
    monkeypatch.setattr(playbook, "program", lambda name: f"/bin/{name}")
    return made


def test_a_limit_that_selects_nothing_is_refused(world: World) -> None:
    with pytest.raises(AuditError, match=r'^"none" selects no node$'):
        world(limit="none")
    assert world.calls == []


def test_a_proposal_is_what_check_mode_finds_now(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(world.store.proposal("n3"), proposal("n3", entry("old", "gone")))
    output = "TASK [time : Start it] ****\nfatal: [n1]: FAILED! => {}\n"

    def play(command: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        for node in ("n1", "n2"):
            write_json(world.store.proposal(node), proposal(node, entry("time", "a"), differs=(entry("ssh", "b"),)))
        return subprocess.CompletedProcess(command, 2, output, "")

    world.play = play
    assert world() == 0
    site = str(playbook.PROJECT / "playbooks" / "site.yml")
    environment = {
        "HAL_PROVENANCE": "propose",
        "ANSIBLE_CALLBACK_PLUGINS": str(playbook.PROJECT / "plugins" / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "hal_printable,hal_preload,hal_provenance,hal_rollout",
    }
    assert world.calls == [(["/bin/ansible-playbook", "-i", "i", "-v", "--check", site], environment)]
    assert read_json(world.store.proposal("n1"))["stopped"] == ["time"]
    assert read_json(world.store.proposal("n2"))["stopped"] == []
    assert not world.store.proposal("n3").exists()
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert said == [
        "Not as declared: a rollout changes these",
        "NODES ROLE RESOURCE TASK",
        "n[1-2] ssh file:/b Write b",
        "As declared: these can be recorded",
        "NODES ROLE RESOURCE TASK",
        "n[1-2] time file:/a Write a",
        "2 nodes: 2 resources are as declared, 2 are not.",
        "Nothing is recorded yet: hal-audit adopt --accept records those that are.",
        "Nothing could be proposed for n3.",
        'Check mode ended on n1 at "time : Start it": what comes after it is in no list.',
    ]


def test_a_check_mode_that_proposes_nothing_says_why(world: World) -> None:
    world.play = lambda command, extra: subprocess.CompletedProcess(command, 4, "", "ERROR! no such role\n")
    with pytest.raises(AuditError, match=r"^check mode proposed nothing: no such role$"):
        world()


def test_nothing_is_accepted_before_it_was_proposed(world: World) -> None:
    write_json(world.store.proposal("n1"), proposal("n1", differs=(entry("ssh", "b"),)))
    words = "^nothing was proposed for these nodes yet: run hal-audit adopt first, and read it$"
    with pytest.raises(AuditError, match=words):
        world(accept=True)
    assert world.calls == []


def test_what_is_accepted_is_told_to_the_nodes(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for node in ("n1", "n2"):
        write_json(world.store.proposal(node), proposal(node, entry("time", "a"), entry("ssh", "b")))
    told: dict[str, Any] = {}

    def play(command: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        told.update(json.loads(command[-1]), tree=Path(command[command.index("--tree") + 1]))
        for node in ("n1", "n2"):
            spool = read_json(world.store.spool(told["run"], node))
            assert [one["resource"] for one in spool["entries"]] == ["file:/a", "file:/b"]
            (told["tree"] / node).write_text(json.dumps({"observed": 2}))
        return subprocess.CompletedProcess(command, 0, "", "")

    world.play = play
    assert world(accept=True) == 0
    ((command, extra),) = world.calls
    tree, run = str(told["tree"]), told["run"]
    task = {"run": run, "folders": dict.fromkeys(("n1", "n2"), str(world.store.folder))}
    assert command[:-1] == ["/bin/ansible", "-i", "i", "-v", "n1,n2", "--tree", tree, "-m", "hal_record", "-a"]
    assert json.loads(command[-1]) == task
    assert extra == {"ANSIBLE_CALLBACKS_ENABLED": ""}
    assert not Path(tree).exists()
    assert not world.store.proposal("n1").exists()
    assert capsys.readouterr().out == "Recorded 4 resources of 2 nodes (n[1-2])\n"


def test_a_node_that_could_not_record_keeps_its_proposal_and_no_spool(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in ("n1", "n2", "n3"):
        write_json(world.store.proposal(node), proposal(node, entry("time", "a")))

    def play(command: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        tree = Path(command[command.index("--tree") + 1])
        (tree / "n1").write_text(json.dumps({"observed": 1}))
        (tree / "n2").write_text(json.dumps({"observed": 1, "failed": True, "msg": "disk\n\x1b[2Jfull"}))
        return subprocess.CompletedProcess(command, 2, "", "it went wrong\n")

    world.play = play
    assert world(accept=True) == 1
    said = capsys.readouterr()
    assert said.out == "Recorded 1 resources of 1 node (n1)\n"
    assert said.err == "n2: not recorded: disk \\x1b[2Jfull\nn3: not recorded: it went wrong (exit status 2)\n"
    assert [world.store.proposal(node).exists() for node in ("n1", "n2", "n3")] == [False, True, True]
    assert world.store.pending("n2") == world.store.pending("n3") == []
    assert world(accept=True, as_json=True) == 1
    assert json.loads(capsys.readouterr().out) == {"recorded": [], "resources": 0}


def test_why_a_call_came_to_nothing() -> None:
    assert playbook.reason(1, "ERROR! out", "x\n[ERROR]: err \ny") == "err"
    assert playbook.reason(1, "ansible: error: out", "x") == "out"
    assert playbook.reason(1, "ansible-playbook: error: out", "x") == "out"
    assert playbook.reason(3, "out", "a\n\n b \n\n") == "b (exit status 3)"
    assert playbook.reason(3, "out\n", "") == "out (exit status 3)"
    assert playbook.reason(3, "", " ") == "it said nothing (exit status 3)"


def test_the_options_of_every_call() -> None:
    assert playbook.arguments(["a", "b"], "n", ["-v"]) == ["-i", "a", "-i", "b", "--limit", "n", "-v"]
    assert playbook.arguments([], "", []) == []


def test_ansible_finds_the_configuration_of_this_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSIBLE_CONFIG", "mine")
    assert playbook.environment({})["ANSIBLE_CONFIG"] == "mine"
    monkeypatch.setenv("ANSIBLE_CONFIG", "")
    made = playbook.environment({"A": "b"})
    wanted = {"ANSIBLE_CONFIG": str(playbook.PROJECT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "A": "b"}
    assert {name: made[name] for name in (*wanted, "ANSIBLE_FORCE_COLOR")} == {**wanted, "ANSIBLE_FORCE_COLOR": "0"}
    monkeypatch.setenv("ANSIBLE_CONFIG", "")
    (tmp_path / "ansible.cfg").touch()
    assert playbook.environment({})["ANSIBLE_CONFIG"] == ""
