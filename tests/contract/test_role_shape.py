"""Roles without one of their parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import role_shape

WHOLE = {
    "roles/time/defaults/main.yml": "",
    "roles/time/meta/main.yml": "",
    "roles/time/meta/argument_specs.yml": "",
    "roles/time/tasks/main.yml": "",
    "roles/time/tasks/verify.yml": "",
    "roles/time/expect.yml": "",
    "roles/time/README.md": "",
    "molecule/time/molecule.yml": "---\n",
}


def without(name: str) -> dict[str, str]:
    """The whole role but one file."""
    return {path: text for path, text in WHOLE.items() if path != name}


PLANTED = (
    Planted(role_shape.has_every_part, WHOLE, []),
    Planted(
        role_shape.has_every_part,
        without("roles/time/expect.yml"),
        ["roles/time:1: no expect.yml; it holds what must be true on a node, as data"],
    ),
    Planted(
        role_shape.templates_say_who_writes_them,
        {
            "roles/time/templates/a.j2": '# Written by the role "time"; changes made here are lost.\n',
            "roles/time/templates/b.j2": "#!/bin/sh\n# {{ ansible_managed | default('Written by the role time') }}.\n",
            "roles/time/templates/c.j2": "driftfile x\n\n\n# Written by the role time\n",
            "roles/time/templates/d.j2": '# Written by the role "timer".\n',
        },
        [f'roles/time/templates/{name}.j2:1: its first lines do not say: Written by the role "time"' for name in "cd"],
    ),
    Planted(role_shape.has_a_scenario, WHOLE, []),
    Planted(
        role_shape.has_a_scenario,
        without("molecule/time/molecule.yml"),
        ["roles/time:1: no scenario; molecule/time/molecule.yml with converge.yml and tests/ proves it"],
    ),
    Planted(
        role_shape.every_file_is_used,
        {
            "roles/time/tasks/main.yml": """
                - name: Configure
                  ansible.builtin.import_tasks: configure.yml
                - name: As the node has it
                  ansible.builtin.include_tasks: "kind_{{ time_kind }}.yml"
                """,
            "roles/time/tasks/configure.yml": """
                - name: Write it  # and not b.j2
                  ansible.builtin.template: {src: a.j2, dest: /x}
                """,
            "roles/time/tasks/kind_a.yml": "[]\n",
            "roles/time/tasks/called.yml": "[]\n",
            "roles/time/tasks/lost.yml": "- name: Lost\n  ansible.builtin.import_tasks: deeper.yml\n",
            "roles/time/tasks/deeper.yml": "[]\n",
            "roles/time/templates/a.j2": "x\n",
            "roles/time/templates/b.j2": "x\n",
            "playbooks/x.yml": "- hosts: all\n  roles:\n    - role: time\n      tasks_from: called\n",
        },
        [
            "roles/time/tasks/deeper.yml:1: no task and no playbook comes here; import it, or take it away",
            "roles/time/tasks/lost.yml:1: no task and no playbook comes here; import it, or take it away",
            "roles/time/templates/b.j2:1: the role names this file nowhere; use it, or take it away",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
