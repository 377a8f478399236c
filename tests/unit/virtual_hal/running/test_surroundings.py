"""What runs depends neither on the user who starts it (the lab's surroundings.py) nor on the folder it is in."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from running import ssh_config, strategy

ROOT = Path(__file__).resolve().parents[4]
ASK = """
import json, os, subprocess
from running import surroundings
surroundings.take_ours()
names = ("ANSIBLE_", "COLUMNS", "LANG", "LC_", "LINES", "HAL_STRATEGY")
umask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True).stdout.strip()
print(json.dumps([{name: value for name, value in os.environ.items() if name.startswith(names)}, umask]))
"""
THEIRS = {
    "ANSIBLE_CONFIG": "/nowhere/ansible.cfg",
    "ANSIBLE_INVENTORY": "/nowhere",
    "ANSIBLE_STDOUT_CALLBACK": "json",
    "COLUMNS": "60",
    "LINES": "5",
    "LANG": "C",
    "LANGUAGE": "de",
    "LC_ALL": "C",
    "LC_MESSAGES": "de_DE.UTF-8",
    "HAL_STRATEGY": "linear",
}
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks: [{ansible.builtin.command: pwd}]
- hosts: hal01
  gather_facts: false
  tasks: [{ansible.builtin.command: pwd, delegate_to: localhost}]
"""


def test_settings_of_the_user_end_here_but_for_those_of_this_project() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "molecule/virtual_hal"), **THEIRS}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, umask=0o077, capture_output=True, text=True, check=True
    )
    ours = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "LANG": "C.UTF-8", "HAL_STRATEGY": "linear"}
    assert yaml.safe_load(done.stdout) == [ours, "0022"]


def test_ssh_to_virtual_nodes_reads_no_file_of_the_user(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("Host *\n  ProxyCommand false\n  User nobody\n")
    text = (ROOT / "inventory/virtual/group_vars/all/connection.yml").read_text()
    arguments = {yaml.safe_load(text)[f"ansible_{program}_extra_args"] for program in ("ssh", "sftp", "scp")}
    assert len(arguments) == 1
    # What comes last is what counts.
    asked = ["ssh", "-F", str(theirs), *arguments.pop().split(), "-G", "-o", "User=root", "hal01"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert "user root" in done.stdout.splitlines()
    assert "proxycommand" not in done.stdout


@pytest.mark.parametrize("through", [strategy.environment(), {}], ids=["mitogen", "plainly"])
def test_the_controller_is_reached_where_its_path_has_a_blank(tmp_path: Path, through: Mapping[str, str]) -> None:
    (tmp_path / "a blank").mkdir()
    python, play = tmp_path / "a blank" / "python3", tmp_path / "play.yml"
    python.symlink_to(sys.executable)
    play.write_text(PLAY)
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [str(python), program, "-i", "inventory/virtual/hal.yml", str(play)],
        cwd=ROOT,
        env={
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACKS_ENABLED": "",
            "PYTHONPATH": sysconfig.get_path("purelib"),  # this is not the Python of .venv
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
            **through,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed: [") == 2


def test_virtual_nodes_are_reached_where_the_users_home_has_a_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "you know"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(ssh_config, "STATE", home / "hal cluster/.state/virtual")
    source = home / "hal cluster/hal.yml"
    source.parent.mkdir(parents=True)
    source.write_text(f"plugin: hal\nbase: {ROOT}/inventory/virtual/hal.yml\nstate: .state/virtual\n")
    key = home / "hal cluster/.state/virtual/ca/admin"
    key.parent.mkdir(parents=True)
    key.touch()
    argv = ssh_config.Cluster([source]).ssh_argv("hal01", "true")
    done = subprocess.run([argv[0], "-G", *argv[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asked = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert asked["controlpath"].startswith(f"{home}/.ansible/cp/")
    assert asked["identityfile"] == f"{home}/hal cluster/.state/virtual/ca/admin"
