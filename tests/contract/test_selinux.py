"""Paths that a confined daemon could not read, and ports that it could not listen on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract import declared, project
from tests.contract.el7.selinux import Contexts, NotCoveredError, Rule, contexts, policy
from tests.contract.planting import Planted
from tests.contract.rules import selinux

TASKS = "roles/planted/tasks/main.yml"
TABLE = "say in tests/contract/el7/readers.yml who does, and the type it has to have"
PORT = "it needs community.general.seport"
LABEL = "it needs community.general.sefcontext and a restorecon"

PLANTED = (
    Planted(
        selinux.what_roles_write_can_be_read,
        {
            TASKS: """
                - name: As the table has it
                  ansible.builtin.copy: {dest: /etc/chrony.conf, content: x}
                - name: One row for a whole folder
                  ansible.builtin.file: {path: /var/log/slurm, state: directory}
                - name: What shall not be there
                  ansible.builtin.file: {path: /data/x, state: absent}
                - name: What is nobody's
                  ansible.builtin.copy: {src: x, dest: "{{ made.path }}/x"}
                  vars: {hal_manages: []}
                """
        },
        [],
    ),
    Planted(
        selinux.what_roles_write_can_be_read,
        {
            TASKS: """
                - name: Nobody reads it
                  ansible.builtin.copy: {dest: "/etc/{{ planted_name }}.conf", content: x}
                - name: A module of this project
                  hal_files:
                    files: [{path: /data/slurm.conf, content: x}]
                - name: Another kind of file
                  ansible.builtin.copy: {dest: /etc/localtime, content: x}
                - name: A setting of the kernel
                  ansible.posix.sysctl: {name: vm.swappiness, value: 1, sysctl_file: /etc/planted.sysctl}
                - name: A name that a rule for something else fits
                  ansible.builtin.lineinfile: {path: /etc/my.cnf.d/hostname.cnf, line: x}
                """,
            "roles/planted/defaults/main.yml": "planted_name: planted\n",
        },
        [
            f"{TASKS}:1: /etc/planted.conf: nobody is known to read it; {TABLE}",
            f"{TASKS}:3: /data/slurm.conf: nobody is known to read it; {TABLE}",
            f"{TASKS}:6: /etc/localtime: a file there gets etc_t, not locale_t; {LABEL}",
            f"{TASKS}:8: /etc/planted.sysctl: nobody is known to read it; {TABLE}",
        ],
    ),
    Planted(
        selinux.where_roles_write_shows_without_a_run,
        {
            TASKS: """
                - name: Look
                  ansible.builtin.command: {argv: [mktemp]}
                  register: made
                  changed_when: false
                - name: Somewhere
                  ansible.builtin.copy: {dest: "{{ made.stdout }}", content: x}
                - name: Not a file
                  ansible.builtin.package: {name: "{{ made.stdout }}"}
                - name: Take away
                  ansible.builtin.file: {path: "{{ made.stdout }}", state: absent}
                - name: What is in it may show later
                  ansible.builtin.copy: {dest: /etc/hosts, content: "{{ made.stdout }}"}
                """
        },
        [
            f"{TASKS}:5: which paths this writes shows only in a run, so nothing checks their types:"
            " what it manages has no name before"
        ],
    ),
    Planted(
        selinux.daemons_may_listen,
        {
            TASKS: """
                - name: Known
                  ansible.builtin.systemd_service: {name: chronyd.service, state: started}
                - name: Its timer
                  ansible.builtin.systemd_service: {name: hal-backup.timer, state: started}
                - name: Stopped
                  ansible.builtin.systemd_service: {name: ntpd.service, state: stopped}
                - name: Unknown
                  ansible.builtin.systemd_service: {name: planted, state: started}
                """
        },
        [
            f"{TASKS}:7: planted.service: say in tests/contract/el7/readers.yml which program it starts"
            " and what it listens on"
        ],
    ),
    Planted(
        selinux.opened_ports_can_be_bound,
        {
            "roles/planted/firewall.yml": """
                - id: ssh
                  ports: [22/tcp]
                  why: somebody listens there
                - id: another
                  ports: [22/udp, 8081/tcp]
                  why: nobody is known
                """
        },
        [
            f"roles/planted/firewall.yml:4: {port}: say in tests/contract/el7/readers.yml which unit listens there,"
            " or which domain"
            for port in ("22/udp", "8081/tcp")
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


TABLE_OF_FAULTS: dict[str, dict[str, Any]] = {
    "units": {
        "mariadb.service": {"program": "/usr/libexec/mysqld", "listens": ["tcp/3306", "tcp/6819"]},
        "slurmd.service": {"program": "/usr/sbin/slurmd", "listens": ["tcp/1-70"]},
        "chronyd.service": {"program": "/usr/sbin/chronyd", "listens": ["udp/{{ planted_port }}"]},
        "strange.service": {"program": "/usr/sbin/rpcbind", "listens": []},
    },
    "others": {"8090/tcp": "httpd_t", "6817-6818/tcp": "unconfined_service_t"},
    "paths": {
        "/var/lib/mysql/": {"type": "mysqld_db_t", "readers": ["chronyd.service"], "makes": ["mariadb.service"]},
        "/srv/data/": {"type": "httpd_sys_content_t", "readers": ["httpd_t"]},
        "/srv/bare/": {"type": "httpd_sys_content_t", "readers": ["httpd_t"]},
        "/etc/selinux/targeted/active/": {"type": "semanage_store_t", "readers": ["unconfined_t"]},
        "/data/": {"type": "etc_t", "readers": ["init_t"]},
        "/etc/chrony.keys": {"type": "chronyd_keys_t", "readers": ["strange.service"]},
    },
}


def test_what_a_domain_may_not_do_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is wrong, or a daemon was moved: what the policy says decides."""
    monkeypatch.setattr(selinux, "table", lambda: TABLE_OF_FAULTS)
    (tmp_path / TASKS).parent.mkdir(parents=True)
    (tmp_path / "roles/planted/defaults").mkdir()
    (tmp_path / "roles/planted/defaults/main.yml").write_text("planted_port: 124\n")
    (tmp_path / TASKS).write_text(
        "- name: Files\n"
        "  ansible.builtin.file: {path: '{{ item }}', state: directory}\n"
        "  loop: [/var/lib/mysql/x, /srv/data, /srv/bare, /data/x]\n"
        "- name: A key\n"
        "  ansible.builtin.copy: {dest: /etc/chrony.keys, content: x}\n"
        "- name: A label\n"
        "  community.general.sefcontext: {target: '/srv/data(/.*)?', setype: httpd_sys_content_t}\n"
        "- name: Run\n"
        "  ansible.builtin.systemd_service: {name: '{{ item }}', state: started}\n"
        "  loop: [mariadb, slurmd, chronyd]\n"
    )
    assert selinux.what_roles_write_can_be_read(tmp_path) == [
        f"{TASKS}:1: /data/x: its rules are not in file_contexts.yml; take them from a node's file_contexts",
        f"{TASKS}:1: /srv/bare: a directory there gets var_t, not httpd_sys_content_t; {LABEL}",
        f"{TASKS}:1: /srv/bare: httpd_t runs as httpd_t, which may not read var_t; {LABEL}",
        f"{TASKS}:1: /var/lib/mysql/x: chronyd.service runs as chronyd_t, which may not read mysqld_db_t; {LABEL}",
        f"{TASKS}:4: /etc/chrony.keys: strange.service runs as rpcbind_t, of which domains.yml says nothing",
    ]
    assert selinux.daemons_may_listen(tmp_path) == [
        f"{TASKS}:8: chronyd.service: chronyd_t may not listen on udp/124 (reserved_port_t); {PORT}",
        f"{TASKS}:8: mariadb.service: mysqld_t may not listen on tcp/6819 (unreserved_port_t); {PORT}",
    ]

    (tmp_path / "roles/planted/firewall.yml").write_text("- {id: x, ports: [8090/tcp, 6817-6818/tcp]}\n")
    assert selinux.opened_ports_can_be_bound(tmp_path) == [
        f"roles/planted/firewall.yml:1: httpd_t may not listen on 8090/tcp (unreserved_port_t); {PORT}"
    ]


@pytest.mark.parametrize(
    ("path", "kind", "type_"),
    [
        ("/etc/munge/munge.key", "file", "etc_t"),  # the policy has no module for MUNGE: munged is unconfined
        ("/etc/ssh/ssh_host_ed25519_key", "file", "sshd_key_t"),
        ("/etc/ssh/ssh_host_ed25519_key-cert.pub", "file", "etc_t"),
        ("/etc/my.cnf.d/x.cnf", "file", "mysqld_etc_t"),
        ("/etc/sysctl.conf", "file", "system_conf_t"),
        ("/etc/sysctl.d/x.conf", "file", "etc_t"),
        ("/etc/systemd/system/x.service.d/90-hal.conf".replace("x.", "hal-x."), "file", "systemd_unit_file_t"),
        ("/etc/localtime", "link", "locale_t"),
        ("/run/munge/munge.socket.2", "socket", "var_run_t"),
        ("/run/munge/x.pid", "file", "none"),
        ("/srv/hal", "directory", "var_t"),
        ("/var/www/html/x", "file", "httpd_sys_content_t"),
        ("/usr/sbin/slurmd", "file", "bin_t"),
        ("/usr/libexec/mysqld", "file", "mysqld_exec_t"),
    ],
)
def test_a_path_has_the_type_that_matchpathcon_says(path: str, kind: str, type_: str) -> None:
    """Asked of libselinux 3.4 (selabel_lookup -b file) with the whole file_contexts that the rules were taken from."""
    assert contexts().type_of(path, kind) == type_


def test_the_last_rule_counts_and_before_it_the_path_of_one_file() -> None:
    rules = [
        Rule("/.*", "any", "default_t"),
        Rule(r"/etc/a\.conf", "file", "exact_t"),
        Rule("/etc(/.*)?", "any", "etc_t"),
        Rule("/etc/a.*", "link", "link_t"),
        Rule("/etc/n.*", "any", "none"),
    ]
    labels = Contexts(rules, aliases=[("/other", "/etc")])
    assert labels.type_of("/etc/a.conf", "file") == "exact_t"
    assert labels.type_of("/other/a.conf", "link") == "link_t"
    assert labels.type_of("/otherwise", "file") == "default_t"
    assert labels.type_of("/etc/n", "file") == "none"
    assert labels.type_of("/etcetera", "file") == "default_t", "the whole path has to match"
    local = Contexts(rules, local=[Rule("/etc/a.*", "any", "local_t"), Rule("/etc/a.*", "any", "later_t")])
    assert local.type_of("/etc/a.conf", "file") == "later_t"


def test_a_path_whose_rules_were_not_copied_has_no_type() -> None:
    with pytest.raises(NotCoveredError):
        contexts().type_of("/data/x", "file")


def test_ports_have_the_label_of_the_narrowest_range() -> None:
    rules = policy()
    assert rules.port_type("tcp", 6817) == "unreserved_port_t"
    assert rules.port_type("tcp", 3306) == "mysqld_port_t"
    assert rules.port_type("udp", 323) == "chronyd_port_t"
    assert rules.may_bind("unconfined_service_t", "tcp", 6818), "slurmd and munged run there"
    assert rules.may_bind("sshd_t", "tcp", 22)
    assert not rules.may_bind("sshd_t", "tcp", 2222)
    assert not rules.may_bind("httpd_t", "tcp", 8090)


def test_every_row_of_the_table_is_needed() -> None:
    assert selinux.unused_rows(project.PROJECT) == []


def test_the_rules_saw_what_roles_write() -> None:
    """Nothing found in nothing is not green."""
    found = {one.name for one in declared.of_project(project.PROJECT).resources}
    assert {
        "file:/etc/chrony.conf",
        "file:/etc/munge/munge.key",
        "file:/etc/slurm/slurmdbd.conf",
        "file:/etc/systemd/system/slurmd.service.d/90-hal.conf",
        "file:/etc/ssh/ssh_host_ed25519_key-cert.pub",
        "service:slurmctld.service",
        "service:munge.service",
    } <= found
