"""Ansible lookup plugin: the packages that lock files of environments name, for a mirror of their channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase

from hal_cluster.environments.mirrored import mirrored

DOCUMENTATION = r"""
name: hal_channels
author: HAL toolkit
short_description: The packages that lock files of environments name
description:
  - Returns what M(hal_channel_mirror) is given, and a line for each fault of the lock files.
options:
  _terms:
    description: Lock files, at the controller.
    required: true
  places:
    description: Addresses by alias, for channels that are read somewhere else than at their own.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_channels', mirror_channel_locks).packages | length }}"
"""

RETURN = r"""
_raw:
  description: V(problems) (lines for people) and V(packages) (channel, subdir, file, url, size, sha256), sorted.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """Thin: hal_cluster.environments reads and checks."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one mapping for all lock files."""
        paths = [Path(str(path)) for term in terms for path in (term if isinstance(term, list) else [term])]
        self.set_options(var_options=variables, direct=kwargs)
        return [mirrored(paths, self.get_option("places"))]
