"""Variables whose name does not say whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import names

TASKS = "roles/time/tasks/main.yml"

PLANTED = (
    Planted(
        names.public_variables_carry_the_role,
        {
            "roles/time/defaults/main.yml": "time_zone: UTC\nntp_servers: []\n",
            "roles/time/meta/argument_specs.yml": """
                argument_specs:
                  main:
                    options:
                      hal_node: {type: dict, required: true}
                      ntp_servers: {type: list}
                """,
        },
        [
            "roles/time/defaults/main.yml:2: ntp_servers; a public variable of this role begins with time_",
            "roles/time/meta/argument_specs.yml:5: ntp_servers; a public variable of this role begins with time_",
        ],
    ),
    Planted(
        names.private_variables_carry_the_role,
        {
            "roles/time/vars/main.yml": "__time_path: /etc\ntime_unit: chronyd\n",
            TASKS: """
                - name: A block
                  block:
                    - name: Registered
                      ansible.builtin.command: {argv: [date]}
                      register: result
                      vars: {x: 1, ansible_python_interpreter: /usr/bin/python}
                - name: Set
                  ansible.builtin.set_fact:
                    time_reboot_required: true
                    time_other: 1
                - name: Loop
                  ansible.builtin.include_tasks: one.yml
                  loop: [1]
                - name: Named loop
                  ansible.builtin.debug: {msg: x}
                  loop: [1]
                  loop_control: {loop_var: server}
                - name: The other role's own variables
                  ansible.builtin.include_role: {name: hosts}
                  vars: {hosts_extra: []}
                """,
        },
        [
            f"{TASKS}:5: result; a private variable of this role begins with __time_",
            f"{TASKS}:6: x; a private variable of this role begins with __time_",
            f"{TASKS}:10: time_other; a private variable of this role begins with __time_",
            f"{TASKS}:13: a loop over included tasks uses item, which their own loops hide; set loop_var: __time_...",
            f"{TASKS}:17: server; a private variable of this role begins with __time_",
            "roles/time/vars/main.yml:2: time_unit; a private variable of this role begins with __time_",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
