"""What --check leaves open: steps that a run would reach after a change, and that a check cannot try.

A check makes nothing, so it leaves out the steps that need what is not there yet: a unit of a package that is not
installed, a file that no earlier step has written. They are counted, or "0 changed" would look like "nothing follows".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.playbook.play import Play

from hal_cluster.audit import inputs
from hal_cluster.audit.resources import module_name
from hal_cluster.expect.templating import CompilingTemplar
from hal_cluster.rollout.refusals import holds
from hal_inventory.ranges import fold

READING = frozenset({"hal_expect", "ansible.builtin.assert", "ansible.builtin.debug", "ansible.builtin.set_fact"})
"""Modules that change no node, whatever their arguments are."""


class Foretold:
    """Hears how tasks of a check end, and says which steps were not tried."""

    def __init__(self) -> None:
        self._play: Play | None = None
        self._changing: set[tuple[str, str]] = set()
        self._unknown: dict[str, set[str]] = {}
        self._open: dict[str, dict[str, set[str]]] = {}

    def begins(self, play: Play) -> None:
        """A play begins."""
        self._play = play

    def changes(self, task: Any, host: str) -> None:
        """A task would change a node: what is left out after it in its role depends on that."""
        self._changing.add((_role(task), host))

    def leaves_out(self, task: Any, host: Any, said: Mapping[str, Any]) -> None:
        """A task, or one item of its loop, was left out on a host."""
        name = host.get_name()
        if (_role(task), name) not in self._changing or not self._follows(task, host, said):
            return
        if task.register:
            self._unknown.setdefault(name, set()).add(task.register)
        if module_name(task.action) not in READING and list(task.changed_when) != [False]:
            self._open.setdefault(_role(task), {}).setdefault(task.get_path(), set()).add(name)

    def lines(self) -> list[str]:
        """Return what was left open, by role; no lines if that is nothing."""
        if not self._open:
            return []
        widest = max(map(len, self._open))
        made = ["Will follow, but cannot be predicted: these steps need what a check leaves out."]
        for role, steps in self._open.items():
            nodes = fold(sorted(set().union(*steps.values())))
            made.append(f"  {role:{widest}}  {len(steps):3} {'step ' if len(steps) == 1 else 'steps'} on {nodes}")
        return made

    def _follows(self, task: Any, host: Any, said: Mapping[str, Any]) -> bool:
        """Return whether a run might reach a task that the check has left out."""
        if "false_condition" not in said and "censored" not in said:
            return True  # its module cannot be tried
        if self._play is None:
            return False
        values = self._play._variable_manager.get_vars(play=self._play, host=host, task=task)
        item = {said["ansible_loop_var"]: said.get(said["ansible_loop_var"])} if said.get("ansible_loop_var") else {}
        variables = {**values, **item, "ansible_check_mode": False}
        unknown = self._unknown.get(host.get_name(), set())
        if unknown & inputs.Variables(variables).reach(inputs.words("\n".join(map(str, task.when)))):
            return True
        return _all_hold(task.when, self._play, variables)


def _all_hold(conditions: Sequence[Any], play: Any, variables: dict[str, Any]) -> bool:
    try:
        return holds(conditions, CompilingTemplar(play._loader, variables), variables)
    except Exception:  # a template can raise anything
        return True  # it needs what an earlier step has not made


def _role(task: Any) -> str:
    return str(task._role.get_name()) if task._role else "playbook"
