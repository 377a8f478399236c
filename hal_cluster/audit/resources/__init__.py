"""Which resources a task manages, from its module, its arguments and its result.

One line for each module in `table`; how arguments are read is in the files beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import Call, Resource, Units, content_id
from hal_cluster.audit.resources.table import COMMANDS, MANAGING, PACKAGE_MODULES, READ_ONLY, UNITS, module_name

__all__ = [
    "COMMANDS",
    "MANAGING",
    "PACKAGE_MODULES",
    "READ_ONLY",
    "UNITS",
    "Call",
    "Resource",
    "Units",
    "content_id",
    "identities",
    "module_name",
    "units_of",
]


def identities(
    module: str, arguments: Mapping[str, Any], result: Mapping[str, Any], *, secret: bool = False, task: str = ""
) -> list[Resource]:
    """Return the resources that a call of a module manages; none for a module that manages nothing.

    `arguments` as the module got them, `result` as callbacks see it. Of a `secret` call only names, owners and modes
    are taken; `task` then makes the identity of what has no name but its content.
    """
    reader = MANAGING.get(module_name(module))
    if reader is None:
        return []
    own = {name: value for name, value in arguments.items() if not str(name).startswith("_ansible_")}
    resources = reader(Call(own, {} if secret else result, secret=secret, task=task))
    return [resource.without_content() if resource.secret or secret else resource for resource in resources]


def units_of(module: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> Units:
    """Return the units that a call of a module made read their files again, and which files a unit reads."""
    reader = UNITS.get(module_name(module))
    return reader(Call(arguments, result)) if reader else Units()
