"""plugins/callback/hal_outcome.py, under a real ansible-playbook on hosts of a small model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit import playing

ROOT = Path(__file__).resolve().parents[4]
HOSTS = ["hal01", "hal02", "hal03", "hal04"]


class Plays:
    """Runs playbooks on four nodes that are this computer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "cluster.yml").write_text((ROOT / "inventory/hal/cluster.yml").read_text())
        source = "plugin: hal\ncluster: cluster.yml\nvirtual: true\nonly: 'hal[01-04]'\n"
        (folder / "hal.yml").write_text(source)

    def __call__(self, tasks: str, *words: str, hosts: str = "all", told: bool = True) -> dict[str, Any] | None:
        """Return what the plugin wrote, None when it wrote nothing."""
        playbook, outcome = self.folder / "play.yml", self.folder / "outcome.json"
        outcome.unlink(missing_ok=True)
        indented = "".join(f"    {line}\n" for line in tasks.strip("\n").splitlines())
        playbook.write_text(f"- hosts: {hosts}\n  connection: local\n  gather_facts: false\n  tasks:\n{indented}")
        environment = {"ANSIBLE_CALLBACKS_ENABLED": "hal_outcome"} | ({"HAL_OUTCOME": str(outcome)} if told else {})
        own = ("-i", str(self.folder / "hal.yml"))
        variables = ("-e", "ansible_python_interpreter={{ ansible_playbook_python | quote }}")
        self.done = playing.play(playbook, *own, *variables, *words, sites=(), **environment)
        return json.loads(outcome.read_text()) if outcome.exists() else None


@pytest.fixture
def plays(tmp_path: Path) -> Plays:
    """How playbooks are run here."""
    return Plays(tmp_path)


def test_each_host_has_its_own_end(plays: Plays) -> None:
    said = plays("""
- name: Fail on two
  ansible.builtin.fail: {msg: "no  disk\\n on {{ inventory_hostname }}"}
  when: inventory_hostname in ['hal02', 'hal03']
- name: Go on
  ansible.builtin.debug: {msg: x}
""")
    assert said == {
        "hal01": {"well": True, "tasks": 1, "why": ""},
        "hal02": {"well": False, "tasks": 0, "why": "Fail on two: no disk on hal02"},
        "hal03": {"well": False, "tasks": 0, "why": "Fail on two: no disk on hal03"},
        "hal04": {"well": True, "tasks": 1, "why": ""},
    }


def test_what_a_node_says_of_its_failure_is_one_printable_line(plays: Plays) -> None:
    said = plays(r"""
- name: Fail
  ansible.builtin.fail: {msg: "a\e[2J\x9b\u202e\n hal02: done"}
""")
    assert said is not None
    assert said["hal01"]["why"] == r"Fail: a\x1b[2J\x9b\u202e hal02: done"
    plays("""
- name: Fail
  ansible.builtin.fail: {msg: "{{ 'x' * 600 }}"}
""")
    assert json.loads((plays.folder / "outcome.json").read_text())["hal01"]["why"] == f"Fail: {'x' * 497}..."


def test_a_failure_that_was_rescued_or_ignored_is_well(plays: Plays) -> None:
    said = plays(
        """
- block:
    - name: Fail
      ansible.builtin.fail: {msg: no}
  rescue:
    - name: Mend
      ansible.builtin.debug: {msg: mended}
- name: Fail and go on
  ansible.builtin.fail: {msg: no}
  ignore_errors: true  # the case of this test: a failure that is ignored counts as well
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": True, "tasks": said["hal01"]["tasks"] if said else 0, "why": ""}}
    assert said["hal01"]["tasks"] > 0


def test_of_a_failure_in_a_rescue_that_one_is_said(plays: Plays) -> None:
    said = plays(
        """
- block:
    - name: Fail
      ansible.builtin.fail: {msg: first}
  rescue:
    - name: Mend
      ansible.builtin.fail: {msg: second}
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": False, "tasks": 0, "why": "Mend: second"}}


def test_what_no_log_hides_is_not_in_it(plays: Plays) -> None:
    said = plays(
        """
- name: Set the password
  ansible.builtin.fail: {msg: "wq8-Tramway"}
  no_log: true
  when: inventory_hostname == 'hal01'
- name: Set passwords
  ansible.builtin.fail: {msg: "wq8-Tramway {{ item }}"}
  loop: [wq8-Tramway, b]
  no_log: true
""",
        hosts="hal01,hal02",
    )
    assert said == {
        "hal01": {"well": False, "tasks": 0, "why": "Set the password: what it says is hidden (no_log)"},
        "hal02": {"well": False, "tasks": 0, "why": "Set passwords: what it says is hidden (no_log)"},
    }


def test_what_an_item_hides_is_not_in_it_either(plays: Plays) -> None:
    """A module may hide what it says by itself; Ansible then hands on words in its place."""
    said = plays(
        """
- name: Fail hidden
  ansible.builtin.fail: {msg: "wq8-Tramway {{ item }}"}
  loop: [a]
  no_log: "{{ inventory_hostname == 'hal01' }}"
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": False, "tasks": 0, "why": "Fail hidden: what it says is hidden (no_log)"}}


def test_a_loop_says_what_the_item_that_failed_said(plays: Plays) -> None:
    said = plays(
        """
- name: Look at disks
  ansible.builtin.assert: {that: item != 'sdb', fail_msg: "{{ item }} is missing", success_msg: "{{ item }} is there"}
  loop: [sda, sdb, sdc]
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": False, "tasks": 0, "why": "Look at disks: sdb is missing"}}


def test_a_command_that_fails_says_what_it_printed(plays: Plays) -> None:
    said = plays(
        """
- name: Ask
  ansible.builtin.command: {argv: [sh, -c, "echo one; echo a warning >&2; echo it is gone >&2; exit 3"]}
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": False, "tasks": 0, "why": "Ask: it is gone"}}
    said = plays(
        """
- name: Ask each
  ansible.builtin.command: {argv: [sh, -c, "echo {{ item }}; exit 3"]}
  loop: [it is old]
""",
        hosts="hal01",
    )
    assert said == {"hal01": {"well": False, "tasks": 0, "why": "Ask each: it is old"}}


def test_a_long_message_is_cut(plays: Plays) -> None:
    said = plays("- ansible.builtin.fail: {msg: \"{{ 'word ' * 1000 }}\"}", hosts="hal01")
    assert said is not None
    assert len(said["hal01"]["why"]) < 600


def test_a_host_that_cannot_be_reached_is_not_well(plays: Plays) -> None:
    said = plays(
        """
- name: Ask
  ansible.builtin.raw: "true"
  vars:
    ansible_connection: ssh
    ansible_host: "127.0.0.1"
    ansible_port: 1
    ansible_ssh_retries: 0
""",
        hosts="hal01",
    )
    assert said is not None
    assert (said["hal01"]["well"], said["hal01"]["tasks"]) == (False, 0)
    assert said["hal01"]["why"].startswith("Ask: ")
    assert "onnect" in said["hal01"]["why"]


def test_a_host_without_a_task_has_none(plays: Plays) -> None:
    """Nothing was done there, which is not the same as well: who started the playbook looks at ``tasks``."""
    assert plays("- {name: Say, ansible.builtin.debug: {msg: x}, when: false}", hosts="hal01") == {
        "hal01": {"well": True, "tasks": 0, "why": ""}
    }
    assert plays("- {name: Say, ansible.builtin.debug: {msg: x}}", "--tags", "other", hosts="hal01") in ({}, None)


def test_without_a_file_named_nothing_is_written_and_nothing_fails(plays: Plays) -> None:
    assert plays("- {name: Say, ansible.builtin.debug: {msg: x}}", hosts="hal01", told=False) is None
    assert plays.done.returncode == 0
    assert "WARNING" not in plays.done.stdout + plays.done.stderr


def test_what_is_ignored_afterwards_does_not_hide_why_it_failed(plays: Plays) -> None:
    said = plays(
        """
- block:
    - name: Fail
      ansible.builtin.fail: {msg: first}
  always:
    - name: Tidy up
      ansible.builtin.fail: {msg: nothing to tidy up}
      ignore_errors: true  # the case of this test: it must not hide the failure before it
""",
        hosts="hal01",
    )
    assert said is not None
    assert (said["hal01"]["well"], said["hal01"]["why"]) == (False, "Fail: first")
