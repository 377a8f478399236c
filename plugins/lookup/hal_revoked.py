"""Ansible lookup plugin: what was revoked, to ask a node's list. Decided in hal_cluster.certificates.revoked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.certificates.revoked import RevokedHosts, RevokedUsers
from hal_inventory.errors import HalError

DOCUMENTATION = r"""
name: hal_revoked
author: HAL toolkit
short_description: What nodes have to refuse
description:
  - Gives for each line of the register of revoked certificates and keys, C(revoked_users), what C(ssh-keygen -Q) can be
    asked about, with the name of the entry as comment. That is the key, or a worthless certificate with the number.
  - Fails when no list was made since a line was added to the register, and when the register has lost one.
options:
  _terms:
    description: The folder of the authorities, at the controller.
    required: true
  of:
    description: V(hosts) gives the lines of the register of revoked host keys, C(revoked_hosts), for known hosts.
    type: str
    choices: [users, hosts]
    default: users
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_revoked', hal_state_dir ~ '/ca', wantlist=true) | length }} are revoked"
"""

RETURN = r"""
_raw:
  description: Lines of .pub files, or of known hosts.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.certificates.revoked."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return the lines of each folder."""
        self.set_options(var_options=variables, direct=kwargs)
        try:
            if self.get_option("of") == "hosts":
                return [line for folder in terms for line in RevokedHosts(Path(folder)).spread()]
            return [sample for folder in terms for sample in RevokedUsers(Path(folder)).samples()]
        except HalError as error:
            raise AnsibleError(f"lookup hal_revoked: {error}") from None
