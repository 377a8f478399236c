"""What the roles of a site install, and from where: package tasks and repositories, templated for every node.

Ansible itself reads inventory, group variables and role defaults, so a name counts as the node would get it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hal_cluster.packages.errors import HalPackagesError
from hal_inventory.ranges import fold

PROJECT = Path(__file__).resolve().parents[2]
os.environ.setdefault("ANSIBLE_CONFIG", str(PROJECT / "ansible.cfg"))

from ansible.errors import AnsibleError  # noqa: E402  reads ansible.cfg when it is imported
from ansible.inventory.manager import InventoryManager  # noqa: E402
from ansible.parsing.dataloader import DataLoader  # noqa: E402
from ansible.plugins.loader import init_plugin_loader  # noqa: E402
from ansible.vars.manager import VariableManager  # noqa: E402

from hal_cluster.expect.roles import layers, templar_in  # noqa: E402
from hal_cluster.expect.templating import CompilingTemplar  # noqa: E402

PACKAGE_MODULES = frozenset({"ansible.builtin.package", "ansible.builtin.yum", "ansible.builtin.dnf"})
IMAGES = "playbooks/image.yml"
IMAGE_LISTS = ("image_packages", "image_kernel_packages")
GONE = frozenset({"absent", "removed"})
BLOCKS = ("block", "rescue", "always")


@dataclass(frozen=True, order=True)
class Origin:
    """The task that installs a package."""

    file: str
    line: int
    role: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, order=True)
class Repository:
    """A package repository as a node has it."""

    id: str
    url: str
    signed_by: tuple[tuple[str, str], ...]  # key and fingerprint
    exclude: tuple[str, ...]


@dataclass
class Nodes:
    """Nodes that get the same packages from the same repositories."""

    arch: str
    repositories: tuple[Repository, ...]
    names: Mapping[str, tuple[Origin, ...]]
    members: list[str] = field(default_factory=list)

    @property
    def nodeset(self) -> str:
        """The nodes as a range."""
        return fold(self.members)


@dataclass(frozen=True)
class Site:
    """Everything declared, and the lock file that the site's mirror is made from (None without a mirror)."""

    nodes: tuple[Nodes, ...]
    lock_file: Path | None


@dataclass(frozen=True)
class _Task:
    role: str
    origin: Origin
    name: Any
    state: Any
    loop: Any
    when: tuple[Any, ...]
    own: Mapping[str, Any]


def declared(sources: Sequence[str], project: Path = PROJECT) -> Site:
    """Return what the roles below `project` declare for an inventory; HalPackagesError says what cannot be told."""
    init_plugin_loader([])
    loader = DataLoader()
    loader.set_basedir(str(project))
    try:
        inventory = InventoryManager(loader=loader, sources=list(sources))
        variables = VariableManager(loader=loader, inventory=inventory)
        roles = {path.parent.parent.name: path.parent.parent for path in sorted(project.glob("roles/*/tasks/main.yml"))}
        tasks = {name: list(_tasks(name, path, loader, project)) for name, path in roles.items()}
        alike: dict[Any, Nodes] = {}
        lock_file = None
        for host in sorted(inventory.get_hosts(), key=lambda host: str(host.name)):
            outer = variables.get_vars(host=host)
            outer["ansible_inventory_sources"] = list(sources)

            def templar(role: str, own: Mapping[str, Any], outer: Any = outer) -> CompilingTemplar:
                folder = str(roles[role])
                return templar_in(folder, loader, layers(folder, loader).around(outer, own, {}))

            groups = set(outer["group_names"])
            if "repositories" not in groups:
                continue
            nodes = _node([task for name in sorted(groups & set(tasks)) for task in tasks[name]], templar)
            nodes = replace(nodes, names=_with_images(nodes.names, templar("repositories", {})))
            key = (nodes.arch, nodes.repositories, tuple(sorted(nodes.names.items())))
            alike.setdefault(key, nodes).members.append(str(host.name))
            if "mirror" in groups and "mirror" in roles:
                lock_file = Path(templar("mirror", {}).template("{{ mirror_lock_file }}"))
    except AnsibleError as error:
        raise HalPackagesError(str(error)) from None
    if not alike:
        raise HalPackagesError(f"{', '.join(sources)}: no node has the role repositories")
    return Site(tuple(alike.values()), lock_file)


def _node(tasks: Sequence[_Task], templar: Any) -> Nodes:
    context = templar("repositories", {})
    used = context.template("{{ __repositories_used }}")
    keys = context.template("{{ repositories_keys }}")
    repositories = []
    for entry in used:
        value = entry["value"]
        exclude = (value.get("options") or {}).get("exclude", [])
        signers = tuple(
            (str(key), str(keys.get(key, {}).get("fingerprint", "")).replace(" ", "").upper())
            for key in value.get("signed_by", [])
        )
        patterns = tuple(exclude.replace(",", " ").split() if isinstance(exclude, str) else map(str, exclude))
        repositories.append(Repository(str(entry["key"]), str(value["baseurl"]), signers, patterns))
    names: dict[str, set[Origin]] = {}
    for task in tasks:
        for name in _names(task, templar(task.role, task.own)):
            names.setdefault(name, set()).add(task.origin)
    return Nodes(
        arch=str(context.template("{{ repositories_arch }}")),
        repositories=tuple(sorted(repositories)),
        names={name: tuple(sorted(origins)) for name, origins in sorted(names.items())},
    )


def _with_images(names: Mapping[str, tuple[Origin, ...]], context: Any) -> Mapping[str, tuple[Origin, ...]]:
    """Return the names with those of an image for such a node: it is installed from the same mirror."""
    by_name = {name: set(origins) for name, origins in names.items()}
    for variable in IMAGE_LISTS:
        if variable not in context.available_variables:
            continue
        try:
            value = context.template(context.available_variables[variable])
        except AnsibleError as error:
            raise HalPackagesError(f"{variable} cannot be told: {error}") from None
        for name in value:
            by_name.setdefault(str(name), set()).add(Origin(IMAGES, 1, "image"))
    return {name: tuple(sorted(origins)) for name, origins in sorted(by_name.items())}


def _names(task: _Task, context: Any) -> Iterator[str]:
    """Give the names that a task installs on a node, one for each item of its loop."""
    try:
        items = [None] if task.loop is None else context.template(task.loop)
    except AnsibleError as error:
        raise HalPackagesError(f"{task.origin}: loop cannot be told before the role runs: {error}") from None
    base = context.available_variables
    for item in items:
        context.available_variables = {**base, "item": item}
        if not all(_holds(condition, context) for condition in task.when):
            continue
        try:
            if str(context.template(task.state)) in GONE:
                continue
            value = context.template(task.name)
        except AnsibleError as error:
            raise HalPackagesError(f"{task.origin}: name cannot be told before the role runs: {error}") from None
        for name in value.split(",") if isinstance(value, str) else value:
            if str(name).strip():
                yield str(name).strip()


def _holds(condition: Any, context: Any) -> bool:
    """Tell whether a condition lets the task run; one on what another task found does, since it may."""
    if isinstance(condition, bool):
        return condition
    try:
        return bool(context.template(f"{{{{ ({condition}) | bool }}}}"))
    except AnsibleError:
        return True


def _tasks(role: str, path: Path, loader: DataLoader, project: Path) -> Iterator[_Task]:
    for file in sorted(path.glob("tasks/**/*.yml")):
        yield from _within(role, loader.load_from_file(str(file)) or [], file.relative_to(project), (), {})


def _within(role: str, entries: Any, file: Path, outer: tuple[Any, ...], own: Mapping[str, Any]) -> Iterator[_Task]:
    for entry in entries:
        when = entry.get("when", [])
        conditions = (*outer, *(when if isinstance(when, list) else [when]))
        given = {**own, **(entry.get("vars") or {})}
        for part in BLOCKS:
            yield from _within(role, entry.get(part) or [], file, conditions, given)
        for module in PACKAGE_MODULES & set(entry):
            arguments = entry[module]
            line = int(getattr(entry, "ansible_pos", (None, 0))[1])
            yield _Task(
                role=role,
                origin=Origin(str(file), line, role),
                name=arguments.get("name", arguments.get("pkg", [])),
                state=arguments.get("state", "present"),
                loop=entry.get("loop"),
                when=conditions,
                own=given,
            )
