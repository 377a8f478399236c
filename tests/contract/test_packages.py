"""Package and unit tasks that only one system understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import packages

TASKS = "roles/time/tasks/install.yml"

PLANTED = (
    Planted(
        packages.package_tasks_fit_both_managers,
        {
            TASKS: """
                - name: Good
                  ansible.builtin.package: {name: chrony, state: present, enablerepo: epel, use: yum}
                - name: dnf only
                  ansible.builtin.package: {name: chrony, nobest: true}
                - name: As text
                  ansible.builtin.package: name=chrony nobest=true
                """,
            "playbooks/tasks/more.yml": "- name: In its own file\n  ansible.builtin.package: {name: x, nobest: 1}\n",
            "playbooks/site.yml": """
                - hosts: all
                  module_defaults:
                    ansible.builtin.package: {use: yum, allowerasing: true}
                  roles: [time]
                """,
        },
        [
            "playbooks/site.yml:3: allowerasing is not an argument of both yum and dnf; do without it",
            "playbooks/tasks/more.yml:2: nobest is not an argument of both yum and dnf; do without it",
            f"{TASKS}:4: nobest is not an argument of both yum and dnf; do without it",
            f"{TASKS}:6: nobest is not an argument of both yum and dnf; do without it",
        ],
    ),
    Planted(
        packages.unit_tasks_fit_systemd,
        {
            TASKS: """
                - name: Good
                  ansible.builtin.systemd_service: {name: chronyd, state: started, enabled: true}
                - name: For one user
                  ansible.builtin.systemd_service: {name: chronyd, scope: user}
                """,
        },
        [f"{TASKS}:4: scope; use only daemon_reexec, daemon_reload, enabled, masked, name, no_block, state"],
    ),
    Planted(
        packages.managers_are_not_named,
        {
            TASKS: "- name: One\n  ansible.builtin.yum: {name: x}\n- name: Two\n  ansible.builtin.service: {name: x}\n",
            "roles/time/handlers/main.yml": "- name: Three\n  community.general.dnf_versionlock: {name: x}\n",
        },
        [
            "roles/time/handlers/main.yml:2: dnf_versionlock needs dnf, which CentOS 7 does not have",
            f"{TASKS}:2: yum is one manager only; use ansible.builtin.package",
            f"{TASKS}:4: service is one manager only; use ansible.builtin.systemd_service",
        ],
    ),
)


def test_the_shared_arguments_are_those_of_both_modules() -> None:
    shared = packages.shared_arguments()
    assert {"name", "state", "use", "enablerepo"} <= shared
    assert "nobest" not in shared, "only dnf has it"


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
