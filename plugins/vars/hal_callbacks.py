"""Ansible vars plugin: refuse to run our playbooks without the callbacks that record, lock and judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.plugins.vars import BaseVarsPlugin

from hal_cluster.audit import active
from hal_inventory.settings import PROJECT

DOCUMENTATION = r"""
name: hal_callbacks
author: HAL toolkit
short_description: Refuse to run the playbooks without the callbacks that they need
description:
  - >-
    Whoever sets E(ANSIBLE_CALLBACKS_ENABLED) replaces what ansible.cfg names, and programs that start Ansible may look
    for callbacks elsewhere. Ansible goes on: nothing is recorded, no node is locked, no audit has a verdict.
  - >-
    Every playbook in C(playbooks) passes here before a node is asked. A playbook of another folder that takes in
    site.yml or audit.yml is refused by these (P(hal_callback_problem#lookup)).
options:
  stage:
    description: When it looks. Callbacks are loaded later than the inventory.
    type: str
    choices: [task]
    default: task
"""


class VarsModule(BaseVarsPlugin):
    """Thin: hal_cluster.audit.active decides."""

    REQUIRES_ENABLED = False
    is_stateless = True

    def __init__(self) -> None:
        super().__init__()
        self.asked = False  # Ansible asks for each task, and callbacks are loaded once

    def get_vars(self, loader: Any, path: str, entities: Any) -> dict[str, Any]:
        """Return nothing. AnsibleError where a playbook of ours runs without a callback that it needs."""
        super().get_vars(loader, path, entities)
        if not self.asked:
            check = bool(context.CLIARGS.get("check"))
            for kind in kinds(context.CLIARGS.get("args") or ()):
                if why := active.run_problem(kind, check=check):
                    raise AnsibleError(why)
            self.asked = True
        return {}


def kinds(words: Any) -> list[str]:
    """Return what those of these words are that name a playbook of ours: kinds of `hal_cluster.audit.active.NEEDED`."""
    ours = PROJECT / "playbooks"
    paths = [Path(word).resolve() for word in ([words] if isinstance(words, str) else words)]
    return [
        active.KINDS.get(str(path.relative_to(ours)), "rollout")
        for path in paths
        if path.is_relative_to(ours) and path.is_file()
    ]
