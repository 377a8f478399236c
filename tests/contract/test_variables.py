"""Variables that nobody sets, and others that nobody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import variables

TASKS = "roles/time/tasks/main.yml"
VARS = "roles/time/vars/main.yml"
DEFAULTS = "roles/time/defaults/main.yml"
TEMPLATE = "roles/time/templates/x.j2"
FILES = {
    DEFAULTS: "time_used: 1\ntime_for_a_playbook: 1\ntime_unused: 1\n",
    VARS: """
        __time_used: 1
        __time_unused: 1
        __time_later: "{{ lookup('template', 'y.j2', template_vars={'__time_given': 1}) }}"
        """,
    TASKS: """
        - name: Look  # as __time_comment says
          ansible.builtin.command: {argv: [date, "{{ item }}", "{{ __time_loop }}", "{{ __time_own }}"]}
          register: __time_found
          vars: {__time_own: 1, __time_own_unused: 2}
          loop: [a]
          loop_control: {loop_var: __time_loop}
          when: __time_misspelt
        - name: Remember
          ansible.builtin.set_fact: {__time_fact: "{{ time_used }}"}
          register: __time_unread
        """,
    TEMPLATE: """
        {% set __time_inside = 1 %}{{ __time_inside }} {{ __time_fact }} {{ __time_found }} {{ __time_nobody }}
        {{ __time_later }} {{ __time_given }} {{ __time_used }}
        """,
    "playbooks/x.yml": "- hosts: all\n  vars: {x: '{{ time_for_a_playbook }}'}\n",
}

GROUPS = """
- hosts: all
  tasks:
    - ansible.builtin.group_by: {key: "made_{{ 'old' if x else 'new' }}"}
    - ansible.builtin.group_by: {key: bootstrap_made}
    - ansible.builtin.add_host: {name: x, groups: [spare, "{{ key }}"]}
    - ansible.builtin.add_host: {name: x, groups: "{{ machine.groups + ['image_root', 'own'] }}"}
"""
LIST = "hal_inventory.variables.MADE_IN_A_RUN"

PLANTED = (
    Planted(
        variables.what_is_read_is_set,
        FILES,
        [f"{TASKS}:7: __time_misspelt is set nowhere", f"{TEMPLATE}:1: __time_nobody is set nowhere"],
    ),
    Planted(
        variables.what_is_set_is_read,
        FILES,
        [
            f"{DEFAULTS}:3: time_unused is read nowhere; take it away, or use it",
            f"{TASKS}:1: __time_own_unused is read nowhere; take it away, or use it",
            f"{TASKS}:8: __time_unread is read nowhere; take it away, or use it",
            f"{VARS}:2: __time_unused is read nowhere; take it away, or use it",
        ],
    ),
    Planted(
        variables.groups_made_in_a_run_may_have_variables,
        {"playbooks/x.yml": GROUPS},
        [
            f'playbooks/x.yml:{line}: group "{name}" is in no model; name it in {LIST}'
            for line, name in ((3, "made_new"), (3, "made_old"), (5, "spare"), (5, "{{ key }}"), (6, "own"))
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
