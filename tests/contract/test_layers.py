"""Group, role, tag and file that are not one word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import layers

LAYER = "playbooks/layers/base.yml"
MODEL = {"inventory/hal/cluster.yml": "groups: {time: all}\nservices: {time_server: a}\nnodes: {a: {role: login}}\n"}
ROLE = {"roles/time/README.md": ""}
GOOD = """
    - name: Time
      hosts: time
      roles:
        - {role: time, tags: [time]}
    """

PLANTED = (
    Planted(layers.plays_are_one_word, {**MODEL, **ROLE, LAYER: GOOD}, []),
    Planted(
        layers.plays_are_one_word,
        {
            **MODEL,
            **ROLE,
            LAYER: """
                - name: Time
                  hosts: all
                  roles:
                    - {role: time, tags: [clock]}
                  post_tasks:
                    - ansible.builtin.debug: {msg: x}
                - name: New
                  hosts: new
                  roles:
                    - {role: new, tags: new}
                - name: Two
                  hosts: time
                  roles: [time, new]
                """,
        },
        [
            f"{LAYER}:2: hosts is all, the role is time; the group has the role's name",
            f"{LAYER}:4: tags of time are ['clock']; tags: [time]",
            f"{LAYER}:5: post_tasks in a layer; a layer chooses, a role does",
            f"{LAYER}:8: new is not under groups in inventory/hal/cluster.yml; say there which nodes get it",
            f"{LAYER}:9: roles/new does not exist; write it or take the play away",
            f"{LAYER}:11: 2 roles in one play; one play has one role",
        ],
    ),
    Planted(
        layers.every_role_has_its_play,
        {LAYER: GOOD, **ROLE, "roles/ssh/README.md": ""},
        ["roles/ssh:1: played by 0 plays in playbooks/layers; exactly one is right"],
    ),
    Planted(
        layers.every_layer_is_in_site,
        {
            "playbooks/site.yml": "- import_playbook: layers/old.yml\n- hosts: all\n",
            LAYER: GOOD,
        },
        [
            f"{LAYER}:1: imported 0 times by playbooks/site.yml; once is right",
            "playbooks/site.yml:1: layers/old.yml does not exist; write it or take the import away",
            "playbooks/site.yml:2: a play in the contents page; move it to a layer",
        ],
    ),
    Planted(
        layers.vars_files_belong_to_groups,
        {
            **MODEL,
            "inventory/hal/group_vars/all/site.yml": "",
            "inventory/hal/group_vars/time.yml": "",
            "inventory/hal/group_vars/time_server.yml": "",
            "inventory/hal/group_vars/login.yml": "",
            "inventory/virtual/group_vars/tiem.yml": "",
        },
        [
            "inventory/virtual/group_vars/tiem.yml:1: tiem is no group of inventory/hal/cluster.yml,"
            " so nobody gets these variables; rename it"
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
