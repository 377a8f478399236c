"""Ansible lookup plugin: the lock file of a site's packages, read and checked by hal_cluster.packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.packages.lock import load_once
from hal_cluster.packages.mirrored import mirrored
from hal_inventory.errors import HalError

DOCUMENTATION = r"""
name: hal_packages
short_description: The lock file of a site's packages
description:
  - Returns what the mirror is made from, as M(hal_package_mirror) takes it. A lock file that cannot be used is an error
    with file, line and field.
options:
  _terms:
    description: The lock file.
    required: true
  keys:
    description: Signing keys by id, each a mapping of C(source) and C(fingerprint), as C(repositories_keys).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_packages', mirror_lock_file, keys=repositories_keys).unverified }}"
"""

RETURN = r"""
_raw:
  description: >-
    V(digest), V(trees) (repository, arch, url, packages), V(keys) (id, source, fingerprint), V(unverified) (names as
    repository/arch/name), V(sums_sha256) (of the list of checksums that a mirror of it has).
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """Thin: hal_cluster.packages reads and checks."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one mapping for each lock file."""
        try:
            return [mirrored(load_once(Path(str(term))), kwargs.get("keys") or {}) for term in terms]
        except HalError as error:
            raise AnsibleError(f"lookup hal_packages: {error}") from None
