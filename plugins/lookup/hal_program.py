"""Ansible lookup plugin: a program of a role, with what it imports. Decided in hal_cluster.programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster import programs

DOCUMENTATION = r"""
name: hal_program
short_description: A program of a role and what it imports, as hal_files writes it
description:
  - Reads which modules a program imports, of its role's files and of C(hal_node), and gives the text of all of them.
options:
  _terms:
    description: Python programs among the role's files, or their absolute paths.
    required: true
  folder:
    description: Where they are on nodes.
    type: path
    required: true
  directories:
    description: Give the folders below O(folder) instead.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Install the program
  hal_files:
    directories: "{{ query('hal_program', 'hal_dataset.py', folder='/usr/libexec/hal-dataset', directories=true) }}"
    files: "{{ query('hal_program', 'hal_dataset.py', folder='/usr/libexec/hal-dataset') }}"
"""

RETURN = r"""
_raw:
  description:
    - Files with C(path) and C(content), each after what it imports. So a program comes last. Somebody may start it
      while they are written.
    - Or folders with C(path) and C(mode), outer ones first.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.programs."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[dict[str, str]]:
        """Return the files, or the folders; raise AnsibleError for a program that is not there or is not Python."""
        self.set_options(var_options=variables, direct=kwargs)
        folder = self.get_option("folder")
        texts: dict[str, str] = {}
        for term in terms:
            path = self.find_file_in_search_path(variables, "files", term)
            if not path:
                raise AnsibleError(f"lookup hal_program: there is no {term} among the role's files")
            try:
                texts.update(programs.files(Path(path)))
            except (OSError, SyntaxError, ImportError) as error:
                raise AnsibleError(f"lookup hal_program: {term}: {error}") from error
        if self.get_option("directories"):
            return [{"path": f"{folder}/{name}", "mode": "0755"} for name in programs.folders(texts)]
        return [{"path": f"{folder}/{name}", "content": text} for name, text in texts.items()]
