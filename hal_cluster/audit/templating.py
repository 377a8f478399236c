"""A Templar for many templates over the same variables: nothing is compiled twice, no variable is worked out twice.

Ansible's own Templar compiles every text at every use, and works a variable out again wherever it is used. In an audit
variables do not change, and the expectations of one host use some of them hundreds of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible.template import AnsibleEnvironment

from hal_cluster.audit.inputs import Variables, words
from hal_cluster.expect.templating import CompilingTemplar, Environment

# Lookups that evaluate texts which the template itself does not show.
INDIRECT = frozenset({"template", "vars", "varnames"})


class QuickTemplar(CompilingTemplar):
    """Gives what Templar gives, as long as nobody changes the variables or what came out of them."""

    def __init__(self, loader: Any, variables: Mapping[str, Any]) -> None:
        """Results are kept for these `variables`; others may be set for a while."""
        self._available_variables: Mapping[str, Any]
        super().__init__(loader, variables)
        self._base = variables
        self._known = Variables(variables)
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._reached: dict[str, frozenset[str]] = {}
        self._others: frozenset[str] = frozenset()

    @property
    def available_variables(self) -> Mapping[str, Any]:
        """What templates see now."""
        return self._available_variables

    @available_variables.setter
    def available_variables(self, variables: Mapping[str, Any]) -> None:
        if variables is not self._available_variables:
            self._available_variables = variables
            self._others = frozenset(_others(self._base, variables))

    def copy_with_new_env(self, environment_class: Any = AnsibleEnvironment, **options: Any) -> Any:
        """A copy, for the lookup `template`, goes on with what is known."""
        if environment_class is not AnsibleEnvironment or constants.DEFAULT_JINJA2_NATIVE:
            return super().copy_with_new_env(environment_class, **options)
        copy = object.__new__(QuickTemplar)
        copy.__dict__.update(self.__dict__)
        copy.environment = object.__new__(Environment)
        copy.environment.__dict__.update(self.environment.__dict__)
        for name, value in options.items():
            if name == "available_variables":
                copy.available_variables = value
            elif value is not None:
                setattr(copy.environment.loader if name == "searchpath" else copy.environment, name, value)
        # Functions of the environment are bound to a templar: as in Ansible, to the first.
        return copy

    def template(self, variable: Any, *arguments: Any, **options: Any) -> Any:
        """Return the last result, if nothing that it is made of has changed."""
        if not isinstance(variable, str) or arguments or hasattr(variable, "__UNSAFE__"):
            return super().template(variable, *arguments, **options)
        if options.get("overrides") or options.get("static_vars"):
            return super().template(variable, **options)
        if self._others and not self._others.isdisjoint(self._reach(variable)):
            return super().template(variable, **options)
        key = (str(variable), *sorted(options.items()))
        if key not in self._kept:
            self._kept[key] = super().template(variable, **options)
        return self._kept[key]

    def _reach(self, text: str) -> frozenset[str]:
        if text not in self._reached:
            reached = self._known.reach(words(text))
            if INDIRECT & reached:
                reached |= self._others  # nobody knows
            self._reached[text] = frozenset(reached)
        return self._reached[text]


def _others(base: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names whose values are not those of `base`."""
    return [name for name in now if name not in base or not _same(base[name], now[name])] + [
        name for name in base if name not in now
    ]


def _same(value: Any, other: Any) -> bool:
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    try:
        return bool(value == other)
    except Exception:  # what cannot be compared may have changed
        return False
