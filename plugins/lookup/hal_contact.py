"""How a node is reached before it is taken over: what the command line says, and what the administrator's ssh knows."""

from __future__ import annotations

from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_inventory import contact

DOCUMENTATION = r"""
name: hal_contact
author: HAL toolkit
short_description: How a node is reached that this project never touched
description:
  - The inventory says how nodes are reached that know the site. Its variables count for more than C(-u) and
    C(--private-key), so a play that looks at other nodes asks here.
  - V(user) and V(key) are what C(-u) and C(--private-key) say, or empty; then ssh decides.
  - V(options) are options of ssh, for the node that O(names) names. The host key is always checked.
options:
  _terms:
    description: One of V(user), V(key) and V(options).
    required: true
  names:
    description: With V(options), names and addresses under which a host key of the node may be known.
    type: list
    elements: str
  known_hosts:
    description: With V(options), the only file of host keys that counts. Without it those of the administrator's ssh.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Look at nodes as their administrator does today
  hosts: all
  vars:
    ansible_user: "{{ lookup('hal_contact', 'user') }}"
"""

RETURN = r"""
_raw:
  description: One text.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """Thin: hal_inventory.contact decides."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Return the text as a list of one; AnsibleError for another term."""
        if terms == ["user"] and not kwargs:
            return [str(context.CLIARGS.get("remote_user") or "")]
        if terms == ["key"] and not kwargs:
            return [str(context.CLIARGS.get("private_key_file") or "")]
        if terms == ["options"] and kwargs.get("names") and set(kwargs) <= {"names", "known_hosts"}:
            names = [str(name) for name in kwargs["names"]]
            return [contact.options(names, str(kwargs.get("known_hosts") or ""))]
        raise AnsibleError("lookup hal_contact: user, key, or options with names, is all it knows")
