"""What the roles of a project manage on its nodes: their tasks with the site's variables, nothing of it run."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import (
    filter_loader,
    init_plugin_loader,
    inventory_loader,
    lookup_loader,
    module_loader,
)
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.vars.manager import VariableManager

from hal_cluster.audit import plays
from hal_cluster.audit.recording import Host
from hal_cluster.audit.redeclare import CannotTellError, Static, _play
from hal_cluster.expect.prepare import Preparation
from hal_cluster.expect.templating import CompilingTemplar
from hal_cluster.rollout import refusals
from tests.contract.project import NO_STATE, Finding, roles, text_of

WORD = re.compile(r"\w+")
SECRET = re.compile(r"\bvault_\w+")
# Long enough for every check of a secret, and hexadecimal.
NO_SECRET = "0123456789abcdef" * 8
# Keys that say what is in a file. Some of it shows only in a run, and it does not matter here.
CONTENT = frozenset({"content", "block"})


@dataclass(frozen=True)
class Resource:
    """One thing that a role manages, with the task that does."""

    role: str
    name: str
    declared: Mapping[str, Any]
    path: Path
    line: int
    host: str

    @property
    def kind(self) -> str:
        """Such as file, service, package."""
        return self.name.partition(":")[0]

    @property
    def key(self) -> str:
        """The name without its kind."""
        return self.name.partition(":")[2]

    @property
    def absent(self) -> bool:
        """True for what shall not be there."""
        return self.declared.get("state") == "absent"

    def finding(self, text: str) -> Finding:
        """A finding at the task."""
        return Finding(self.path, self.line, text)


@dataclass(frozen=True)
class Call:
    """One task of a role as it would be called on a host."""

    role: str
    module: str
    arguments: Mapping[str, Any]
    path: Path
    line: int
    host: str


@dataclass
class Declared:
    """What is managed anywhere, once for each role; calls of modules; and tasks of which it does not show."""

    resources: list[Resource] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    undecided: list[tuple[Path, int, str]] = field(default_factory=list)


class _Role(Static):
    """Static, for which things there are and not for what is in them: that may show only in a run."""

    calls: list[Call]
    known: dict[str, Any]

    def _decidable(self, *_: Any, **__: Any) -> None:
        """Try; what cannot be rendered says so."""

    def _written(self, *_: Any) -> bytes | None:
        return None

    def _secret(self, *_: Any) -> bool:
        return False

    def _variables(self, task: Any) -> dict[str, Any]:
        if not self.known:
            self.known = _without_content(super()._variables(task))
        return {**self.known, **_without_content(task.get_vars())}

    def _gather(self, task: Any, one: plays.Known, variables: dict[str, Any], gathered: Host) -> None:
        if one.manages == []:  # it says so itself: a temporary file
            return
        templar = CompilingTemplar(self.play._loader, variables)
        bare = task.copy()
        bare.args = {}
        for name, value in task.args.items():
            with suppress(AnsibleError):  # such as: state, restarted or started as an earlier task found it
                bare.args.update(templar.template(_without_content({name: value})))
        super()._gather(bare, one, variables, gathered)
        for nameless in [name for name in gathered.entries if name.endswith(":")]:
            del gathered.entries[nameless]
            raise CannotTellError("what it manages has no name before")
        place, _, line = one.owner.source.rpartition(":")
        self.calls.append(
            Call(one.owner.role, one.module, bare.args, Path(self.base) / place, int(line), self.host.name)
        )


def _without_content(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: "" if key in CONTENT else _without_content(one) for key, one in value.items()}
    return [_without_content(one) for one in value] if isinstance(value, list) else value


def of_project(root: Path) -> Declared:
    """What the project's roles manage, each on one node of every kind that has it."""
    return _of_project(root, _stamp(root))


@functools.cache
def _of_project(root: Path, _stamped: float) -> Declared:
    found = Declared()
    seen: dict[tuple[str, str], Resource] = {}
    with _site(root) as (loader, inventory, manager):
        for role in roles(root):
            for host in _kinds(root, inventory, role.name):
                try:
                    play = _play(role.name, host.name, manager, loader)
                except AnsibleError as error:
                    found.undecided.append((role, 1, str(error)))
                    break
                one = _Role(play, play.roles[0], host, base=str(root))
                one.calls, one.known = found.calls, {}
                declared = one.declared()
                for resource, entry in declared.entries.items():
                    place, _, line = entry.owner.source.rpartition(":")
                    this = Resource(role.name, resource, dict(entry.declared), root / place, int(line), host.name)
                    # What one kind of node has and another shall not have is managed.
                    if seen.setdefault((role.name, resource), this).absent:
                        seen[role.name, resource] = this
                for undecided in declared.undecided.values():
                    place, _, line = undecided.owner.source.rpartition(":")
                    found.undecided.append((root / place, int(line), undecided.reason))
    found.resources = sorted(seen.values(), key=lambda one: (one.role, one.name))
    found.undecided = sorted(set(found.undecided))
    return found


def render(root: Path, role: str, value: Any) -> Iterator[Any]:
    """A value with the variables of a role, on one node of every kind that has it."""
    with _site(root) as (loader, inventory, manager):
        for host in _kinds(root, inventory, role):
            play = _play(role, host.name, manager, loader)
            task = next(iter(plays.tasks_of(play.roles[0]._task_blocks[0])))
            variables = manager.get_vars(play=play, host=host, task=task)
            yield CompilingTemplar(loader, variables).template(value)


@dataclass(frozen=True)
class Promise:
    """One expectation of a role on one host: its line, whether it applies there, and why nothing is asked."""

    path: Path
    line: int
    name: str
    severity: str
    host: str
    question: Mapping[str, Any] | None
    skipped: bool
    fault: str


@dataclass(frozen=True)
class Refused:
    """A refusal of a role (an assert of tasks/validate.yml) that the site of this project does not pass on a host."""

    path: Path
    line: int
    host: str
    condition: str


def promised(root: Path) -> list[Promise]:
    """Every expectation of every role, on one host of every kind that has the role."""
    return _said(root, _stamp(root))[0]


def refused(root: Path) -> list[Refused]:
    """What roles refuse of the project's own site, as far as it shows without a node."""
    return _said(root, _stamp(root))[1]


@functools.cache
def _said(root: Path, _stamped: float) -> tuple[list[Promise], list[Refused]]:
    promises: list[Promise] = []
    refused: list[Refused] = []
    with _site(root) as (loader, inventory, manager):
        for role in roles(root):
            path = role / "expect.yml"
            entries = loader.load_from_file(str(path)) if path.is_file() else []
            for host in _kinds(root, inventory, role.name):
                with suppress(AnsibleError):  # the rules that ask what it manages say so
                    play = _play(role.name, host.name, manager, loader)
                    tasks = [task for block in play.roles[0]._task_blocks for task in plays.tasks_of(block)]
                    variables = manager.get_vars(play=play, host=host, task=tasks[0])
                    templar = CompilingTemplar(loader, variables)
                    preparation = Preparation(templar, loader, variables, role.name)
                    for entry in entries if isinstance(entries, list) else []:
                        line = entry.ansible_pos[1]
                        for one in preparation.prepare(entry, str(line)):
                            skipped = one.status == "skipped"
                            fault = "" if skipped or one.question else one.reason
                            promises.append(
                                Promise(
                                    path,
                                    line,
                                    str(entry.get("id")),
                                    one.severity,
                                    host.name,
                                    one.question,
                                    skipped,
                                    fault,
                                )
                            )
                    refused += _refusals(refusals.Role(play, play.roles[0]), host)
    return promises, refused


def _refusals(role: refusals.Role, host: Any) -> Iterator[Refused]:
    for one in role.asserts(host):
        if one.condition:  # what cannot be worked out here shows only in a run
            place, _, line = one.task.rpartition(":")
            yield Refused(Path(place), int(line), one.host, one.condition)


def _kinds(root: Path, inventory: InventoryManager, role: str) -> list[Any]:
    """One host of each kind that the role can tell apart: by groups that its files name, architecture and networks."""
    group = role if role in inventory.groups else "all"
    words = {word for path in (root / "roles" / role).rglob("*.yml") for word in WORD.findall(text_of(path))}
    alike: dict[tuple[Any, ...], Any] = {}
    for host in inventory.get_hosts(group):
        node = host.vars.get("hal_node") or {}
        groups = sorted({one.name for one in host.get_groups()} & words)
        alike.setdefault((*groups, node.get("arch"), *sorted(node.get("addresses") or ())), host)
    return list(alike.values())


@contextmanager
def _site(root: Path) -> Iterator[tuple[DataLoader, InventoryManager, VariableManager]]:
    if AnsibleCollectionConfig.collection_finder is None:
        init_plugin_loader()
    folders = {
        "filter": filter_loader, "inventory": inventory_loader, "lookup": lookup_loader, "modules": module_loader
    }  # fmt: skip
    for name, plugin_loader in folders.items():
        if (root / "plugins" / name).is_dir():
            plugin_loader.add_directory(str(root / "plugins" / name))
    loader = DataLoader()
    loader.set_basedir(str(root))
    source = root / "inventory" / "hal" / "hal.yml"
    if source.is_file():
        inventory = InventoryManager(loader, sources=[str(source)])
    else:
        inventory = InventoryManager(loader, sources=None, parse=False)
        inventory.add_host("n1")
        inventory.reconcile_inventory()
    manager = VariableManager(loader, inventory)
    # Extra vars, because nothing else may stand in for them.
    manager._extra_vars = {**dict.fromkeys(_secrets(root), NO_SECRET), "hal_state_dir": NO_STATE}
    yield loader, inventory, manager


def _secrets(root: Path) -> set[str]:
    files = [*(root / "roles").rglob("*.yml"), *(root / "inventory" / "hal").rglob("*.yml")]
    return {name for path in files for name in SECRET.findall(text_of(path))}


def _stamp(root: Path) -> float:
    parts = ("roles", "inventory", "plugins", "hal_node", "hal_cluster")
    files = [path for part in parts for path in (root / part).rglob("*") if path.is_file()]
    return max((path.stat().st_mtime for path in files), default=0.0)
