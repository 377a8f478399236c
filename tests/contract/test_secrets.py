"""Secrets in the wrong place, or on their way into a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import secrets

TASKS = "roles/slurm/tasks/configure.yml"
VARS = "inventory/hal/group_vars/all/site.yml"

PLANTED = (
    Planted(
        secrets.vault_variables_are_aliased_once,
        {
            "inventory/hal/group_vars/all/vault.yml": "vault_a_password: x\n",
            VARS: "a_password: '{{ vault_a_password }}'\nb_password: '{{ vault_a_password }}'\n",
            "inventory/virtual/group_vars/all/site.yml": "a_password: '{{ vault_a_password }}'\n",
            "roles/munge/defaults/main.yml": "munge_key: '{{ vault_munge_key }}'\n",
            "inventory/virtual/group_vars/munge.yml": "munge_key: '{{ vault_munge_key }}'\n",
        },
        [
            f"{VARS}:2: vault_a_password is already aliased at {VARS}:1; use that alias",
            "inventory/virtual/group_vars/munge.yml:1: vault_munge_key is already aliased at"
            " roles/munge/defaults/main.yml:1; use that alias",
        ],
    ),
    Planted(
        secrets.tasks_do_not_know_the_vault,
        {
            "roles/munge/templates/a.j2": "{{ vault_munge_key }}\n",
            "roles/munge/defaults/main.yml": "munge_key: '{{ vault_munge_key }}'\n",
            "roles/munge/README.md": "`{{ vault_munge_key }}`\n",
            "roles/munge/tasks/main.yml": """
                - name: Refuse
                  ansible.builtin.assert:
                    that: vault_munge_key is defined
                    fail_msg: put vault_munge_key into the vault
                """,
        },
        [
            "roles/munge/tasks/main.yml:3: vault_munge_key is used here; use the variable that is its alias",
            "roles/munge/templates/a.j2:1: vault_munge_key is used here; use the variable that is its alias",
        ],
    ),
    Planted(
        secrets.secrets_are_not_written_down,
        {
            VARS: """
                slurm_database_password: hunter2
                slurm_other_password: "{{ vault_slurm_other_password }}"
                munge_private_key: /etc/munge/key
                """,
            "molecule/virtual_hal/ca": "-----BEGIN OPENSSH PRIVATE" + " KEY-----\n",
        },
        [
            f'{VARS}:1: slurm_database_password is written down; alias "{{{{ vault_slurm_database_password }}}}"',
            "molecule/virtual_hal/ca:1: a private key is committed; keep it in the vault or in the state folder",
        ],
    ),
    Planted(
        secrets.tasks_with_secrets_are_silent,
        {
            "roles/slurm/templates/dbd.conf.j2": "StoragePass={{ slurm_database_password }}\n",
            TASKS: """
                - name: In a template
                  ansible.builtin.template: {src: dbd.conf.j2, dest: /etc/x}
                  no_log: true
                - name: In a template that is looked up
                  hal_files: {files: [{path: /x, content: "{{ lookup('ansible.builtin.template', 'dbd.conf.j2') }}"}]}
                - name: In an argument
                  community.mysql.mysql_user: {name: slurm, password: "{{ slurm_database_password }}"}
                - name: In a block that is silent
                  no_log: true
                  diff: false
                  block:
                    - name: Good
                      ansible.builtin.copy: {content: "{{ slurm_database_password }}", dest: /etc/x}
                - name: One whose whole name says it
                  hal_munge_key: {key: "{{ munge_key }}"}
                - name: Refuse an empty one
                  ansible.builtin.assert: {that: slurm_database_password | length > 8}
                """,
        },
        [
            f"{TASKS}:1: writes slurm_database_password without diff: false; --diff would show it",
            f"{TASKS}:4: uses slurm_database_password without no_log: true; its arguments would be in the log",
            f"{TASKS}:4: writes slurm_database_password without diff: false; --diff would show it",
            f"{TASKS}:6: uses slurm_database_password without no_log: true; its arguments would be in the log",
            f"{TASKS}:14: uses munge_key without no_log: true; its arguments would be in the log",
        ],
    ),
    Planted(
        secrets.a_file_with_a_secret_is_not_for_all,
        {
            "roles/slurm/templates/dbd.conf.j2": "StoragePass={{ slurm_database_password }}\n",
            TASKS: """
                - name: For all
                  ansible.builtin.template: {src: dbd.conf.j2, dest: /etc/x, mode: "0644"}
                - name: As umask has it
                  ansible.builtin.copy: {content: "{{ slurm_database_password }}", dest: /etc/x}
                - name: For its owner
                  ansible.builtin.template: {src: dbd.conf.j2, dest: /etc/x, mode: "0600"}
                - name: For a service
                  ansible.builtin.copy: {content: "{{ munge_key }}", dest: /etc/x, mode: "0640"}
                - name: Without a secret
                  ansible.builtin.copy: {content: x, dest: /etc/x, mode: "0644"}
                - name: One for all
                  hal_files:
                    files:
                      - {path: /a, content: "{{ munge_key }}", mode: "0600"}
                      - {path: /b, content: "{{ munge_key }}"}
                """,
        },
        [
            f'{TASKS}:1: writes slurm_database_password with the mode 0644: other users may read it; mode: "0600"',
            f"{TASKS}:3: writes slurm_database_password with the mode that umask gives: other users may read it;"
            ' mode: "0600"',
            f'{TASKS}:11: writes munge_key with the mode 0644: other users may read it; mode: "0600"',
        ],
    ),
    Planted(
        secrets.no_secret_is_on_a_command_line,
        {
            TASKS: """
                - name: As a word
                  ansible.builtin.command: {argv: [mysql, "--password={{ slurm_database_password }}"]}
                - name: In a line
                  ansible.builtin.shell: echo {{ munge_key }} | base64 -d >/etc/munge/munge.key
                - name: By its input
                  ansible.builtin.command: {argv: [mysql], stdin: "{{ slurm_database_password }}"}
                """,
        },
        [
            f"{TASKS}:2: slurm_database_password would be in the list of processes; give it by stdin",
            f"{TASKS}:4: munge_key would be in the list of processes; give it by stdin",
        ],
    ),
    Planted(
        secrets.silent_results_are_not_printed,
        {
            TASKS: """
                - name: Read
                  ansible.builtin.slurp: {src: /etc/munge/munge.key}
                  register: __slurm_read
                  no_log: true
                - name: Tell
                  ansible.builtin.debug: {msg: "{{ __slurm_read.content }}"}
                - name: Refuse
                  ansible.builtin.assert:
                    that: slurm_database_password | length > 8
                    fail_msg: "{{ slurm_database_password }} is too short"
                - name: Refuse well
                  ansible.builtin.fail: {msg: slurm_database_password is too short}
                """,
        },
        [
            f"{TASKS}:6: prints __slurm_read, which is secret; say what is wrong without it",
            f"{TASKS}:8: prints slurm_database_password, which is secret; say what is wrong without it",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
