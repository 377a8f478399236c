"""A warm ansible-playbook is one: same output and status as a started one, and what hangs ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit import warm

PROGRAM = str(Path(sys.executable).with_name("ansible-playbook"))
ENVIRONMENT = {
    "ANSIBLE_CONFIG": str(warm.ROOT / "ansible.cfg"),
    "ANSIBLE_CALLBACKS_ENABLED": "",
    "ANSIBLE_INVENTORY_ENABLED": "host_list",
    "HOME": os.environ.get("HOME", "/"),
    "PATH": os.environ["PATH"],
}
PLAY = """\
- hosts: all
  gather_facts: false
  connection: local
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
    - ansible.builtin.command: {argv: [printenv, WORD]}
      register: said
      failed_when: said.stdout != 'right'
"""


def words(folder: Path, text: str = PLAY) -> list[str]:
    (folder / "play.yml").write_text(text)
    return [PROGRAM, "-i", "one,", str(folder / "play.yml")]


@pytest.mark.parametrize("word", ["right", "wrong"])
def test_a_run_is_what_a_started_one_is(tmp_path: Path, word: str) -> None:
    own = {**ENVIRONMENT, "WORD": word}
    started = subprocess.run(
        words(tmp_path), cwd=warm.ROOT, env=own, capture_output=True, text=True, check=False, timeout=300
    )
    for _ in range(2):
        run = warm.run(words(tmp_path), own, 300)
        assert run.returncode == started.returncode == (0 if word == "right" else 2)
        without_times = [
            [line for line in text.splitlines() if not line.strip().startswith(("start:", "end:", "delta:"))]
            for text in (run.stdout, started.stdout)
        ]
        assert without_times[0] == without_times[1]
        assert run.stderr == started.stderr


def test_what_cannot_be_read_ends_as_it_does(tmp_path: Path) -> None:
    run = warm.run(words(tmp_path, "- hosts: [\n"), ENVIRONMENT, 300)
    assert run.returncode == 4
    assert "Syntax Error" in run.stderr


def test_a_run_that_hangs_ends_with_all_that_it_began_and_the_next_one_works(tmp_path: Path) -> None:
    own = {**ENVIRONMENT, "WORD": "right"}
    assert warm.run(words(tmp_path), own, 300).returncode == 0  # imported
    mark = tmp_path / "mark"
    hanging = PLAY.replace("[printenv, WORD]", f"[sh, -c, 'exec 9<>{mark}; flock 9; sleep 3600']")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(words(tmp_path, hanging), own, 8)
    subprocess.run(["flock", "--timeout", "60", str(mark), "true"], check=True)
    assert warm.run(words(tmp_path), own, 300).returncode == 0
