"""Results as Ansible gives them to a callback, of a role that was loaded by Ansible and of which nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play import Play
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.vars.manager import VariableManager

from hal_cluster.audit.observer import Observer
from hal_cluster.audit.plays import tasks_of
from hal_cluster.audit.recording import Host

TASK = "web|roles/web/tasks/main.yml|{}".format


class Playing:
    """A role "web" with the tasks given, played on hosts of which each has its variables."""

    def __init__(
        self,
        folder: Path,
        tasks: list[dict[str, Any]],
        hosts: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        proposing: bool = False,
        **files: Any,
    ) -> None:
        """Load the role; `files` as defaults__main_yml=..."""
        if AnsibleCollectionConfig.collection_finder is None:
            init_plugin_loader()
        self.folder = folder
        for name, content in {"tasks__main_yml": tasks, **files}.items():
            first, _, end = name.replace("__", "/").rpartition("_")
            path = folder / "roles" / "web" / f"{first}.{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False, width=9999)
            path.write_text(text)
        loader = DataLoader()
        loader.set_basedir(str(folder))
        self.inventory = InventoryManager(loader, sources=None, parse=False)
        for name, variables in (hosts or {"n1": {}}).items():
            self.inventory.add_host(name)
            for key, value in {"hal_audit_dir": str(folder / "the state"), **variables}.items():
                if value is not None:
                    self.inventory.get_host(name).set_variable(key, value)
        manager = VariableManager(loader, self.inventory)
        content = {"name": "Play", "hosts": "all", "gather_facts": "no", "roles": ["web"]}
        self.play = Play.load(content, variable_manager=manager, loader=loader)
        self.play.handlers = self.play.compile_roles_handlers() + self.play.handlers  # as a run does
        self.observer = Observer(proposing=proposing)
        self.observer.play_starts(self.play)

    def tasks(self) -> Iterator[Any]:
        """All tasks of the role, handlers included."""
        for block in [*self.play.roles[0]._task_blocks, *self.play.handlers]:
            yield from tasks_of(block)

    def task(self, name: str) -> Any:
        """The task of that name."""
        return next(one for one in self.tasks() if one.name == name)

    def result(self, name: str, outcome: Mapping[str, Any] | None = None, *, host: str = "n1", **fields: Any) -> Any:
        """What a task came to on a host; its arguments as they are written unless others are given."""
        task = self.task(name)
        return SimpleNamespace(
            _host=self.inventory.get_host(host),
            _task=task,
            _task_fields={"args": dict(task.args), **fields},
            _result=dict(outcome or {}),
        )

    def host(self, name: str = "n1") -> Host:
        """What is noted of a host."""
        return self.observer.hosts[name]
