"""Repositories and interpreters that suit dnf, and not yum."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import centos7_yum

TEMPLATE = "roles/repositories/templates/hal.repo.j2"
TASKS = "roles/repositories/tasks/configure.yml"
FILE = "roles/repositories/files/yum.conf"
VARIABLES = "inventory/hal/group_vars/all/repositories.yml"
NOT_KNOWN = "not in yum 3.4.3 (CentOS 7)"
SITE = "inventory/hal/group_vars/all/site.yml"
CLUSTER = "inventory/hal/cluster.yml"

PLANTED = (
    Planted(
        centos7_yum.repository_options_are_yums,
        {
            TEMPLATE: """
                {% for repository in used %}
                [{{ repository.key }}]
                name={{ repository.name }}
                module_hotfixes=1
                {{ option }}={{ value }}
                {% endfor %}
                """,
            FILE: "[main]\nkeepcache=0\nfastestmirror=1\n[a]\nexcludepkgs=slurm*\n",
            TASKS: """
                - name: Describe
                  ansible.builtin.yum_repository:
                    name: a
                    description: A
                    state: present
                    countme: true
                """,
            VARIABLES: """
                repositories_enabled:
                  epel:
                    baseurl: http://x
                    options: {exclude: "slurm*", user_agent: x}
                """,
        },
        [
            f"{VARIABLES}:4: user_agent: {NOT_KNOWN} [repository]; it would do without it",
            f"{FILE}:3: fastestmirror: {NOT_KNOWN} [main]; it would do without it",
            f"{FILE}:5: excludepkgs: {NOT_KNOWN} [repository]; it would do without it",
            f"{TASKS}:6: countme: {NOT_KNOWN} [repository]; it would do without it",
            f"{TEMPLATE}:4: module_hotfixes: {NOT_KNOWN} [repository]; it would do without it",
        ],
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
    options = centos7_yum.known()
    assert {"baseurl", "gpgkey", "includepkgs", "skip_if_unavailable", "cost"} <= options["repository"]
    assert not {"module_hotfixes", "excludepkgs", "countme", "priority"} & options["repository"]
    assert {"installonly_limit", "exclude", "tsflags"} <= options["main"]
