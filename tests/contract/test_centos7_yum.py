"""Repositories and interpreters that suit dnf, and not yum."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import centos7_yum

TASKS = "roles/repositories/tasks/configure.yml"
SITE = "inventory/hal/group_vars/all/site.yml"
CLUSTER = "inventory/hal/cluster.yml"

PLANTED = (
    Planted(
        centos7_yum.repository_tasks_fit_yum,
        {
            TASKS: """
                - name: Describe
                  ansible.builtin.yum_repository:
                    name: a
                    description: A
                    includepkgs: [a]
                    state: present
                    countme: true
                """,
        },
        [f"{TASKS}:7: countme: not in yum 3.4.3 (CentOS 7); do without it"],
    ),
    Planted(
        centos7_yum.real_sites_have_yum_and_its_python,
        {CLUSTER: "a: 1\n", SITE: "hal_package_manager: yum\nansible_python_interpreter: /usr/bin/python3\n"},
        [f"{SITE}:2: ansible_python_interpreter: /usr/bin/python3; CentOS 7 needs /usr/bin/python"],
    ),
    Planted(
        centos7_yum.real_sites_have_yum_and_its_python,
        {
            CLUSTER: "a: 1\n",
            SITE: "ansible_python_interpreter: /usr/bin/python\n",
            "inventory/virtual/group_vars/all/site.yml": "hal_package_manager: dnf\n",
        },
        [f"{CLUSTER}:1: no hal_package_manager in group_vars/all; hal_package_manager: yum"],
    ),
    Planted(
        centos7_yum.nothing_else_chooses_the_python,
        {
            CLUSTER: "a: 1\n",
            SITE: "ansible_python_interpreter: /usr/bin/python\n",
            "inventory/hal/group_vars/gpu/gpu.yml": "ansible_python_interpreter: /opt/python3\n",
            "playbooks/site.yml": """
                - hosts: all
                  vars:
                    ansible_python_interpreter: /usr/bin/python3
                - hosts: localhost
                  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
                """,
        },
        [
            "inventory/hal/group_vars/gpu/gpu.yml:1: /opt/python3 for the nodes; leave it to the site's group_vars/all",
            "playbooks/site.yml:3: /usr/bin/python3 for the nodes; leave it to the site's group_vars/all",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


def test_the_table_has_yums_options_and_not_dnfs() -> None:
    options = centos7_yum.options()
    assert {"baseurl", "gpgkey", "includepkgs", "skip_if_unavailable", "cost"} <= options
    assert not {"module_hotfixes", "excludepkgs", "countme", "priority"} & options
