"""Ansible lookup plugin: what is wrong with a site's group_vars and host_vars. Decided in hal_inventory.variables."""

from __future__ import annotations

from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_inventory.errors import HalError
from hal_inventory.settings import PROJECT
from hal_inventory.sources import last_source
from hal_inventory.variable_names import known_names
from hal_inventory.variables import check_source

DOCUMENTATION = r"""
name: hal_variable_problems
author: HAL toolkit
short_description: What is wrong with a site's group_vars and host_vars
description:
  - >-
    Ansible takes a variable that nobody reads without a word. This names those beside the inventory sources of plugin
    P(hal#inventory) and beside their bases, and what else C(hal-inventory validate) refuses of these files.
  - Only files are read. One that is vaulted as a whole is passed over, and no password is asked for.
options:
  _terms:
    description: None is taken.
    required: false
"""

EXAMPLES = r"""
- ansible.builtin.assert:
    that: q('hal_variable_problems') | length == 0
    fail_msg: "{{ q('hal_variable_problems') | join('\n') }}"
"""

RETURN = r"""
_raw:
  description: One line for each fault, with file, line and name.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """Thin: asks hal_inventory.variables of each source."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return a line for each fault."""
        named = (variables or {}).get("ansible_inventory_sources")
        named = named or context.CLIARGS.get("inventory") or constants.DEFAULT_HOST_LIST
        sources = [path for name in named if (path := last_source([name]))]
        known = known_names(PROJECT)
        try:
            findings = {finding for path in sources for finding in check_source(path, known).findings}
        except HalError as error:
            raise AnsibleError(f"lookup hal_variable_problems: {error}") from None
        return [str(finding) for finding in sorted(findings)]
