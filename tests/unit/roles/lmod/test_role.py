"""What role lmod refuses before it contacts a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playing import play_text

PLAY = """
- hosts: lmod
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: lmod, tasks_from: validate}
"""


def refused(folder: Path, **variables: Any) -> list[str]:
    """What the role says on a login and a compute node, nothing for no refusal."""
    done = play_text(folder, PLAY, "hal-login,hal01", **variables)
    tasks = json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"]
    said = [one["msg"] for task in tasks for one in task["hosts"].values() if one.get("failed")]
    assert (done.returncode != 0) == bool(said), done.stdout + done.stderr
    return said


def test_hal_s_own_declarations_are_right(tmp_path: Path) -> None:
    assert refused(tmp_path) == []


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"lmod_modules": [{"name": "x", "version": 1, "title": "x"}, {"name": "y", "version": "1"}]},
            "lmod_modules: module x/1: version is the number 1; put it in quotes, or 1.10 is 1.1\n"
            "lmod_modules: module y/1: no title",
        ),
        ({"software_modulefiles": "/home/apps/modulefiles"}, "not below /home"),
        ({"software_modulefiles": "opt/modulefiles"}, "software_modulefiles is opt/modulefiles: an absolute path"),
        ({"lmod_modulepath_extra": ["relative"]}, "lmod_modulepath_extra has relative: absolute paths"),
        ({"lmod_default_modules": ["a b"]}, "lmod_default_modules is a b: NAME or NAME/VERSION"),
        ({"lmod_shell_packages": ["fish"]}, "lmod_shell_packages is fish: of tcsh, zsh"),
        ({"lmod_title": ""}, 'lmod_title is "": one line of 1 to 60 characters'),
    ],
)
def test_what_makes_no_sense_is_refused_on_every_node(tmp_path: Path, variables: dict[str, Any], words: str) -> None:
    said = refused(tmp_path, **variables)
    assert len(said) == 2
    assert all(words in one for one in said), said
