"""How Ansible's filters ask the rules of roles."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ansible.errors import AnsibleFilterError

from hal_inventory.errors import HalError

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def worded(rule: Callable[_Asked, _Answer]) -> Callable[_Asked, _Answer]:
    """Return the rule as a filter: its error becomes an AnsibleFilterError of the same words."""

    @wraps(rule)
    def ask(*arguments: _Asked.args, **named: _Asked.kwargs) -> _Answer:
        try:
            return rule(*arguments, **named)
        except HalError as error:
            raise AnsibleFilterError(str(error)) from None

    return ask
