"""Playbooks that are not started from the project's folder by ansible-playbook: recorded and judged alike, or refused.

Of hal_cluster.audit.active, hal_callback_problem, hal_callbacks and hal_configured. The programs themselves:
tests/rollout/test_clients.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.playing import ROOT, play

ANSIBLE_PLAYBOOK = str(Path(sys.executable).with_name("ansible-playbook"))
LONG_SECONDS = 600  # for what hangs
SET = "in callbacks_enabled (ANSIBLE_CALLBACKS_ENABLED), or use this project's ansible.cfg: see docs/clients.md"
ROLLOUT = (
    "the callbacks hal_printable, hal_provenance and hal_rollout are not loaded, so what nodes say would drive your"
    " terminal, what this run does would not be recorded and two rollouts could change a node at once: name them " + SET
)
PRINTABLE = "the callback hal_printable is not loaded, so what nodes say would drive your terminal: name it " + SET
REFUSED = {
    "site.yml": ROLLOUT,
    "audit.yml": (
        "the callbacks hal_printable and hal_audit_report are not loaded, so what nodes say would drive your terminal"
        " and the audit would end without a verdict: name them " + SET
    ),
}
PLAYBOOKS = sorted(str(path.relative_to(ROOT / "playbooks")) for path in (ROOT / "playbooks").glob("**/*.yml"))
NO_PLAYS = {"restore/open.yml", "restore/plan.yml", "restore/put.yml"}  # tasks


def started(folder: Path, playbook: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return a finished run from this folder, on the model of HAL."""
    words = [ANSIBLE_PLAYBOOK, str(ROOT / "playbooks" / playbook), "-i", str(ROOT / "inventory/hal/hal.yml")]
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **environment}
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)


NAMED = {
    "restore_node": "hal-mgmt1",
    **{f"{what}_nodes": "hal05" for what in ("bmc", "giveback", "power", "reboot", "reimage", "resume")},
}


@pytest.mark.parametrize("playbook", [name for name in PLAYBOOKS if name not in NO_PLAYS])
def test_without_its_callbacks_every_playbook_refuses_before_a_node_is_asked(tmp_path: Path, playbook: str) -> None:
    """As somebody has it who always sets ANSIBLE_CALLBACKS_ENABLED to others."""
    asked = tmp_path / "asked"  # the way to nodes: what is not refused reaches none
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch '{asked}'\nexit 255\n")
    ssh.chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    enabled = {
        **{"ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.timer", "ANSIBLE_SSH_EXECUTABLE": str(ssh)},
        "ANSIBLE_SSH_RETRIES": "0",
    }
    done = play(f"playbooks/{playbook}", "-e", json.dumps(NAMED), sites=("virtual",), state=state, **enabled)
    said = {
        "authorities.yml": PRINTABLE,
        "certificate.yml": PRINTABLE,
        "takeover.yml": REFUSED["audit.yml"],
        **REFUSED,
    }.get(playbook, ROLLOUT)
    assert done.returncode != 0, done.stdout + done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("ERROR! ")] == [f"ERROR! {said}"], done.stdout
    assert not asked.exists()


@pytest.mark.parametrize("playbook", REFUSED)
def test_a_playbook_of_another_folder_is_refused_by_what_it_takes_in(tmp_path: Path, playbook: str) -> None:
    book = tmp_path / "ours.yml"
    # By a link: Ansible takes no blank in what it imports, and the project may lie in a path that has one.
    (tmp_path / "project").symlink_to(ROOT)
    book.write_text(f"- import_playbook: project/playbooks/{playbook}\n")
    done = play(book, ANSIBLE_CALLBACKS_ENABLED="")
    words = " ".join(done.stdout.split()).replace("''", "'")  # YAML's
    assert done.returncode == 2, done.stdout + done.stderr
    assert words.count(REFUSED[playbook]) == 1, done.stdout
    assert "UNREACHABLE" not in words


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("hal_printable", "what nodes say would drive your terminal"),
        ("hal_provenance", "what this run does would not be recorded"),
        ("hal_rollout", "two rollouts could change a node at once"),
    ],
)
def test_each_callback_of_a_rollout_is_asked_for(missing: str, why: str) -> None:
    names = {"hal_printable", "hal_provenance", "hal_rollout", "hal_audit_report"} - {missing}
    done = play("playbooks/site.yml", sites=("hal",), ANSIBLE_CALLBACKS_ENABLED=",".join(sorted(names)))
    assert f"ERROR! the callback {missing} is not loaded, so {why}: name it {SET}" in done.stderr.splitlines()


def test_check_mode_records_and_locks_nothing() -> None:
    """What is missing then is only what is printed; the next refusal is the model's."""
    for enabled, said in (("", PRINTABLE), ("hal_printable", "values of hal are placeholders, the first is")):
        done = play("playbooks/site.yml", "--check", sites=("hal",), ANSIBLE_CALLBACKS_ENABLED=enabled)
        assert said in " ".join((done.stdout + done.stderr).split()), done.stdout + done.stderr


def test_callbacks_are_found_where_only_others_are_looked_for(tmp_path: Path) -> None:
    """As ansible-runner, ansible-navigator and AWX set it: the next refusal is the model's."""
    names = "hal_printable,hal_provenance,hal_rollout"
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
