"""Tasks without a name, from facts, and looking away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import tasks

TASKS = "roles/time/tasks/main.yml"
PLAY = "playbooks/site.yml"
# In two parts, so that no search for these settings finds this file.
OFF = "no"
ALWAYS = "true"

PLANTED = (
    Planted(
        tasks.tasks_have_names,
        {
            TASKS: "- name: Good\n  block:\n    - ansible.builtin.command: {argv: [date]}\n",
            "roles/time/handlers/main.yml": "- ansible.builtin.command: {argv: [date]}\n",
        },
        [
            "roles/time/handlers/main.yml:1: a task without a name; say what is true after it",
            f"{TASKS}:3: a task without a name; say what is true after it",
        ],
    ),
    Planted(
        tasks.modules_are_named_in_full,
        {
            "plugins/modules/hal_expect.py": "",
            TASKS: "- copy: {dest: /x}\n- hal_expect: {}\n- ansible.posix.sysctl: {name: x}\n- action: copy dest=/x\n",
        },
        [
            f"{TASKS}:1: copy; write the module with its collection, as ansible.builtin.copy",
            f"{TASKS}:4: action: hides the module; use the module's own name as the key",
        ],
    ),
    Planted(
        tasks.nothing_comes_from_facts,
        {
            TASKS: """
                - name: Good, by the model  # ansible_hostname would be a fact
                  ansible.builtin.debug: {msg: "{{ hal_node.name }} {{ hostvars[inventory_hostname].x }}"}
                - name: A fact
                  ansible.builtin.debug: {msg: "{{ ansible_facts.hostname }}"}
                """,
            "roles/time/templates/a.conf.j2": "# {{ ansible_default_ipv4.address }}\n{{ hostvars['hal01'].x }}\n",
            "inventory/hal/group_vars/all/site.yml": "x: '{{ ansible_hostname }}'\n",
        },
        [
            "inventory/hal/group_vars/all/site.yml:1: ansible_hostname is a fact; use hal_node or lookup('hal', ...)",
            f"{TASKS}:4: ansible_facts is a fact; use hal_node or lookup('hal', ...)",
            "roles/time/templates/a.conf.j2:1: ansible_default_ipv4 is a fact; use hal_node or lookup('hal', ...)",
            "roles/time/templates/a.conf.j2:2: hostvars needs all hosts; use lookup('hal', ...), works with --limit",
        ],
    ),
    Planted(
        tasks.nothing_gathers_facts,
        {
            PLAY: f"- hosts: all\n  gather_facts: {ALWAYS}\n- hosts: time\n  gather_facts: false\n",
            TASKS: "- name: Ask the node\n  ansible.builtin.setup: {}\n",
        },
        [
            f"{PLAY}:2: the play gathers facts; gather_facts: false, the model has them",
            f"{TASKS}:2: setup gathers facts; use hal_node or lookup('hal', ...)",
        ],
    ),
    Planted(
        tasks.failures_are_not_ignored,
        {
            TASKS: f"""
                - name: Hides
                  ansible.builtin.command: {{argv: [date]}}
                  ignore_errors: {ALWAYS}
                - name: Never fails
                  ansible.builtin.command: {{argv: [date]}}
                  failed_when: false
                - name: Never fails, and says why
                  ansible.builtin.command: {{argv: [date]}}
                  failed_when: false  # its exit status is what the next task looks at
                - name: Good
                  ansible.builtin.command: {{argv: [date]}}
                  failed_when: __time_x.rc > 1
                """,
        },
        [
            f"{TASKS}:3: ignore_errors hides every failure; say in failed_when which result is fine",
            f"{TASKS}:6: failed_when: false without a reason; give it in a comment on this line",
        ],
    ),
    Planted(
        tasks.files_go_where_they_were_asked_to,
        {
            TASKS: """
                - name: Below a directory
                  ansible.builtin.template: {src: a.j2, dest: /etc/a}
                - name: Free-form
                  ansible.builtin.copy: src=a dest=/etc/a
                - name: Looked at too late
                  ansible.builtin.get_url: {url: "https://a/b", dest: "{{ x }}/b"}
                - name: Look
                  hal_files: {places: ["{{ x }}/b"]}
                - name: Good, looked at before
                  ansible.builtin.get_url: {url: "https://a/b", dest: "{{ x }}/b"}
                - name: Another place
                  ansible.builtin.copy: {src: a, dest: "{{ x }}/c"}
                - name: Good
                  hal_files: {files: [{path: /etc/a, content: a}]}
                - name: Place
                  ansible.builtin.tempfile: {state: directory}
                  register: __x_place
                - name: Good, of this run
                  ansible.builtin.copy: {content: x, dest: "{{ __x_place.path }}/x"}
                - name: Not of this run
                  ansible.builtin.copy: {content: x, dest: "{{ __x_other.path }}/x"}
                - name: Good, writes nothing
                  ansible.builtin.uri: {url: "https://a/b"}
                """,
            "roles/time/tasks/other.yml": "- name: In another file\n  ansible.builtin.copy: {src: a, dest: /etc/b}\n",
        },
        [
            f"{path}: {module} writes below a directory that is there; use hal_files, or have it look before:"
            f" places: [{to}]"
            for path, module, to in (
                (f"{TASKS}:2", "template", "/etc/a"),
                (f"{TASKS}:4", "copy", "src=a dest=/etc/a"),
                (f"{TASKS}:6", "get_url", "{{ x }}/b"),
                (f"{TASKS}:12", "copy", "{{ x }}/c"),
                (f"{TASKS}:21", "copy", "{{ __x_other.path }}/x"),
                ("roles/time/tasks/other.yml:2", "copy", "/etc/b"),
            )
        ],
    ),
    Planted(
        tasks.a_silent_refusal_is_said_before,
        {
            TASKS: """
                - name: Silent
                  hal_files: {files: [{path: /etc/a, content: a, mode: "0600"}], places: [/etc/b]}
                  no_log: true
                - name: Looked at in silence only
                  hal_files: {files: [{path: /etc/b, content: b, mode: "0600"}]}
                  no_log: true
                - name: Look
                  hal_files: {places: [/etc/c]}
                - name: Good
                  hal_files: {files: [{path: /etc/c, content: c, mode: "0600"}]}
                  no_log: true
                - name: Good, it speaks
                  hal_files: {files: [{path: /etc/d, content: d}]}
                - name: Of whatever paths
                  hal_files: {files: "{{ x }}"}
                  no_log: true
                """
        },
        [
            f"{TASKS}:{line}: nobody reads why {path} is refused; look before: places: [{path}]"
            for line, path in ((1, "/etc/a"), (4, "/etc/b"), (14, "{{ x }}"))
        ],
    ),
    Planted(
        tasks.shell_only_where_needed,
        {
            TASKS: """
                - name: Needs none
                  ansible.builtin.shell: "systemctl show {{ x | default('a') }}"
                - name: Needs none either
                  ansible.builtin.shell: {cmd: date}
                - name: Needs one
                  ansible.builtin.shell: "rpm -qa | sort"
                """,
        },
        [
            f"{TASKS}:2: nothing here needs a shell; use ansible.builtin.command with argv",
            f"{TASKS}:4: nothing here needs a shell; use ansible.builtin.command with argv",
        ],
    ),
    Planted(
        tasks.loops_have_items,
        {
            TASKS: """
                - name: Without a loop
                  ansible.builtin.command: {argv: [date, "{{ item.name }}"]}
                - name: Without its item
                  ansible.builtin.command: {argv: [date]}
                  loop: [a, b]
                - name: Good
                  ansible.builtin.command: {argv: [date, "{{ item }}"]}
                  loop: [a, b]
                - name: Good, by another name
                  ansible.builtin.command: {argv: [date, "{{ __time_each }}"]}
                  loop: "{{ found.results | map(attribute='item') }}"
                  loop_control: {loop_var: __time_each}
                - name: Good, of an earlier loop
                  ansible.builtin.command: {argv: [date, "{{ found.results | map(attribute='item') }}"]}
                """
        },
        [
            f"{TASKS}:1: item without a loop",
            f"{TASKS}:5: the loop does the same each time: nothing in the task uses its item",
        ],
    ),
    Planted(
        tasks.the_controller_runs_its_own_python,
        {
            TASKS: """
                - name: Any Python
                  ansible.builtin.command: {argv: [date]}
                  delegate_to: localhost
                - name: A path with a blank
                  ansible.builtin.command: {argv: [date]}
                  delegate_to: localhost
                  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
                - name: Good
                  ansible.builtin.command: {argv: [date]}
                  delegate_to: localhost
                  vars: {ansible_python_interpreter: "{{ ansible_playbook_python | quote }}"}
                - name: Good, without one
                  ansible.builtin.debug: {msg: done}
                  delegate_to: localhost
                """
        },
        [
            f'{TASKS}:3: vars: {{ansible_python_interpreter: "{{{{ ansible_playbook_python | quote }}}}"}} is missing',
            f'{TASKS}:6: vars: {{ansible_python_interpreter: "{{{{ ansible_playbook_python | quote }}}}"}} is missing',
        ],
    ),
    Planted(
        tasks.the_controller_becomes_nobody_else,
        {
            TASKS: """
                - name: As root, for the play says become
                  ansible.builtin.command: {argv: [date]}
                  delegate_to: localhost
                - name: Good
                  become: false
                  block:
                    - name: Of the block
                      ansible.builtin.command: {argv: [date]}
                      delegate_to: localhost
                - name: Good, nothing is run
                  ansible.builtin.debug: {msg: done}
                  delegate_to: localhost
                """
        },
        [f"{TASKS}:3: become: false is missing"],
    ),
    Planted(
        tasks.what_a_program_printed_is_whole,
        {
            TASKS: """
                - name: Good, by the module that reads all
                  hal_command: {argv: [date]}
                  register: __time_date
                - name: Good, only its status is asked
                  ansible.builtin.command: {argv: [date]}
                  register: __time_status
                - name: Lost
                  ansible.builtin.command: {argv: [date]}
                  register: __time_lost
                  failed_when: __time_status.rc > __time_date.stdout | int
                - name: Lost in another file
                  ansible.builtin.shell: date | wc
                  register: __time_words
                - name: Lost in a loop
                  ansible.builtin.command: {argv: [date, "{{ item }}"]}
                  register: __time_each
                  loop: [a]
                - name: Nothing depends on it
                  ansible.builtin.command: {argv: [date]}  # contract: it is shown, and nothing else
                  register: __time_shown
                """,
            "roles/time/vars/main.yml": "a: \"{{ __time_lost['stdout_lines'] }}\"\nb: '{{ __time_each.results }}'\n",
            "roles/time/templates/a.j2": "{{ __time_words.stderr }}{{ __time_shown.stdout }}\n",
            PLAY: """
                - hosts: localhost
                  tasks:
                    - name: Lost in a playbook
                      ansible.builtin.command: {argv: [date]}
                      register: __site_date
                    - name: Read it
                      ansible.builtin.debug: {msg: "{{ __site_date.stdout }}"}
                """,
            "molecule/time/verify.yml": """
                - hosts: all
                  tasks:
                    - name: A scenario
                      ansible.builtin.command: {argv: [date]}
                      register: __time_seen
                      failed_when: __time_seen.stdout != 'x'
                """,
        },
        [
            f"{PLAY}:4: command may lose what is read of it on a busy node; use hal_command",
            f"{TASKS}:8: command may lose what is read of it on a busy node; use hal_command",
            f"{TASKS}:12: shell may lose what is read of it on a busy node; use hal_command",
            f"{TASKS}:15: command may lose what is read of it on a busy node; use hal_command",
        ],
    ),
    Planted(
        tasks.one_change_is_enough,
        {
            TASKS: """
                - name: Two
                  ansible.builtin.command: {argv: [reload]}
                  when: >-
                    a is not changed
                    and (b is changed or c is changed
                    and d is changed)
                - name: A list is joined by and
                  ansible.builtin.command: {argv: [reload]}
                  when: [a is changed, not c.failed, b.changed]
                - name: Good
                  ansible.builtin.command: {argv: [reload]}
                  when:
                    - a is not changed
                    - b is changed or c is changed
                """
        },
        [
            f"{TASKS}:3: it needs two changes in one run; one is enough: or",
            f"{TASKS}:9: it needs two changes in one run; one is enough: or",
        ],
    ),
    Planted(
        tasks.host_keys_are_checked,
        {
            "ansible.cfg": f"[defaults]\nhost_key_checking = {OFF}\n",
            "molecule/virtual_hal/ssh": f"ssh -o StrictHostKeyChecking={OFF} x\nssh -o StrictHostKeyChecking=yes x\n",
            "docs/ssh.md": f"Never set StrictHostKeyChecking={OFF}.\n",
        },
        [
            "ansible.cfg:2: host-key checking is off; trust the site's CA (@cert-authority in known_hosts)",
            "molecule/virtual_hal/ssh:1: host-key checking is off;"
            " trust the site's CA (@cert-authority in known_hosts)",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
