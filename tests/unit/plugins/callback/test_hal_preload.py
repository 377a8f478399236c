"""plugins/callback/hal_preload.py: processes that Ansible starts have what plugins load, from the first roles on."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
FILTER = """
import sys

class FilterModule:
    def filters(self):
        return {"among_loaded": lambda name: name in sys.modules}
"""
PLAYS = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {msg: "before: {{ names | map('among_loaded') | unique }}"}
- hosts: all
  gather_facts: false
  roles: [asking]
"""
TASKS = """
- ansible.builtin.debug: {msg: "in the role: {{ names | map('among_loaded') | unique }}"}
"""


def names() -> list[str]:
    spec = importlib.util.spec_from_file_location("hal_preload", ROOT / "plugins/callback/hal_preload.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.LOADED)


@pytest.mark.parametrize(("enabled", "there"), [("hal_preload", "[True]"), ("", "[False]")])
def test_tasks_of_roles_have_what_plugins_load_before_they_ask_for_it(tmp_path: Path, enabled: str, there: str) -> None:
    (tmp_path / "roles/asking/tasks").mkdir(parents=True)
    (tmp_path / "roles/asking/tasks/main.yml").write_text(TASKS)
    (tmp_path / "filters").mkdir()
    (tmp_path / "filters/loaded.py").write_text(FILTER)
    (tmp_path / "plays.yml").write_text(PLAYS)
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    # Not a warm one: that has loaded everything.
    done = subprocess.run(
        [program, "-i", "one,", "-c", "local", "-e", f"{{names: [{', '.join(names())}]}}", str(tmp_path / "plays.yml")],
        cwd=ROOT,
        env={
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACKS_ENABLED": enabled,
            "ANSIBLE_FILTER_PLUGINS": str(tmp_path / "filters"),
            "ANSIBLE_INVENTORY_ENABLED": "hal,host_list",
            "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"msg: '(.*)'", done.stdout) == ["before: [False]", f"in the role: {there}"]
