"""Ansible vars plugin: refuse to run our playbooks with another configuration, or on this machine in place of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.plugins.loader import action_loader
from ansible.plugins.vars import BaseVarsPlugin

PROJECT = Path(__file__).resolve().parents[2]

DOCUMENTATION = r"""
name: hal_configured
author: HAL toolkit
short_description: Refuse to run the playbooks with another configuration
description:
  - >-
    Ansible finds ansible.cfg in the working directory or through E(ANSIBLE_CONFIG), and goes on without: the inventory
    is empty then, and it says that a role was not found. This says which configuration is missing.
  - >-
    C(ansible-pull) says C(--connection local) to Ansible, and each node would be the machine that it runs on. With
    that option nodes are still reached through ssh.
  - It is found beside the playbooks, whatever the configuration, and only looks.
options:
  stage:
    description: When it looks.
    type: str
    choices: [inventory]
    default: inventory
"""


class VarsModule(BaseVarsPlugin):
    """Our modules are found, or the run ends."""

    REQUIRES_ENABLED = False
    is_stateless = True

    def get_vars(self, loader: Any, path: str, entities: Any) -> dict[str, Any]:
        """Return how nodes are reached, where the command line says otherwise. AnsibleError without our plugins."""
        super().get_vars(loader, path, entities)
        if not action_loader.has_plugin("hal_audit"):
            used = f"{constants.CONFIG_FILE} is in use" if constants.CONFIG_FILE else "no ansible.cfg is in use"
            raise AnsibleError(
                f"{used}, so the plugins of {PROJECT} are not found: cd there, or set"
                f" ANSIBLE_CONFIG={PROJECT / 'ansible.cfg'}"
            )
        return {"ansible_connection": "ssh"} if context.CLIARGS.get("connection") == "local" else {}
