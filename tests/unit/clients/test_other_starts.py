"""Playbooks that are not started from the project's folder by ansible-playbook: recorded and judged alike, or refused.

Of hal_audit.active, hal_callback_problem and hal_configured. The programs themselves: tests/rollout/test_clients.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.playing import ROOT, play

ANSIBLE_PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
LONG_SECONDS = 600  # for what hangs
REFUSED = {
    "site.yml": "the callback hal_provenance is not loaded, so what this run does would not be recorded: name it in",
    "audit.yml": "the callback hal_audit_report is not loaded, so the audit would end without a verdict: name it in",
}


def started(folder: Path, playbook: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return a finished run from this folder, on the model of HAL."""
    words = [ANSIBLE_PLAYBOOK, str(ROOT / "playbooks" / playbook), "-i", str(ROOT / "inventory/hal/hal.yml")]
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **environment}
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)


@pytest.mark.parametrize("playbook", REFUSED)
def test_without_its_callback_a_run_refuses_before_a_node_is_asked(playbook: str) -> None:
    done = play(f"playbooks/{playbook}")
    words = " ".join(done.stdout.split())
    assert done.returncode == 2, done.stdout + done.stderr
    assert words.count(REFUSED[playbook]) == 1, done.stdout
    assert "UNREACHABLE" not in words


def test_callbacks_are_found_where_only_others_are_looked_for(tmp_path: Path) -> None:
    """As ansible-runner, ansible-navigator and AWX set it: the next refusal is the model's."""
    names = "hal_provenance,hal_audit_report"
    done = play(
        "playbooks/site.yml", sites=("hal",), ANSIBLE_CALLBACK_PLUGINS=str(tmp_path), ANSIBLE_CALLBACKS_ENABLED=names
    )
    assert "values of hal are placeholders, the first is" in " ".join(done.stdout.split()), done.stdout + done.stderr


@pytest.mark.parametrize("playbook", REFUSED)
@pytest.mark.parametrize("cfg", ["", "[defaults]\nforks = 5\n"])
def test_another_configuration_is_refused_with_what_to_set(tmp_path: Path, playbook: str, cfg: str) -> None:
    used = "no ansible.cfg is in use"
    if cfg:
        (tmp_path / "ansible.cfg").write_text(cfg)
        used = f"{tmp_path / 'ansible.cfg'} is in use"
    done = started(tmp_path, playbook, {})
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ERROR! ")]
    assert line == (
        f"ERROR! {used}, so the plugins of {ROOT} are not found: cd there, or set ANSIBLE_CONFIG={ROOT / 'ansible.cfg'}"
    )
    assert "PLAY" not in done.stdout


def test_another_working_directory_is_as_good(tmp_path: Path) -> None:
    done = started(tmp_path, "site.yml", {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")})
    assert "values of hal are placeholders, the first is" in " ".join(done.stdout.split()), done.stdout + done.stderr


def test_host_keys_are_checked_whatever_the_environment_says(tmp_path: Path) -> None:
    """ansible-runner sets this variable; ssh takes the first of two options."""
    ssh, said = tmp_path / "ssh", tmp_path / "said"
    ssh.write_text(f'#!/bin/sh\necho "$@" >>"{said}"\nexit 255\n')
    ssh.chmod(0o755)
    book = tmp_path / "play.yml"
    book.write_text("- hosts: hal01\n  gather_facts: false\n  tasks: [{ansible.builtin.ping: {}}]\n")
    environment = {"ANSIBLE_HOST_KEY_CHECKING": str(False), "ANSIBLE_SSH_EXECUTABLE": str(ssh)}
    done = play(book, **environment, ANSIBLE_SSH_RETRIES="0")
    assert "UNREACHABLE" in done.stdout, done.stdout + done.stderr
    asked = [word for word in said.read_text().split() if word.startswith("StrictHostKeyChecking")]
    assert set(asked) == {"StrictHostKeyChecking=yes"}


def test_this_machine_is_not_rolled_out_in_place_of_a_node(tmp_path: Path) -> None:
    """ansible-pull says --connection local; the playbook is ours, and ends where the node does not answer."""
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    own = {"ANSIBLE_SSH_EXECUTABLE": str(ssh), "ANSIBLE_SSH_RETRIES": "0"}
    done = play("playbooks/reboot.yml", "--connection", "local", "-e", "reboot_nodes=hal01", "--check", **own)
    assert "UNREACHABLE" in done.stdout, done.stdout + done.stderr
