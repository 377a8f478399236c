"""Tasks whose resources nobody would know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import provenance

TASKS = "roles/x/tasks/main.yml"

PLANTED = (
    Planted(
        provenance.every_task_is_known_to_the_record,
        {
            TASKS: """
                - name: Known
                  ansible.builtin.copy: {dest: /x, content: x}
                - name: Looking
                  ansible.builtin.command: {argv: ["true"]}
                  changed_when: false
                - name: Saying
                  ansible.builtin.shell: x > /y
                  vars: {hal_manages: ["file:/y"]}
                - name: In a block
                  block:
                    - name: Of this project
                      hal_files: {}
                """,
            "roles/x/handlers/main.yml": "- name: Act\n  ansible.builtin.command: x\n  changed_when: true\n",
        },
        [],
    ),
    Planted(
        provenance.every_task_is_known_to_the_record,
        {
            TASKS: """
                - name: Silent
                  ansible.builtin.command: {argv: [x]}
                - name: Block
                  block:
                    - name: Unknown
                      community.general.parted: {}
                """
        },
        [
            f"{TASKS}:2: command: changed_when: false if it only looks, else hal_manages in its vars, [] for nothing",
            f"{TASKS}:6: community.general.parted: the record does not know what it manages;"
            " add it to hal_cluster/audit/resources/table.py",
        ],
    ),
    Planted(
        provenance.what_lasts_for_one_run_is_not_recorded,
        {
            TASKS: """
                - name: Place
                  ansible.builtin.tempfile: {state: directory}
                  register: __x_place
                - name: Recorded
                  ansible.builtin.copy: {content: x, dest: "{{ __x_place.path }}/x"}
                - name: Not recorded
                  ansible.builtin.copy: {content: x, dest: "{{ __x_place.path }}/y"}
                  vars: {hal_manages: []}
                - name: Elsewhere
                  ansible.builtin.copy: {content: x, dest: /etc/__x_places}
                - name: Look
                  ansible.builtin.stat: {path: "{{ __x_place.path }}"}
                """
        },
        [f"{TASKS}:5: __x_place is a place for this run alone: hal_manages: [] in its vars"],
    ),
    Planted(
        provenance.what_is_said_can_be_read,
        {
            TASKS: """
                - name: Well
                  ansible.builtin.command: x
                  vars: {hal_manages: [{resource: "file:/{{ a }}", declared: {state: absent}}, "package:x"]}
                - name: By a template
                  ansible.builtin.command: x
                  vars: {hal_manages: "{{ __x_said }}"}
                - name: Without a kind
                  ansible.builtin.command: x
                  vars: {hal_manages: [/etc/x]}
                - name: With a slip
                  ansible.builtin.command: x
                  vars: {hal_manages: [{resource: "file:/x", declare: {}}]}
                """
        },
        [
            f'{TASKS}:{line}: hal_manages: a list of "kind:name" or of {{resource: "kind:name", declared: {{...}}}}'
            for line in (9, 12)
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_planted(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
