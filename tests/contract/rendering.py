"""Render what roles write, for hosts of the real model and as a rollout would, without contacting a node.

Ansible's settings are those of a process, so each inventory has one of its own: `python -m tests.contract.rendering`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.contract import project

# The real site, and the overlay that the virtual one puts on it.
REAL = "HAL"
OTHERWISE = "HAL with other values"
INVENTORIES = {
    REAL: ("inventory/hal/hal.yml",),
    "the virtual HAL": ("inventory/virtual/hal.yml",),
}
SITES = tuple(INVENTORIES)
SECRET = re.compile(r"\bvault_\w+")


@dataclass(frozen=True)
class Rendered:
    """A text as one host gets it, or why there is none: of a template, or of the task at `line` of a file of tasks."""

    path: str
    line: int
    site: str
    host: str
    destination: str = ""
    text: str = ""
    fault: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    given: str = ""


@functools.cache
def rendered(root: Path, variables: tuple[str, ...] = (), sites: tuple[str, ...] = SITES) -> tuple[Rendered, ...]:
    """Return all templates of roles, and the texts that stand in tasks, for one host of each kind that has the role.

    `variables` are worked out beside them. Of `OTHERWISE`, for the hosts and values of tests/contract/otherwise.
    """
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(project.PROJECT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(root / "roles"),
        "PYTHONPATH": str(project.PROJECT),
    }
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.contract.rendering", json.dumps([str(root), site, variables])],
            cwd=project.PROJECT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for site in sites
    ]
    found: list[Rendered] = []
    for process in running:
        output, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"nothing was rendered: {errors[-2000:]}")
        found += [Rendered(**entry) for entry in json.loads(output)]
    return tuple(found)


def templates(root: Path) -> list[Path]:
    """Every template of every role."""
    return sorted(path for path in (root / "roles").glob("*/templates/**/*") if path.is_file())


def every_branch(text: str, unknown: str) -> str:
    """The text of a template with all its branches and without its expressions: what rendering may leave out."""
    text = re.sub(r"\{#.*?#\}", "", text, flags=re.S)
    text = re.sub(r"\{\{.*?\}\}", unknown, text, flags=re.S)
    # As Ansible trims: a statement takes the end of its line with it.
    return re.sub(r"\{%.*?%\}\n?", "", text, flags=re.S)


@dataclass(frozen=True)
class _Source:
    """A text with expressions, where it goes if that is said, and the task whose variables it has.

    `items`: an expression of a list, for each `item` of which there is one such text.
    """

    path: Path
    line: int
    text: str
    destination: str = ""
    task: project.Task | None = None
    items: str = ""


def _sources(role: Path) -> Iterator[_Source]:
    """Templates, texts in tasks, and files listed in variables: {path: ..., content: ...}."""
    tasks = [task for task in project.role_tasks(role) if isinstance(task.arguments, dict)]
    ours = [
        (task, one)
        for task in tasks
        if task.short == "hal_files" and isinstance(task.arguments.get("files"), list)
        for one in task.arguments["files"]
    ]
    for path in sorted(path for path in (role / "templates").rglob("*") if path.is_file()):
        writers = [
            (task, task.arguments.get("dest", ""))
            for task in tasks
            if task.short == "template" and _named(task) == path.name
        ]
        writers += [(task, one.get("path", "")) for task, one in ours if f"'{path.name}'" in str(one.get("content"))]
        for task, destination in writers:
            yield _Source(path, 1, project.text_of(path), str(destination), task)
        if not writers:
            yield _Source(path, 1, project.text_of(path))
    for task in tasks:
        if task.short == "copy" and isinstance(task.arguments.get("content"), str):
            yield _Source(task.path, task.line, task.arguments["content"], str(task.arguments.get("dest", "")), task)
    for task, one in ours:
        if isinstance(one.get("content"), str) and "'ansible.builtin.template'" not in one["content"]:
            yield _Source(task.path, task.line, one["content"], str(one.get("path", "")), task)
    settings = {
        path: project.load(path) for path in sorted([*role.glob("defaults/**/*.yml"), *role.glob("vars/**/*.yml")])
    }
    for task in tasks:
        made = task.short == "hal_files" and re.fullmatch(r"\{\{ (\w+) \}\}", str(task.arguments.get("files")))
        # What is listed stands in variables as it is; a filter's list does not.
        if made and any(re.search(r"\| hal_\w+_files\b", str((one or {}).get(made[1]))) for one in settings.values()):
            yield _Source(task.path, task.line, "{{ item.content }}", "{{ item.path }}", task, str(made[0]))
    for path, setting in settings.items():
        for one in _mappings(setting):
            content = one.get("content")
            if isinstance(content, str) and isinstance(one.get("path"), str) and "template" not in content:
                yield _Source(path, one.line, content, one["path"])


def _mappings(value: Any) -> Iterator[project.Map]:
    if isinstance(value, project.Map):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(one)


def _named(task: project.Task) -> str:
    return Path(str(task.arguments.get("src"))).name


class _Site:
    """One inventory, loaded by Ansible itself."""

    def __init__(self, root: Path, name: str) -> None:
        # Only in the process that renders: importing Ansible reads its configuration.
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.plugins.loader import init_plugin_loader
        from ansible.vars.manager import VariableManager

        init_plugin_loader([])
        self.root = root
        self.name = name
        self.loader = DataLoader()
        self.loader.set_basedir(str(root / "playbooks"))
        self.sources = [str(project.PROJECT / source) for source in INVENTORIES.get(name, INVENTORIES[REAL])]
        self.inventory = InventoryManager(loader=self.loader, sources=self.sources)
        self.manager = VariableManager(loader=self.loader, inventory=self.inventory)
        self.known: dict[str, dict[str, Any]] = {}
        # Any text does for a secret here. None is read, and none is made.
        self.secrets = dict.fromkeys(self._secrets(), "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 4)
        if name in (REAL, OTHERWISE):  # whatever keys this controller has
            self.secrets["hal_state_dir"] = project.NO_STATE

    def render(self, role: Path, variables: list[str]) -> Iterator[Rendered]:
        """Everything that a role writes, for one host of each kind that has it."""
        from hal_cluster.audit.templating import QuickTemplar
        from hal_cluster.expect.roles import layers

        sources = list(_sources(role))
        own = layers(str(role), self.loader)
        for host, given in self._circumstances(role) if sources else ():
            known = own.around(self._variables(host), {}, {**self.secrets, **given})
            templar = QuickTemplar(loader=self.loader, variables=known)
            templar.environment.loader.searchpath = [str(role / "templates"), str(role)]
            for source in sources:
                for more in _uses(templar, source, known):
                    one = self._one(templar, source, str(host.name), {**known, **more}, variables)
                    yield replace(one, given=json.dumps(given)) if given else one

    def _circumstances(self, role: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
        if self.name != OTHERWISE:
            yield from ((host, {}) for host in self._hosts(role))
            return
        for one in project.otherwise(role.name):
            first = min(str(host.name) for host in self._hosts(role))
            yield self.inventory.get_host(one.get("host", first)), one["given"]

    def _secrets(self) -> Iterator[str]:
        for folder in (self.root / "roles", project.PROJECT / "inventory"):
            for path in folder.rglob("*.yml"):
                yield from SECRET.findall(project.text_of(path))

    def _hosts(self, role: Path) -> Iterator[Any]:
        """One host of each kind in the group of a role: those in the same groups are alike."""
        group = self.inventory.groups.get(role.name)
        kinds: dict[tuple[str, ...], Any] = {}
        for host in sorted(group.get_hosts() if group else (), key=lambda host: str(host.name)):
            kinds.setdefault(tuple(sorted(group.name for group in host.get_groups())), host)
        yield from kinds.values()

    def _variables(self, host: Any) -> dict[str, Any]:
        if host.name not in self.known:
            found = self.manager.get_vars(host=host)
            self.known[host.name] = {**found, "ansible_inventory_sources": self.sources}
        return self.known[host.name]

    def _one(self, templar: Any, source: _Source, host: str, known: dict[str, Any], variables: list[str]) -> Rendered:
        from ansible.template import generate_ansible_template_vars

        here = {**known, **generate_ansible_template_vars(source.path.name, str(source.path))}
        text, fault = _template(
            templar,
            here,
            source.text,
            preserve_trailing_newlines=True,
            escape_backslashes=False,
            overrides={"trim_blocks": True, "lstrip_blocks": False},
            convert_data=False,
        )
        destination, _ = _template(templar, known, source.destination)
        return Rendered(
            path=source.path.relative_to(self.root).as_posix(),
            line=source.line,
            site=self.name,
            host=host,
            destination=str(destination or ""),
            text=str(text or ""),
            fault=fault,
            variables={name: str(_template(templar, known, known[name])[0]) for name in variables if name in known},
        )


def _uses(templar: Any, source: _Source, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables that a task adds, for each item of its loop."""
    task = source.task
    if task is None:
        yield {}
        return
    more: dict[str, Any] = {}
    for body in (*task.outer, task.body):
        more.update(body.get("vars") or {})
    loop = source.items or task.body.get("loop")
    if loop is None:
        yield more
        return
    name = "item" if source.items else (task.keyword("loop_control") or {}).get("loop_var", "item")
    items, _ = _template(templar, {**known, **more}, loop)
    for item in items if isinstance(items, list) else ():
        yield {**more, name: item}


def _template(templar: Any, variables: Mapping[str, Any], value: Any, **options: Any) -> tuple[Any, str]:
    """Return (the value, why there is none)."""
    templar.available_variables = variables
    try:
        return templar.template(value, **options), ""
    except Exception as error:  # a template can raise anything; a host that does not get it may lack what it needs
        return None, " ".join(str(error).split())[:300]


def main(argument: str) -> int:
    """Print what one site's hosts get, as JSON."""
    root, name, variables = json.loads(argument)
    site = _Site(Path(root), name)
    print(json.dumps([asdict(one) for role in project.roles(Path(root)) for one in site.render(role, variables)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
