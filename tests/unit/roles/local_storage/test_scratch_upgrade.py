"""The clean-up of a node where the role cleaned up before it asked for a permission goes on by the same rules."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rules.local_storage import scratch
from tests.unit.hal_node.storage.conftest import PROJECT
from tests.unit.interpreters import LAB, LOCAL
from tests.unit.playing import play

PROGRAM = PROJECT / "roles/local_storage/files/scratch_clean.py"
sys.path[:0] = [str(PROGRAM.parent), str(LAB)]
clean: Any = importlib.import_module("scratch_clean")
PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: local_storage, tasks_from: look}
    - import_role: {name: local_storage, tasks_from: scratch}
"""
SYSTEMCTL = """#!/bin/sh
here={here}
case $1 in
  show) echo LoadState=loaded; echo "ActiveState=$(cat $here/runs)"; echo UnitFileState=enabled ;;
  is-enabled) cat $here/enabled; grep -qx enabled $here/enabled ;;
  is-active) cat $here/runs; grep -qx active $here/runs ;;
  start | restart | stop | enable | disable) echo "$1 $2" >>$here/done ;;
esac
"""
RULES = {"mount": "/scratch", "days": 30, "node": "hal05", "slurm": True, "device": "", "beside": "/"}


@pytest.mark.parametrize(
    ("there", "same"),
    [
        (json.dumps(RULES), True),
        (json.dumps({**RULES, "days": "30", "node": "other", "beside": "/var"}), True),
        (json.dumps({**RULES, "mount": "/local"}), False),
        (json.dumps({**RULES, "days": 31}), False),
        (json.dumps({**RULES, "slurm": False}), False),
        (json.dumps({**RULES, "device": "/dev/sdb"}), False),
        (json.dumps({**RULES, "days": "many"}), False),
        (json.dumps({"mount": "/scratch"}), False),
        ("[]", False),
        ("{", False),
        ("", False),
    ],
)
def test_rules_are_the_same_or_not(there: str, same: bool) -> None:
    assert scratch.served(there, RULES) is same
    try:
        code = clean.code_of(json.loads(there))
    except (ValueError, TypeError, KeyError):
        assert not same
    else:
        assert (code == clean.code_of(RULES)) is same, "what was permitted is what a code stands for"


class Site:
    """A node as the version before left it, with files in scratch."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scratch, self.config = folder, folder / "scratch", folder / "config.json"
        self.timer, self.permitted = folder / "hal-scratch-clean.timer", folder / "permitted"
        self.scratch.mkdir(mode=0o1777)
        self.scratch.chmod(0o1777)
        (self.scratch / "old").write_text("x")
        (folder / "systemctl").write_text(SYSTEMCTL.format(here=folder))
        (folder / "systemctl").chmod(0o755)
        self.served()

    def served(self, days: int = 30, enabled: str = "enabled", runs: str = "active") -> None:
        """What the version before wrote, and whether its timer runs."""
        settings = {**RULES, "mount": str(self.scratch), "days": days}
        self.config.write_text(json.dumps(settings))
        self.timer.write_text('# Written by the role "local_storage"; changes made here are lost.\n[Timer]\n')
        (self.folder / "enabled").write_text(f"{enabled}\n")
        (self.folder / "runs").write_text(f"{runs}\n")

    def rolled_out(self, days: int = 30) -> str:
        """Roll the part of scratch out; what it says."""
        program = self.folder / "hal-scratch-clean"
        places = f"--config {self.config} --record {self.permitted}/permitted"
        settings = {**RULES, "days": days, "mount": str(self.scratch), "beside": str(self.scratch)}
        files = {
            program: f'#!/bin/sh\nPYTHONPATH="{LAB}" exec "{LOCAL}" "{PROGRAM}" {places} "$@"\n',
            self.config: json.dumps(settings),
        }
        variables: dict[str, Any] = {
            "__local_storage_scratch_file": str(self.config),
            "__local_storage_scratch_timer": str(self.timer),
            "__local_storage_scratch_permitted_dir": str(self.permitted),
            "__local_storage_scratch_program": str(program),
            "__local_storage_scratch_program_dir": str(self.folder / "program"),
            "__local_storage_scratch_settings": settings,
            "__local_storage_scratch_directories": [{"path": str(self.permitted), "mode": "0700"}],
            "__local_storage_scratch_files": [
                {"path": str(path), "content": text, "mode": "0755"} for path, text in files.items()
            ],
            "local_storage_scratch": {"mount": str(self.scratch), "disk": "", "mode": "1777"},
            "ansible_python_interpreter": LOCAL,
            "ansible_become": False,
        }
        (self.folder / "play.yml").write_text(PLAY)
        done = play(
            self.folder / "play.yml",
            *("--limit", "hal05", "--extra-vars", json.dumps(variables)),
            sites=("hal",),
            PATH=f"{self.folder}:{os.environ['PATH']}",
        )
        assert done.returncode == 0, done.stdout
        return " ".join(done.stdout.split())

    @property
    def goes_on(self) -> bool:
        """Whether the timer is not stopped."""
        did = (self.folder / "done").read_text() if (self.folder / "done").exists() else ""
        return "stop hal-scratch-clean.timer" not in did


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.root  # whose files they become
def test_a_clean_up_that_served_goes_on_by_the_same_rules(site: Site) -> None:
    assert "The clean-up of" not in site.rolled_out()
    assert site.goes_on
    assert (site.permitted / "permitted").exists()
    # From here on it is permitted like any other, and other rules want their code.
    assert "The clean-up of" not in site.rolled_out()
    assert f"The clean-up of {site.scratch} is off" in site.rolled_out(days=31)


@pytest.mark.root
@pytest.mark.parametrize("not_ours", ["days", "enabled", "runs", "timer", "none", "newer"])
def test_every_other_node_asks_for_the_code(site: Site, not_ours: str) -> None:
    """Other rules; off; somebody's own timer of this name; no timer; and a node that asked already."""
    if not_ours in ("days", "enabled", "runs"):
        others: dict[str, Any] = {"days": 60, "enabled": "disabled", "runs": "inactive"}
        site.served(**{not_ours: others[not_ours]})
    elif not_ours == "timer":
        site.timer.write_text("[Timer]\nOnCalendar=daily\n")
    elif not_ours == "none":
        site.timer.unlink()
    else:
        site.permitted.mkdir()
    assert f"The clean-up of {site.scratch} is off" in site.rolled_out()
    assert not (site.permitted / "permitted").exists()
