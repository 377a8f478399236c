"""A node on which the check took nodes out before it could only observe is not silenced by an update."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.interpreters import LOCAL
from tests.unit.playing import play
from tests.unit.roles.node_health.conftest import Installed, file_is

PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: node_health, tasks_from: look}
"""
GOES_ON = "hal05: an earlier version of the health check acts here, and this one goes on"
BEFORE = {"checks": [], "node": "hal05", "seconds": 25, "most_drained_percent": 25, "window_minutes": 60}


class Node:
    """What a version of the role left on a node: its list, and that it has run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.observed, self.runs = folder, folder / "observed.json", folder / "runs.json"
        self.checks = folder / "checks.json"
        self.checks.write_text(json.dumps(BEFORE, indent=4))
        self.runs.write_text('{"late": 0, "runs": false, "times": {}}')

    def rolled_out(self, *words: str, days: int = 14) -> str:
        """Roll out what looks at it; what that says."""
        (self.folder / "play.yml").write_text(PLAY)
        variables = {
            "__node_health_conf_dir": str(self.folder),
            "__node_health_state_dir": str(self.folder),
            "__node_health_runs": str(self.runs),
            "node_health_observe_days": days,
            "ansible_python_interpreter": LOCAL,
            "ansible_become": False,
        }
        options = ("--limit", "hal05", "--extra-vars", json.dumps(variables), *words)
        done = play(self.folder / "play.yml", *options, sites=("hal",))
        assert done.returncode == 0, done.stdout + done.stderr
        return " ".join(done.stdout.split())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_check_that_took_nodes_out_goes_on(node: Node) -> None:
    assert GOES_ON in node.rolled_out("--check")
    assert not node.observed.exists()
    assert GOES_ON in node.rolled_out()
    assert json.loads(node.observed.read_text()) == {"began": 0}
    assert node.observed.stat().st_mode & 0o777 == 0o600
    node.checks.write_text(json.dumps({**BEFORE, "observe_days": 14}, indent=4))
    said = node.rolled_out()
    assert GOES_ON not in said
    assert "changed=0" in said


@pytest.mark.parametrize("case", ["no list", "no run", "newer list", "observed", "declared"])
def test_every_other_node_is_observed_first(node: Node, case: str) -> None:
    """A node that has no check yet, or one that nothing starts; that observed already, or does not have to."""
    if case == "no list":
        node.checks.unlink()
    elif case == "no run":
        node.runs.unlink()
    elif case == "newer list":
        node.checks.write_text(json.dumps({**BEFORE, "observe_days": 0}, indent=4))
    elif case == "observed":
        node.observed.write_text('{"began": 1.5e9, "lines": {}}')
    before = node.observed.read_text() if node.observed.exists() else ""
    assert GOES_ON not in node.rolled_out(days=0 if case == "declared" else 14)
    assert (node.observed.read_text() if node.observed.exists() else "") == before


def test_what_is_kept_lets_the_check_drain(hal01: Installed) -> None:
    """The program's side of it."""
    (hal01.folder / "disk").write_text("full\n")
    hal01.asks(file_is(hal01.folder / "disk", "disk full"))
    hal01.observe_days = 14
    (hal01.folder / "observed.json").write_text('{"began": 0}\n')
    assert hal01.run("--act").returncode == 1
    assert [call[0] for call in hal01.node["calls"]].count("update") == 1
