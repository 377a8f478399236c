"""Files of nobody's, files for everybody, and secrets that all may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import attributes

TASKS = "roles/planted/tasks/main.yml"
TABLE = "if that is right, tests/contract/el7/readers.yml says so"

PLANTED = (
    Planted(
        attributes.all_three_are_said,
        {
            TASKS: """
                - name: Nothing is said
                  ansible.builtin.copy: {dest: /etc/x, content: x}
                - name: One is missing
                  ansible.builtin.file: {path: /etc/x, state: directory, owner: root, mode: "0755"}
                - name: All are said
                  ansible.builtin.template: {src: x.j2, dest: /etc/x, owner: root, group: root, mode: "0644"}
                - name: A line makes a file
                  ansible.builtin.lineinfile: {path: /etc/x, line: x, create: true}
                - name: A line in a file that is there
                  ansible.builtin.lineinfile: {path: /etc/x, line: x}
                - name: A link
                  ansible.builtin.file: {path: /etc/x, src: y, state: link}
                - name: Ours have defaults
                  hal_files: {files: [{path: /etc/x, content: x}]}
                - name: At the controller
                  ansible.builtin.copy: {dest: x, content: x}
                  delegate_to: localhost
                - name: Excused
                  ansible.builtin.unarchive:  # contract: modes are those in the archive
                    {src: x, dest: /opt/x, owner: root, group: root}
                """
        },
        [
            f"{TASKS}:2: copy without owner, group, mode; say them",
            f"{TASKS}:4: file without group; say them",
            f"{TASKS}:8: lineinfile without owner, group, mode; say them",
            f"{TASKS}:16: copy without mode; say them",
        ],
    ),
    Planted(
        attributes.they_are_those_of_its_kind,
        {
            TASKS: """
                - name: Files
                  hal_files:
                    directories:
                      - {path: /var/spool/slurmctld, owner: slurm, mode: "0755"}
                      - {path: /etc/plain, mode: "0755"}
                    files:
                      - {path: /etc/plain/x, content: x, mode: "0666"}
                      - {path: /etc/plain/y, content: y}
                      - {path: /etc/plain/z, content: z, owner: nobody}
                      - {path: /usr/sbin/program, content: x}
                      - {path: /usr/libexec/x/program, content: x, mode: "0755"}
                      - {path: /usr/libexec/x/part.py, content: x, mode: "0755"}
                - name: As its package has it
                  ansible.builtin.copy: {dest: /etc/ssh/sshd_config, content: x, owner: root, group: root, mode: "0644"}
                - name: A secret
                  ansible.builtin.copy: {dest: /etc/secret, content: x, owner: root, group: root, mode: "0644"}
                  no_log: true
                - name: A part
                  ansible.builtin.lineinfile: {path: /etc/zshenv, line: x, create: true, owner: root, mode: "0600"}
                """
        },
        [
            f"{TASKS}:1: /etc/plain/x: everybody may change it",
            f"{TASKS}:1: /etc/plain/x: mode 0666, not 0644; {TABLE}",
            f"{TASKS}:1: /etc/plain/z: group nobody, not root; {TABLE}",
            f"{TASKS}:1: /etc/plain/z: owner nobody, not root; {TABLE}",
            f"{TASKS}:1: /usr/libexec/x/part.py: mode 0755, not 0644; {TABLE}",
            f"{TASKS}:1: /usr/sbin/program: mode 0644, not 0755; {TABLE}",
            f"{TASKS}:1: /var/spool/slurmctld: mode 0755, not 0700; {TABLE}",
            f"{TASKS}:13: /etc/ssh/sshd_config: mode 0644, not 0600; {TABLE}",
            f"{TASKS}:15: /etc/secret: the task is silent, so it is a secret, and everybody may read it",
            f"{TASKS}:18: /etc/zshenv: mode 0600, not 0644; {TABLE}",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
