"""The lab's strategies/mitogen_linear.py: what it answers by itself is what a worker of Ansible's would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
STRATEGIES = ROOT / "molecule/virtual_hal/strategies"
# In ansible-playbook: each process that it forks is a line in a file. subprocess forks otherwise.
COUNTING = """
import os
os.register_at_fork(after_in_parent=lambda: os.write(log, b"1"))
log = os.open(os.environ["FORKS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
"""
PLAYS = """
- hosts: all
  gather_facts: false
  vars:
    first: "{{ inventory_hostname == 'one' }}"
  tasks:
    - name: On one host
      ansible.builtin.command: pwd
      when: first
      changed_when: true
      register: said
      notify: Afterwards
    - name: Who was skipped
      ansible.builtin.debug: {msg: "{{ said is skipped }} {{ said.false_condition | default('') }}"}
    - name: The second condition
      ansible.builtin.debug: {msg: no}
      when: [true, inventory_hostname is defined, not first, inventory_hostname == 'one']
    - name: Of each item
      ansible.builtin.debug: {msg: "{{ item }}"}
      loop: [1, 2]
      when: item == 2 and first
    - name: Of all items alike
      ansible.builtin.debug: {msg: "{{ item }}"}
      loop: [1, 2]
      when: first
    - name: What fails
      ignore_errors: true  # the case of this test: both strategies fail at these four in the same words
      block:
        - name: Of what is not defined
          ansible.builtin.debug: {msg: no}
          when: not_there
        - name: Of what is no condition
          ansible.builtin.debug: {msg: no}
          when: "'one' +"
        - name: Of what cannot be computed
          ansible.builtin.debug: {msg: no}
          when: 1 / groups['none'] | default([]) | length > 2
        - name: Nowhere
          ansible.builtin.debug: {msg: no}
          delegate_to: "{{ '' }}"
          when: not first and first
    - name: Without a word
      ansible.builtin.debug: {msg: secret}
      when: first
      no_log: true
    - name: Without a word, as is found out
      ansible.builtin.debug: {msg: secret}
      when: first
      no_log: "{{ first }}"
    - name: Elsewhere
      ansible.builtin.command: pwd
      changed_when: false
      delegate_to: two
      when: first
    - name: Once
      ansible.builtin.debug: {msg: once}
      run_once: true
      when: not first
    - name: More tasks
      ansible.builtin.include_tasks: more.yml
      when: first
    - when: not first
      vars:
        of_block: "{{ inventory_hostname }}"
      block:
        - name: In a block
          ansible.builtin.debug: {msg: "{{ of_block }}"}
          when: of_block == 'two'
        - name: A task's own variable
          ansible.builtin.debug: {msg: no}
          vars: {mine: "{{ of_block }}"}
          when: mine == 'three'
  handlers:
    - name: Afterwards
      ansible.builtin.debug: {msg: handled}
      when: not first
"""


def played(folder: Path, *, ours: bool) -> tuple[dict[str, Any], int]:
    """What Ansible's JSON callback says of the plays, without what differs, and how many processes Ansible forked."""
    forks = folder / f"forks-{ours}"
    strategy = {"ANSIBLE_STRATEGY_PLUGINS": str(STRATEGIES), "ANSIBLE_STRATEGY": "mitogen_linear"}
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", "one,two,", "-c", "local"),
            *("-e", "ansible_python_interpreter={{ ansible_playbook_python | quote }}", str(folder / "plays.yml")),
        ],
        cwd=ROOT,
        env={
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACKS_ENABLED": "hal_preload",
            "ANSIBLE_INVENTORY_ENABLED": "hal,host_list",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "FORKS": str(forks),
            "PYTHONPATH": str(folder),  # sitecustomize.py
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
            **(strategy if ours else {}),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    tasks: dict[str, dict[str, Any]] = {}
    for task in (
        task for play in found["plays"] for task in play["tasks"]
    ):  # several of one name for a strange strategy
        tasks.setdefault(task["task"]["name"], {}).update({host: told(task["hosts"][host]) for host in task["hosts"]})
    return {"stats": found["stats"], "tasks": tasks}, forks.stat().st_size


def told(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a task said, without what differs from run to run."""
    differs = ("start", "end", "delta", "ansible_facts", "invocation")
    return {key: result[key] for key in result if key not in differs}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plays.yml").write_text(PLAYS)
    (tmp_path / "sitecustomize.py").write_text(COUNTING)
    (tmp_path / "more.yml").write_text("- name: Included\n  ansible.builtin.debug: {msg: more}\n")
    return tmp_path


def test_what_is_skipped_and_what_fails_is_as_ansibles_own_strategy_has_it(folder: Path) -> None:
    plain, before = played(folder, ours=False)
    found, forks = played(folder, ours=True)
    assert found == plain
    assert sum(host["skipped"] for host in plain["stats"].values()) > 10
    assert forks < before, "a skipped task started a process"  # mitogen has two of its own
