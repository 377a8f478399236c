"""Ansible lookup plugin: what the controller tells a build of an image. Decided in hal_cluster.provision.building."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.plugins.lookup import LookupBase

from hal_cluster.audit.observer import commit_of
from hal_cluster.provision import building
from hal_inventory.errors import HalError
from hal_inventory.settings import PROJECT

DOCUMENTATION = r"""
name: hal_image
author: HAL toolkit
short_description: What a build of an image is told by the controller
description:
  - V(machine) gives C(node) and C(groups) of a machine without a name, which is what all nodes of a profile are.
  - V(problem) gives why nothing can be built, as one line, or an empty text.
  - V(owner) names the run of Ansible that builds; V(abandoned) says whether such a run is over.
  - V(digests) gives keyed digests of secrets, and their key.
  - V(made_from) gives what the manifest says of an image's origin.
options:
  _terms:
    description: V(machine), V(problem), V(owner), V(abandoned), V(digests) or V(made_from).
    required: true
  profile:
    description: For V(machine) and V(problem), the profile in cluster.yml.
    type: str
  name:
    description: For V(problem), what the image is called.
    type: str
  nodes:
    description: For V(machine) and V(problem), the names of its nodes.
    type: list
    elements: str
  builder:
    description: For V(problem), the node that builds.
    type: str
  key:
    description: For V(problem), the key that signs images.
    type: path
  roles:
    description: For V(problem) and V(made_from), entry points by role.
    type: dict
  what:
    description: For V(owner), what is built.
    type: str
  owner:
    description: For V(abandoned), what V(owner) gave.
    type: str
  secrets:
    description: For V(digests), secrets by name.
    type: dict
  lock_file:
    description: For V(made_from), the lock file of the packages.
    type: path
  base:
    description: For V(made_from), the base that the root began with.
    type: path
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_image', 'machine', profile='ac922', nodes=lookup('hal', 'nodes', where='ac922')).groups }}"
"""

RETURN = r"""
_raw:
  description: A mapping, a text or a truth value.
  type: list
  elements: raw
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.provision.building."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return what is asked for as one value."""
        try:
            if terms == ["owner"]:
                return [building.owner(kwargs["what"])]
            if terms == ["abandoned"]:
                return [building.abandoned(kwargs["owner"])]
            if terms == ["digests"]:
                return [building.digests(kwargs["secrets"])]
            if terms == ["made_from"]:
                paths = [Path(kwargs[name]) if kwargs.get(name) else None for name in ("lock_file", "base")]
                return [building.made_from(commit_of(str(PROJECT)), paths[0], kwargs["roles"], paths[1])]
            if terms not in (["machine"], ["problem"]):
                raise AnsibleError(f"lookup hal_image: {terms} is not what it knows; ansible-doc -t lookup hal_image")
            if not (hosts := (variables or {}).get("hostvars")):
                raise AnsibleUndefinedVariable("lookup hal_image: there are no hosts; it is asked in a play")
            nodes = {name: hosts[name]["hal_node"] for name in kwargs["nodes"]}
            groups = {name: hosts[name]["group_names"] for name in nodes}
            machine = building.machine(kwargs["profile"], nodes, groups)
            if terms == ["machine"]:
                return [{"node": dict(machine.node), "groups": list(machine.groups)}]
            builder = hosts[kwargs["builder"]]["hal_node"]
            roles = PROJECT / "roles"
            key, parts = Path(kwargs["key"]), kwargs["roles"]
            return [building.problem(kwargs["profile"], kwargs["name"], machine, builder, key, parts, roles)]
        except HalError as error:
            if terms == ["problem"]:
                return [str(error)]
            raise AnsibleError(f"lookup hal_image: {error}") from None
