"""What a role does with other values than the site's: what it refuses (tasks/validate.yml), manages and promises."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.audit.redeclare import _play
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_cluster.expect.templating import CompilingTemplar
from hal_cluster.rollout.refusals import Role
from tests.contract import declared
from tests.contract.project import PROJECT

Condition = tuple[str, int, str]
"""File, line of the task, and the condition as it is written."""


@dataclass(frozen=True)
class Refusal:
    """One condition of an assert that does not hold, for one item of its loop, and what the assert says then."""

    condition: Condition
    item: str
    says: str


class Site:
    """The project's own site, loaded once; values that are given are above all others, as on a command line."""

    def __init__(self, root: Path) -> None:
        self._loader, self._inventory, self._manager = ExitStack().enter_context(declared._site(root))

    def hosts(self, role: str) -> list[str]:
        """Those that have the role."""
        group = role if role in self._inventory.groups else "all"
        return sorted(str(host.name) for host in self._inventory.get_hosts(group))

    def conditions(self, role: str) -> set[Condition]:
        """All that a role asks for in tasks/validate.yml."""
        asks = [
            task for task in self._of(role, self.hosts(role)[0]).tasks if task.action.rpartition(".")[2] == "assert"
        ]
        return {one for task in asks for one in _conditions(task)}

    def refusals(self, role: str, host: str, given: Mapping[str, Any]) -> list[Refusal]:
        """What does not hold on a host when these variables have these values."""
        said = self._of(role, host).asserts(self._inventory.get_host(host), given)
        return [Refusal((*_place(one.task), one.condition), one.item, one.text) for one in said if one.refused]

    def promises(self, role: str, host: str, given: Mapping[str, Any]) -> list[Prepared]:
        """What each entry of a role's expect.yml asks for on a host with these values, or why it cannot be asked."""
        variables = self._variables(role, host)
        path = PROJECT / "roles" / role / "expect.yml"
        entries = self._loader.load_from_file(str(path)) if path.is_file() else []
        known = {**variables, **given}
        preparation = Preparation(CompilingTemplar(self._loader, known), self._loader, known, role)
        return [one for entry in entries for one in preparation.prepare(entry, str(entry.ansible_pos[1]))]

    def managed(self, role: str, host: str, given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """What a role manages on a host with these values, and what is declared of each."""

        class Given(declared._Role):
            def _variables(self, task: Any) -> dict[str, Any]:
                return {**super()._variables(task), **given}

        play = _play(role, host, self._manager, self._loader)
        one = Given(play, play.roles[0], self._inventory.get_host(host), base=str(PROJECT))
        one.calls, one.known = [], {}
        return {name: entry.declared for name, entry in one.declared().entries.items()}

    def unread(self, role: str, names: Iterable[str]) -> list[str]:
        """Those of these variables that no file of a role names: a misspelt one changes nothing, and proves nothing."""
        files = [path for path in (PROJECT / "roles" / role).rglob("*") if path.suffix in {".yml", ".j2"}]
        words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in files)))
        return sorted(set(names) - words)

    @functools.cache  # noqa: B019  lives as long as the tests
    def _of(self, role: str, host: str) -> Role:
        play = _play(role, host, self._manager, self._loader)
        return Role(play, play.roles[0])

    @functools.cache  # noqa: B019  lives as long as the tests
    def _variables(self, role: str, host: str) -> dict[str, Any]:
        asked = self._of(role, host)
        found: dict[str, Any] = self._manager.get_vars(
            play=asked.play, host=self._inventory.get_host(host), task=asked.tasks[0]
        )
        return found


def _place(task: str) -> tuple[str, int]:
    path, _, line = task.rpartition(":")
    return path, int(line)


def _conditions(task: Any) -> Iterator[Condition]:
    that = task.args["that"]
    for condition in that if isinstance(that, list) else [that]:
        yield (*_place(task.get_path()), str(condition))
