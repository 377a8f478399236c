"""Ansible lookup plugin: declared environments with their lock files, read and checked by hal_cluster.environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.environments.declared import environments

DOCUMENTATION = r"""
name: hal_environments
author: HAL toolkit
short_description: Declared environments with their lock files
description:
  - Returns what M(hal_environment) installs, and a line for each fault of the declaration and of its lock files.
    All that is wrong is in the lines, so that a role can say it before any node is touched.
options:
  _terms:
    description: The declared environments, one list (docs/environments.md).
    required: true
  name:
    description: Name of entries that have none, such as V(wmlce).
    type: str
    required: true
  root:
    description: Folder that they are installed below.
    type: str
    required: true
  directory:
    description: Folder of the lock files, at the controller.
    type: str
    required: true
  platform:
    description: conda's name of the nodes' machine, such as V(linux-ppc64le).
    type: str
    required: true
  variable:
    description: What the list is called, for messages.
    type: str
    default: environments
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_environments', wmlce_environments, name='wmlce', root=environments_root,
                    directory=environments_lock_dir, platform=environments_platform).problems }}"
"""

RETURN = r"""
_raw:
  description: >-
    V(problems) (lines for people) and V(environments) (id, at, name, version, link, prefix, digest, python, packages;
    empty when there are problems; without those that are retired).
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """Thin: hal_cluster.environments reads and checks."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one mapping."""
        self.set_options(var_options=variables, direct=kwargs)
        if len(terms) != 1 or not isinstance(terms[0], list):
            raise AnsibleError("lookup hal_environments: give one list of environments")
        words = {name: str(self.get_option(name)) for name in ("name", "root", "platform", "variable")}
        return [environments(terms[0], directory=Path(str(self.get_option("directory"))), **words)]
