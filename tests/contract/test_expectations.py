"""Roles that do not prove themselves, or not readably."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import expectations

VERIFY = "roles/time/tasks/verify.yml"
MAIN = "roles/time/tasks/main.yml"
EXPECT = "roles/time/expect.yml"
GOOD = """
    - id: chronyd runs
      service: {name: chronyd, read: running}
      equal: true
      why: clocks drift
    """
TASK = "- name: Look\n  ansible.builtin.command: {argv: [date]}\n"

PLANTED = (
    Planted(
        expectations.verify_only_reads,
        {VERIFY: "- name: Check\n  hal_expect: {}\n  when: not ansible_check_mode\n"},
        [],
    ),
    Planted(
        expectations.verify_only_reads,
        {VERIFY: "- name: Check\n  hal_expect: {}\n"},
        [f"{VERIFY}:1: without when: not ansible_check_mode it asks for what check mode did not make"],
    ),
    Planted(
        expectations.verify_only_reads,
        {VERIFY: "- name: Mend\n  ansible.builtin.file: {path: /x}\n"},
        [
            f"{VERIFY}:1: hal_expect is not called; it evaluates expect.yml",
            f"{VERIFY}:2: ansible.builtin.file in verify.yml; only hal_expect, which changes nothing",
        ],
    ),
    Planted(
        expectations.every_role_ends_in_verify,
        {
            MAIN: """
                - name: Verify
                  ansible.builtin.import_tasks: verify.yml
                - name: Configure
                  ansible.builtin.import_tasks: configure.yml
                """,
        },
        [f"{MAIN}:3: the last task does not include verify.yml; a rollout ends in its proof"],
    ),
    Planted(expectations.expectations_are_valid, {EXPECT: GOOD}, []),
    Planted(
        expectations.values_can_be_worked_out,
        {
            MAIN: TASK,
            EXPECT: """
                - {id: a, why: x, file: {path: /x, read: exists}, equal: "{{ __time_nowhere }}"}
                - {id: b, why: x, file: {path: /x, read: exists}, equal: "{{ __time_nowhere }}", when: false}
                - {id: c, why: x, file: {path: /x, read: exists}, equal: true, when: __time_neither}
                - {id: d, why: x, file: {path: "{{ item.path }}", read: exists}, equal: true, loop: [{name: y}]}
                - {id: e, why: x, file: {path: /x, read: exists}, equal: "{{ 1 == 1 }}"}
                """,
        },
        [
            f"{EXPECT}:1: equal, on n1: '__time_nowhere' is undefined",
            f"{EXPECT}:3: when, on n1: '__time_neither' is undefined",
            f"{EXPECT}:4: file, on n1: 'dict object' has no attribute 'path'",
        ],
    ),
    Planted(
        expectations.the_site_is_not_refused,
        {
            "roles/time/defaults/main.yml": "time_servers: [a]\n",
            MAIN: TASK + "\n- name: Validate\n  ansible.builtin.import_tasks: validate.yml\n",
            "roles/time/tasks/validate.yml": """
                - name: Passed
                  ansible.builtin.assert: {that: time_servers | length > 0}
                - name: Refused
                  ansible.builtin.assert: {that: [time_servers | length > 0, item != 'b']}
                  loop: "{{ time_servers + ['b'] }}"
                - name: Of another kind of node
                  ansible.builtin.assert: {that: false}
                  when: time_servers | length > 1
                - name: Shows only in a run
                  ansible.builtin.assert: {that: __time_registered.rc == 0}
                - name: Excused  # contract: this site has no key yet
                  ansible.builtin.assert: {that: false}
                """,
        },
        ["roles/time/tasks/validate.yml:3: n1 of this site is refused: item != 'b'"],
    ),
    Planted(
        expectations.services_are_promised,
        {
            "plugins/modules/hal_slurm_daemon.py": "",
            MAIN: """
                - name: Promised
                  ansible.builtin.systemd_service: {name: chronyd, state: started, enabled: true}
                - name: Not promised
                  ansible.builtin.systemd_service: {name: other.timer, state: started, enabled: true}
                - name: Stopped
                  ansible.builtin.systemd_service: {name: ntpd, state: stopped, enabled: false}
                - name: Shows in a run
                  ansible.builtin.systemd_service: {name: late, state: "{{ __time_registered }}"}
                - name: By a module of our own
                  hal_slurm_daemon: {name: slurmd, files: [/etc/slurm/slurm.conf]}
                """,
            EXPECT: """
                - {id: a, why: x, service: {name: chronyd, read: running}, equal: true}
                - {id: b, why: x, service: {name: chronyd.service, read: enabled}, equal: true}
                - {id: c, why: x, service: {name: ntpd, read: running}, equal: true}
                - {id: d, why: x, service: {name: other.timer, read: enabled}, equal: false}
                - {id: e, why: x, service: {name: late, read: running}, equal: true}
                """,
        },
        [
            f"{EXPECT}:3: ntpd.service: the role does not have it running: True",
            f"{EXPECT}:4: other.timer: the role does not have it enabled: False",
            f"{MAIN}:3: other.timer: no expectation says that it is enabled; add one to expect.yml",
            f"{MAIN}:3: other.timer: no expectation says that it is running; add one to expect.yml",
            f"{MAIN}:9: slurmd.service: no expectation says that it is enabled; add one to expect.yml",
            f"{MAIN}:9: slurmd.service: no expectation says that it is running; add one to expect.yml",
        ],
    ),
    Planted(
        expectations.packages_are_promised_as_they_are_installed,
        {
            MAIN: """
                - name: Have it
                  ansible.builtin.package: {name: [chrony, ntpdate], state: present}
                - name: Have it not
                  ansible.builtin.package: {name: ntp, state: absent}
                """,
            EXPECT: """
                - {id: a, why: x, package: {name: chrony, read: installed}, equal: true}
                - {id: b, why: x, package: {name: ntpdate, read: installed}, equal: false}
                - {id: c, why: x, package: {name: ntp, read: installed}, equal: true}
                - {id: d, why: x, package: {name: other, read: installed}, equal: false}
                """,
        },
        [
            f"{EXPECT}:2: ntpdate: the role does not have it installed: False",
            f"{EXPECT}:3: ntp: the role does not have it installed: True",
        ],
    ),
    Planted(
        expectations.files_are_promised_as_they_are_written,
        {
            MAIN: """
                - name: A file
                  ansible.builtin.copy: {dest: /etc/x, content: x, owner: root, group: root, mode: "0644"}
                """,
            EXPECT: """
                - {id: a, why: x, file: {path: /etc/x, read: mode}, equal: "0600"}
                - {id: b, why: x, file: {path: /etc/x, read: owner}, equal: root}
                - {id: c, why: x, file: {path: /etc/x, read: type}, equal: directory}
                - {id: d, why: x, file: {path: /etc/y, read: mode}, equal: "0600"}
                """,
        },
        [
            f"{EXPECT}:1: /etc/x: expected mode 0600, the role gives 0644",
            f"{EXPECT}:3: /etc/x: expected type directory, the role gives file",
        ],
    ),
)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("---\n[]\n", f"{EXPECT}:2: ", "list"),
        ("---\n- id: x\n  why: y\n  equal: true\n  servcie: {name: chronyd}\n", f"{EXPECT}:5: ", "servcie"),
    ],
)
def test_what_hal_expect_does_not_understand_is_found(text: str, place: str, word: str, tmp_path: Path) -> None:
    """The wording is hal_expect's own."""
    path = tmp_path / EXPECT
    path.parent.mkdir(parents=True)
    path.write_text(text)
    findings = expectations.expectations_are_valid(tmp_path)
    assert any(finding.startswith(place) and word in finding for finding in findings), findings


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
