"""Options that Debian 12's programs on the virtual nodes take, and CentOS 7's do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.project import PROJECT
from tests.contract.rules import centos7_tools
from tests.contract.shell import commands

TASKS = "roles/network/tasks/configure.yml"
EXPECT = "roles/network/expect.yml"

PLANTED = (
    Planted(
        centos7_tools.options_are_those_of_centos_7,
        {
            TASKS: """
                - name: As a list
                  ansible.builtin.command:
                    argv: [ip, -j, addr, show, "{{ network_device }}"]
                - name: As text
                  ansible.builtin.command: lsblk --json /dev/{{ network_disk }}
                - name: In a shell
                  ansible.builtin.shell:
                    cmd: |
                      test -e /x && findmnt -nJ / | head -1
                      for unit in a b; do value=$(systemctl show --value -p MainPID $unit); done
                - name: Of dnf only
                  ansible.builtin.command: "{{ hal_package_manager }} --refresh makecache"
                - name: Good
                  ansible.builtin.command: ip -o -{{ network_version }} addr show dev eth0
                """,
            "roles/network/handlers/main.yml": """
                - name: Reload
                  ansible.builtin.command: {argv: [timeout, "5", systemctl, "{{ verb }}", --wait, network]}
                """,
            EXPECT: """
                - id: mounted
                  command: {argv: [findmnt, --noheadings, --output, "FSTYPE,{{ column }}", /home]}
                - id: address
                  command:
                    argv: "{{ ['ip', '-json', 'addr'] + names }}"
                - id: later column
                  command: {argv: [/bin/sh, -c, "lsblk -no NAME,PATH | sort"]}
                """,
            "roles/network/files/probe.sh": """
                #!/bin/sh
                # ip -j in a comment
                echo "ip -j in a text" 'lsblk -J'
                cat <<END
                lsblk -J
                END
                runuser -u nobody -- env A=1 ls --zero
                find / -exec stat --cached=never {} ';'
                su - alice -c 'tail -f x; curl --fail-with-body http://x'
                """,
            "roles/network/templates/logrotate.j2": """
                /x {
                  postrotate
                    {% if a %}
                    journalctl --sync
                  endscript
                }
                """,
            "roles/network/templates/cron.j2": "# comment\n0 3 * * * root /usr/bin/tar --zstd -cf /x /y\n",
            "roles/network/templates/a.service.j2": "[Service]\nExecStart=-/usr/sbin/ip --json link set {{ x }} up\n",
            "hal_node/x.py": """
                def read(run, unit):
                    run(["systemctl", "clean", unit])
                    return run(['/bin/mount', '--mkdir'] + unit)
                """,
            "plugins/modules/hal_y.py": "def go(self):\n    self.systemctl('revert', 1)\n    systemctl('stop', 1)\n",
            "playbooks/site.yml": """
                - hosts: all
                  tasks:
                    - name: Ask
                      ansible.builtin.command: {argv: [resolvectl, status]}
                """,
        },
        [
            "hal_node/x.py:2: systemctl: not in systemd 219 (CentOS 7): clean",
            "hal_node/x.py:3: mount: not in util-linux 2.23 (CentOS 7): --mkdir",
            "playbooks/site.yml:4: resolvectl: not in systemd 219 (CentOS 7)",
            "plugins/modules/hal_y.py:2: systemctl: not in systemd 219 (CentOS 7): revert",
            f"{EXPECT}:5: ip: not in iproute 4.11 (CentOS 7): -json",
            f"{EXPECT}:7: lsblk: not in util-linux 2.23 (CentOS 7): column PATH of -o",
            "roles/network/files/probe.sh:7: ls: not in coreutils 8.22 (CentOS 7): --zero",
            "roles/network/files/probe.sh:8: stat: not in coreutils 8.22 (CentOS 7): --cached",
            "roles/network/files/probe.sh:9: curl: not in curl 7.29 (CentOS 7): --fail-with-body",
            "roles/network/handlers/main.yml:2: systemctl: not in systemd 219 (CentOS 7): --wait",
            f"{TASKS}:3: ip: not in iproute 4.11 (CentOS 7): -j",
            f"{TASKS}:5: lsblk: not in util-linux 2.23 (CentOS 7): --json",
            f"{TASKS}:7: findmnt: not in util-linux 2.23 (CentOS 7): -J",
            f"{TASKS}:8: systemctl: not in systemd 219 (CentOS 7): --value",
            f"{TASKS}:12: yum: not in yum 3.4.3 (CentOS 7): --refresh",
            "roles/network/templates/a.service.j2:2: ip: not in iproute 4.11 (CentOS 7): --json",
            "roles/network/templates/cron.j2:2: tar: not in tar 1.26 (CentOS 7): --zstd",
            "roles/network/templates/logrotate.j2:4: journalctl: not in systemd 219 (CentOS 7): --sync",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("A=1 B='x y' ls -l >x 2>&1 <y", [["ls", "-l"]]),
        ("if ! ls -a; then exec cat; fi", [["ls", "-a"], ["cat"], ["fi"]]),
        ('echo "$(ls -b) `ls -c`" $((1 + 2)) ${x:-ls -d}', [["ls", "-b"], ["ls", "-c"], ["echo", "00 00", "00", "00"]]),
        ("ls \\\n  -l # -a\ncat", [["ls", "-l"], ["cat"]]),
        ("cat <<'E' | sort -u\nls -J\nE\nls", [["cat"], ["sort", "-u"], ["ls"]]),
        ("awk '{ print; exit }' a&&b", [["awk", "{ print; exit }", "a"], ["b"]]),
    ],
)
def test_the_commands_of_a_script(script: str, words: list[list[str]]) -> None:
    assert [found for _, found in commands(script)] == words


def test_the_calls_of_the_project_were_looked_at() -> None:
    """Nothing found in nothing is not green."""
    seen = {(path.relative_to(PROJECT).parts[0], words[0]) for path, _, words in centos7_tools.every_call(PROJECT)}
    assert {("roles", "systemctl"), ("roles", "find"), ("roles", "sshd"), ("plugins", "systemctl")} <= seen
