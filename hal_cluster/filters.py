"""How Ansible's filters ask what the controller decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from ansible.errors import AnsibleFilterError

from hal_inventory.errors import HalError

Function = Callable[..., Any]


def worded(filters: Mapping[str, Function]) -> dict[str, Function]:
    """Return the filters by name. An error of ours in them is an AnsibleFilterError of the same words."""
    return {name: _worded(function) for name, function in filters.items()}


def _worded(function: Function) -> Function:
    @wraps(function)
    def ask(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except HalError as error:
            raise AnsibleFilterError(str(error)) from None

    return ask
