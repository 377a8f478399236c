"""How tests run Ansible: what is passed on, and what is read from its output."""

from __future__ import annotations

from pathlib import Path

import pytest
from running.ansible_run import Ansible, Run

RECAP = """\
TASK [base : Write it] ****
changed: [hal01]
fatal: [hal02]: FAILED! =>
  msg: no room
    on the device
ok: [hal03]

PLAY RECAP ****
hal01                      : ok=12   changed=1    unreachable=0    failed=0    skipped=3    rescued=0    ignored=0
hal02                      : ok=2    changed=0    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0
"""
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: Say what came along
      ansible.builtin.debug:
        msg: "{{ one }} {{ two }} <{{ lookup('env', 'ANSIBLE_FORCE_COLOR') }}> <{{ lookup('env', 'GIVEN') }}>"
    - name: Change something
      ansible.builtin.command: "true"
"""


@pytest.fixture
def ansible() -> Ansible:
    """Ansible on the model of HAL; only localhost is asked."""
    interpreter = "{{ ansible_playbook_python | quote }}"  # its path may have a blank
    return Ansible(["inventory/hal/hal.yml"], one="first", two="never", ansible_python_interpreter=interpreter)


def test_a_recap_is_read_and_what_matters_is_explained() -> None:
    run = Run(2, RECAP, "[WARNING]: something\n")
    assert set(run.recap) == {"hal01", "hal02"}
    counts = {"ok": 12, "changed": 1, "unreachable": 0, "failed": 0, "skipped": 3, "rescued": 0, "ignored": 0}
    assert run.recap["hal01"] == counts
    assert run.changes == {"hal01": 1}
    assert "msg: no room on the device ok" in run.words
    assert run.explain().splitlines()[:5] == RECAP.splitlines()[:5]
    assert "ok: [hal03]" not in run.explain()


def test_a_playbook_gets_variables_and_no_setting_of_the_caller(
    ansible: Ansible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_FORCE_COLOR", "true")
    monkeypatch.setenv("ANSIBLE_CONFIG", "/nowhere")
    (tmp_path / "play.yml").write_text(PLAY)
    run = ansible.playbook(tmp_path / "play.yml", "--diff", two=[2, 3], environment={"GIVEN": "more"})
    assert run.status == 0, run.explain()
    assert "first [2, 3] <> <more>" in run.words
    assert run.changes == {"localhost": 1}


def test_a_module_returns_its_result(ansible: Ansible) -> None:
    run = ansible.module("localhost", "ansible.builtin.command", {"argv": ["echo", "a b"]})
    assert run.status == 0, run.output
    assert run.results["localhost"]["stdout"] == "a b"


def test_a_run_that_fails_is_returned(ansible: Ansible) -> None:
    run = ansible.playbook("nowhere.yml")
    assert run.status != 0
    assert "nowhere.yml could not be found" in run.words
