"""Questions are prepared quickly, and are the ones that Ansible's own Templar gives.

They are made by hal_cluster.audit.questions with the templar of hal_cluster.audit.templating.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

from hal_cluster.audit.templating import QuickTemplar

PROJECT = Path(__file__).resolve().parents[4]
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
from hal_cluster.audit import questions

init_plugin_loader()
sources = ["inventory/virtual/hal.yml"]
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


def test_a_text_is_worked_out_again_only_when_what_it_is_made_of_is_another() -> None:
    base: dict[str, Any] = {"a": "{{ b }}", "b": "1", "c": "x"}
    templar = QuickTemplar(DataLoader(), base)
    assert [templar.template("{{ a }} {{ c }}") for _ in range(2)] == ["1 x"] * 2
    base["c"] = "changed behind its back"
    assert templar.template("{{ a }} {{ c }}") == "1 x"
    templar.available_variables = {**base, "b": "2"}
    assert (templar.template("{{ a }}"), templar.template("{{ a }} {{ c }}")) == ("2", "2 changed behind its back")
    templar.available_variables = {**base, "other": "3"}
    assert (templar.template("{{ a }} {{ c }}"), templar.template("{{ other }}")) == ("1 x", "3")
    templar.available_variables = {name: value for name, value in base.items() if name != "b"}
    with pytest.raises(Exception, match="'b' is undefined"):
        templar.template("{{ a }}")
    templar.available_variables = base
    assert templar.template("{{ a }} {{ c }}") == "1 x"


def test_what_a_lookup_works_out_may_be_made_of_anything() -> None:
    templar = QuickTemplar(DataLoader(), {"a": "1"})
    text = "{{ lookup('vars', 'a') }}"
    assert templar.template(text) == "1"
    templar.available_variables = {"a": "2"}
    assert templar.template(text) == "2"


def test_the_way_in_which_a_text_is_worked_out_is_kept_apart() -> None:
    templar = QuickTemplar(DataLoader(), {"a": "1"})
    assert [templar.template("{{ a }}"), templar.template("{{ a }}", escape_backslashes=False)] == ["1", "1"]
    assert templar.template("<< a >>", overrides={"variable_start_string": "<<", "variable_end_string": ">>"}) == "1"
    assert templar.template("<< a >>") == "<< a >>"
    with pytest.raises(Exception, match="'nowhere' is undefined"):
        templar.template("{{ nowhere }}", fail_on_undefined=True)
    assert templar.template("{{ nowhere }}", fail_on_undefined=False) == "{{ nowhere }}"
    assert templar.template(["{{ a }}", 5]) == ["1", 5]
