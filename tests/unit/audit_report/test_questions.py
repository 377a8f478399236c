"""Questions are prepared quickly, and are the ones that Ansible's own Templar gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[3]
# In a process of its own: Ansible reads its configuration when it is imported.
PROGRAM = """
import json, sys
from dataclasses import asdict
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.inventory.manager import InventoryManager
from ansible.vars.manager import VariableManager
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar

sys.path.insert(0, ".")
from hal_audit import questions

init_plugin_loader()
sources = ["inventory/hal/hal.yml", "inventory/virtual/hal.yml"]
context.CLIARGS = ImmutableDict(inventory=sources)
loader = DataLoader()
loader.set_basedir("playbooks")
inventory = InventoryManager(loader, sources)
manager = VariableManager(loader, inventory)
quick, seen = questions.QuickTemplar, []
for host in sys.argv[1:]:
    variables = manager.get_vars(host=inventory.get_host(host))
    roles = questions.ROLES.of(variables["group_names"], loader)
    answers = []
    for templar in (quick, lambda loader, variables: Templar(loader=loader, variables=variables)):
        questions.QuickTemplar = templar
        answers.append([asdict(one) for one in questions.prepare(roles, loader, variables, {})])
    seen.append([roles, *answers])
print(json.dumps(seen))
"""


def test_every_question_is_the_one_that_ansible_gives() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "hal01", "hal-login", "hal-dtn", "hal-mgmt1"],
        cwd=PROJECT,
        env={**os.environ, "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen: list[list[Any]] = json.loads(done.stdout)
    assert len(seen) == 4
    for roles, quick, plain in seen:
        assert {"base", "time", "ssh"} <= set(roles)
        assert len(quick) > 40
        assert sum(one["question"] is not None for one in quick) > 30
        assert quick == plain
