"""What make demo leaves for a shell: commands without -i are for the nodes that run, also where a path has a blank."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from demo import environment

ROOT = Path(__file__).resolve().parents[4]
MINI = ROOT / "inventory/virtual/mini.yml"


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, of a project whose path has a blank and a quotation mark."""
    project = tmp_path / "hal's cluster"
    project.mkdir()
    (project / ".venv").symlink_to(Path(sys.executable).parents[1])
    (project / "ansible.cfg").symlink_to(ROOT / "ansible.cfg")
    monkeypatch.setattr(environment, "PROJECT", project)
    monkeypatch.setattr(environment, "FILE", project / ".state/env")
    assert environment.leave(MINI)
    return project / ".state/env"


def shell(left: Path, command: str, **environment: str) -> str:
    own = {"PATH": os.environ["PATH"], "HOME": str(left.parent), "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        ["/bin/sh", "-c", f'. "$1" && {command}', "sh", str(left)],
        cwd=left.parent, env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_know_the_nodes_that_run(left: Path) -> None:
    elsewhere = {"ANSIBLE_INVENTORY": "inventory/hal/hal.yml", "HAL_INVENTORY_SOURCES": "inventory/hal/hal.yml"}
    assert (
        shell(left, "python -m hal_cluster.inventory nodes all", **elsewhere)
        == "hal[01-02],hal-data,hal-login,hal-mgmt[1-2]\n"
    )
    assert shell(left, 'printf %s "$ANSIBLE_CONFIG"') == f"{left.parents[1]}/ansible.cfg"
    assert shell(left, "command -v ansible-playbook") == f"{left.parents[1]}/.venv/bin/ansible-playbook\n"


def test_ansible_goes_to_them_without_i(left: Path) -> None:
    said = shell(left, f"ANSIBLE_CONFIG='{ROOT}/ansible.cfg' ansible all --list-hosts --limit 'hal[01-02]'")
    assert said.split() == ["hosts", "(2):", "hal01", "hal02"]


def test_a_second_demo_of_another_size_is_what_counts(left: Path) -> None:
    environment.leave(ROOT / "inventory/virtual/hal.yml")
    assert "hal[01-16]," in shell(left, "python -m hal_cluster.inventory nodes all")


def test_make_shell_says_that_nothing_runs(tmp_path: Path) -> None:
    text = (ROOT / "Makefile").read_text().replace("shell: setup ##", "shell: ##")
    (tmp_path / "Makefile").write_text(text)
    done = subprocess.run(["make", "shell"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "make shell: no virtual HAL is running here; make demo makes one"
