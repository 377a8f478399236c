"""A small site on this machine whose rollouts are recorded: roles, and a node module that keeps what it is told."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import warm
from tests.unit.hal_cluster.audit.answers import documented as documented  # fixtures
from tests.unit.hal_cluster.audit.answers import healthy as healthy
from tests.unit.hal_cluster.audit.answers import plugins_of_ansible as plugins_of_ansible
from tests.unit.interpreters import LOCAL

PROJECT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(PROJECT))

MODULES = Path(__file__).resolve().parent / "modules"
LONG_SECONDS = 600  # a run that has not ended by then never will


@dataclass(frozen=True)
class Ran:
    """A finished ansible-playbook."""

    status: int
    text: str
    # What each node was told in this run: host -> requests.
    told: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def request(self) -> dict[str, Any]:
        """The only request to the only host."""
        (requests,) = self.told.values()
        (request,) = requests
        return request

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        """Entries of the only request, by resource."""
        return {one["resource"]: one for one in self.request["entries"]}

    @property
    def words(self) -> str:
        """What was printed, wherever it was wrapped."""
        return " ".join(self.text.split())


class Site:
    """Roles and playbooks in a folder whose name has a blank; the node is this machine."""

    def __init__(self, folder: Path, hosts: tuple[str, ...] = ("here",)) -> None:
        self.folder = folder / "a site"
        self.state = self.folder / "state"
        self.node = self.folder / "node"
        self.requests = self.folder / "requests"
        for path in (self.node, self.folder / "library"):
            path.mkdir(parents=True)
        self.config = self.folder / "ansible.cfg"
        # The same for all sites, so that their runs share a process: what is a site's own is found beside its playbook.
        self.config.write_text(
            f"""\
[defaults]
library = {MODULES}:{PROJECT}/plugins/modules
module_utils = {PROJECT}/plugins/module_utils
action_plugins = {PROJECT}/plugins/action
callback_plugins = {PROJECT}/plugins/callback
callbacks_enabled = hal_provenance
force_handlers = True
gathering = explicit
[connection]
pipelining = True
"""
        )
        self.inventory({host: {} for host in hosts})

    def inventory(self, hosts: Mapping[str, Mapping[str, Any]], **variables: Any) -> None:
        """Hosts with their variables, and variables of all."""
        everybody = {
            "ansible_connection": "local",
            "ansible_python_interpreter": LOCAL,
            "hal_audit_dir": str(self.state),
            "node": str(self.node),
            **variables,
        }
        text = yaml.safe_dump({"all": {"hosts": {k: dict(v) for k, v in hosts.items()}, "vars": everybody}}, width=9999)
        (self.folder / "hosts.yml").write_text(text)

    def role(self, name: str = "sample", **files: Any) -> Path:
        """Write roles/<name>/tasks/main.yml from tasks=..., templates/x.j2 from templates__x_j2=..."""
        root = self.folder / "roles" / name
        for file, content in files.items():
            file = file if "__" in file else f"{file}__main"
            path = root / file.replace("__", "/")
            path = (
                path.with_name(path.name.replace("_j2", ".j2"))
                if path.name.endswith("_j2")
                else path.with_suffix(".yml")
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False, width=9999)
            )
        return root

    def vault(self, *words: str) -> str:
        """What ansible-vault prints."""
        program = str(Path(sys.executable).with_name("ansible-vault"))
        done = warm.run([program, *words], self.environment(), LONG_SECONDS, self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def words(self, *arguments: str) -> list[str]:
        """The command that plays play.yml."""
        return [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.yml", "play.yml", *arguments]

    def environment(self) -> dict[str, str]:
        """What it is started with: nothing of the caller's settings."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "HAL_"))}
        own = {"ANSIBLE_CONFIG": str(self.config), "ANSIBLE_NOCOLOR": "1", "STAND_IN_REQUESTS": str(self.requests)}
        return {**clean, **own}

    def run(self, *arguments: str, play: Any = None, roles: Any = ("sample",), **environment: str) -> Ran:
        """Run a playbook with the roles (or the plays given) and return what the nodes were told."""
        plays = play or [{"hosts": "all", "gather_facts": False, "roles": list(roles)}]
        (self.folder / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False, width=9999))
        before = set(self.requests.glob("*.json"))
        done = warm.run(self.words(*arguments), {**self.environment(), **environment}, LONG_SECONDS, self.folder)
        told: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(set(self.requests.glob("*.json")) - before):
            told.setdefault(path.name.split(".")[0], []).append(json.loads(path.read_text()))
        return Ran(done.returncode, done.stdout + done.stderr, told)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with one node, "here"."""
    return Site(tmp_path)


@pytest.fixture
def make_site(tmp_path: Path) -> type[Site]:
    """For sites of another shape: make_site(tmp_path, hosts)."""
    return Site
