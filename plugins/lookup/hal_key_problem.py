"""Ansible lookup plugin: why a key that a node shows is not its own. Decided in hal_cluster.certificates.node_keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.certificates.node_keys import problem
from hal_inventory.errors import HalError

DOCUMENTATION = r"""
name: hal_key_problem
author: HAL toolkit
short_description: Why a key that a node shows is not its own
description:
  - Says why the controller may not keep and sign what a node shows as its public key. It is not an ed25519 key, or
    it is somebody else's, who would be revoked with the node. The key is in no message.
options:
  _terms:
    description: What the node shows, as "ssh-ed25519 BASE64".
    required: true
  authority:
    description: The folder of the authorities, at the controller.
    type: str
    required: true
  of:
    description: The folder in it that keeps such keys.
    type: str
    choices: [hosts, backup]
    required: true
  node:
    description: Who shows it.
    type: str
    required: true
  allowed:
    description: Text with keys that open accounts without a certificate.
    type: str
    default: ""
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_key_problem', shown, authority=hal_state_dir ~ '/ca', of='hosts', node=inventory_hostname) }}"
"""

RETURN = r"""
_raw:
  description: For each key one line, empty for a key that is the node's own.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.certificates.node_keys."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return a line for each key."""
        self.set_options(var_options=variables, direct=kwargs)
        authority, of, node, allowed = map(self.get_option, ("authority", "of", "node", "allowed"))
        try:
            return [problem(Path(authority), of, node, str(term), allowed) for term in terms]
        except HalError as error:
            raise AnsibleError(f"lookup hal_key_problem: {error}") from None
