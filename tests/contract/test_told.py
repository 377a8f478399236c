"""Files that change below daemons which nobody tells, and handlers that nobody calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import told

TASKS = "roles/planted/tasks/main.yml"
HANDLERS = "roles/planted/handlers/main.yml"
PLANTED_HANDLERS = """
    - name: Restart chronyd
      ansible.builtin.systemd_service: {name: chronyd.service, state: restarted}
    - name: Look at chronyd
      ansible.builtin.systemd_service: {name: chronyd.service, state: started}
    - name: Restart another
      ansible.builtin.systemd_service: {name: sshd.service, state: restarted}
    - name: Read the units again
      ansible.builtin.systemd_service: {daemon_reload: true}
      listen: Units
    """
FILE = "owner: root, group: root, mode: '0644'"

PLANTED = (
    Planted(
        told.daemons_are_told,
        {
            HANDLERS: PLANTED_HANDLERS,
            TASKS: f"""
                - name: Run it
                  ansible.builtin.systemd_service: {{name: chronyd, state: started}}
                - name: Nobody is told
                  ansible.builtin.copy: {{dest: /etc/chrony.conf, content: x, {FILE}}}
                - name: Told
                  ansible.builtin.copy: {{dest: /etc/sysconfig/chronyd, content: x, {FILE}}}
                  notify: Restart chronyd
                - name: A unit of which systemd is not told
                  ansible.builtin.copy: {{dest: /etc/systemd/system/x.service, content: x, {FILE}}}
                  notify: Restart chronyd
                - name: A unit
                  ansible.builtin.copy: {{dest: /etc/systemd/system/y.service, content: x, {FILE}}}
                  notify: Units
                - name: The journal runs anywhere
                  ansible.builtin.copy: {{dest: /etc/systemd/journald.conf.d/x.conf, content: x, {FILE}}}
                  register: __planted_unused
                - name: Asks later
                  ansible.builtin.copy: {{dest: /etc/munge/x, content: x, {FILE}}}
                  register: __planted_written
                - name: The question
                  ansible.builtin.systemd_service:
                    name: munge
                    state: "{{{{ 'restarted' if __planted_written is changed else 'started' }}}}"
                - name: Nobody has to be told
                  ansible.builtin.copy: {{dest: /etc/security/limits.d/x.conf, content: x, {FILE}}}
                """,
            "roles/wrong/handlers/main.yml": PLANTED_HANDLERS,
            "roles/wrong/tasks/main.yml": f"""
                - name: The wrong one is told
                  ansible.builtin.copy: {{dest: /etc/chrony.conf, content: x, {FILE}}}
                  notify: [Restart another, Look at chronyd]
                """,
        },
        [
            f"{TASKS}:3: chronyd.service reads /etc/chrony.conf and is not told: "
            "notify a handler that restarts or reloads it",
            f"{TASKS}:8: systemd reads /etc/systemd/system/x.service and is not told: "
            "notify a handler that reads units again",
            f"{TASKS}:14: systemd-journald.service reads /etc/systemd/journald.conf.d/x.conf and is not told: "
            "notify a handler that restarts or reloads it",
            "roles/wrong/tasks/main.yml:1: chronyd.service reads /etc/chrony.conf and is not told: "
            "notify a handler that restarts or reloads it",
        ],
    ),
    Planted(
        told.handlers_are_there_and_used,
        {
            HANDLERS: PLANTED_HANDLERS,
            TASKS: """
                - name: Notify
                  ansible.builtin.command: {argv: [date]}
                  notify: [Restart chronyd, Units, Restart nobody]
                - name: Verify
                  ansible.builtin.import_tasks: verify.yml
                """,
        },
        [
            f"{HANDLERS}:3: a handler that tells its unit nothing; restarted, reloaded or daemon_reload",
            f"{HANDLERS}:3: nobody notifies this handler; notify it, or take it away",
            f"{HANDLERS}:5: nobody notifies this handler; notify it, or take it away",
            f"{TASKS}:3: no handler of the role is called Restart nobody",
            f"{TASKS}:4: handlers run at the end of the play, after this; meta: flush_handlers before it",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
