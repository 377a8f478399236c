"""Units that systemd 252 of the virtual nodes takes and systemd 219 of CentOS 7 does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.project import PROJECT
from tests.contract.rules import centos7_systemd

UNIT = "roles/mirror/templates/mirror.service.j2"
DROP_IN = "roles/slurm/templates/slurmd.unit.conf.j2"
TIMER = "roles/backup/files/backup.timer"
TASKS = "roles/mirror/tasks/configure.yml"

PLANTED = (
    Planted(
        centos7_systemd.directives_are_those_of_219,
        {
            UNIT: """
                {# StartLimitIntervalSec=1 #}
                [Unit]
                Description=Mirror of {{ mirror_name }}
                StartLimitIntervalSec=30
                {% if mirror_wait %}
                After=network-online.target
                {% endif %}
                [Service]
                StartLimitInterval=30
                TasksMax=100
                ExecStart=/usr/bin/createrepo_c \\
                  --update
                StateDirectory=mirror
                [Install]
                WantedBy=multi-user.target
                """,
            DROP_IN: "[Service]\nLimitMEMLOCK=infinity\n{{ setting }}=1\nStartLimitBurst=3\nOOMPolicy=kill\n",
            TIMER: "[Timer]\nOnCalendar=daily\nRandomizedDelaySec=1h\nFixedRandomDelay=yes\n",
            "roles/time/templates/other.conf.j2": "[defaults]\nanything = 1\n",
        },
        [
            "roles/backup/files/backup.timer:4: FixedRandomDelay= in [Timer]: not in systemd 219 (CentOS 7)",
            f"{UNIT}:4: StartLimitIntervalSec= in [Unit]: not in systemd 219 (CentOS 7)",
            f"{UNIT}:13: StateDirectory= in [Service]: not in systemd 219 (CentOS 7)",
            f"{DROP_IN}:5: OOMPolicy= in [Service]: not in systemd 219 (CentOS 7)",
        ],
    ),
    Planted(
        centos7_systemd.directives_are_those_of_219,
        {
            UNIT: "[Unit]\nStartLimitBurst=3\n[Service]\nTimeoutStartSec=3\n[Exec]\nNice=1\n[X-Ours]\nNote=1\n",
            TASKS: """
                - name: Write a unit in place
                  ansible.builtin.copy:
                    dest: /etc/systemd/system/a.service
                    content: |
                      [Service]
                      ExecStart=/bin/true
                      DynamicUser=yes
                - name: Write another
                  hal_files:
                    files:
                      - path: /etc/systemd/system/b.service
                        content: |
                          [Service]
                          DynamicUser=no
                """,
        },
        [
            f"{TASKS}:7: DynamicUser= in [Service]: not in systemd 219 (CentOS 7)",
            f"{TASKS}:14: DynamicUser= in [Service]: not in systemd 219 (CentOS 7)",
            f"{UNIT}:2: StartLimitBurst= in [Unit]: not in systemd 219 (CentOS 7); it belongs to [Service]",
            f"{UNIT}:6: [Exec] is no section that systemd 219 (CentOS 7) reads",
        ],
    ),
    Planted(
        centos7_systemd.values_are_those_of_219,
        {
            UNIT: """
                [Service]
                Type=exec
                Restart={{ mirror_restart }}
                ExecStartPre=-/bin/mkdir -p %t/mirror 100%%
                ExecStartPre=+/bin/chown mirror %S/mirror
                ExecStart=createrepo_c --update
                ExecStop={{ mirror_program }} --stop
                ProtectSystem=strict
                ProtectHome=true
                StandardOutput=append:/var/log/mirror.log
                """,
        },
        [
            f"{UNIT}:2: Type=exec: systemd 219 (CentOS 7) knows dbus, forking, idle, notify, oneshot, simple",
            f"{UNIT}:5: ExecStartPre=+/bin/chown mirror %S/mirror: %S is not in systemd 219 (CentOS 7)",
            f"{UNIT}:5: ExecStartPre=+/bin/chown mirror %S/mirror: + before a program is not in systemd 219 (CentOS 7)",
            f"{UNIT}:6: ExecStart=createrepo_c --update: systemd 219 (CentOS 7) wants the program's whole path",
            f"{UNIT}:8: ProtectSystem=strict: systemd 219 (CentOS 7) knows full, no, yes",
            f"{UNIT}:10: StandardOutput=append:/var/log/mirror.log: systemd 219 (CentOS 7) knows inherit, journal, "
            "journal+console, kmsg, kmsg+console, null, socket, syslog, syslog+console, tty",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


def test_the_table_has_what_219_had_and_not_what_came_later() -> None:
    sections = centos7_systemd.known().sections
    assert {"ExecStart", "MemoryLimit", "TasksMax", "StartLimitInterval", "LimitMEMLOCK"} <= sections["Service"]
    assert not {"MemoryMax", "StateDirectory", "DynamicUser", "Delegate2"} & sections["Service"]
    assert "RandomizedDelaySec" in sections["Timer"], "Red Hat's own, beside 219"
    assert {"WantedBy", "Alias", "Also", "DefaultInstance", "RequiredBy"} == sections["Install"]


def test_the_units_of_the_roles_were_looked_at() -> None:
    """Nothing found in nothing is not green."""
    seen = {str(path.relative_to(PROJECT)) for path, _, _ in centos7_systemd.units(PROJECT)}
    assert {
        "roles/base/templates/hal-smt.service.j2",
        "roles/slurm/templates/slurmd.unit.conf.j2",
    } <= seen
