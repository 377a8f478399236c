"""A small site whose nodes are this machine, each with a folder of its own, and rollouts that wait."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.rollout.processes import Here
from tests.unit.hal_cluster.audit.conftest import Site as RecordedSite
from tests.unit.interpreters import LOCAL

MODULES = Path(__file__).resolve().parent / "modules"
LONG_SECONDS = 600  # what has not happened by then never will
WAIT = {
    "name": "Wait",
    "ansible.builtin.shell": {"cmd": "touch '{{ node }}/waits'; until test -e '{{ node }}/go'; do sleep 0.1; done"},
}
WRITE = {"name": "Write it", "ansible.builtin.copy": {"content": "x", "dest": "{{ node }}/{{ inventory_hostname }}"}}


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + LONG_SECONDS
    while not (seen := true()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return seen


class Site(RecordedSite):
    """Nodes by name; `holder(name)`: the file in which a node has who holds it."""

    def __init__(self, folder: Path, hosts: tuple[str, ...] = ("hal01", "hal02")) -> None:
        super().__init__(folder, hosts)
        self.started: list[subprocess.Popen[str]] = []
        text = self.config.read_text().replace("library = ", f"library = {MODULES}:")
        self.config.write_text(
            text.replace("= hal_provenance", "= hal_printable, hal_provenance, hal_rollout, hal_foretold")
        )
        self.nodes({})

    def nodes(self, more: dict[str, dict[str, Any]], hosts: tuple[str, ...] = ("hal01", "hal02")) -> None:
        """Write the inventory; `more`: variables of single nodes."""
        found = {}
        for host in hosts:
            python = self.folder / f"python-{host}"
            python.write_text(f'#!/bin/sh\nSTAND_IN_NODE="{self.folder / host}" exec "{LOCAL}" "$@"\n')
            python.chmod(0o755)
            (self.folder / host).mkdir(exist_ok=True)
            own = {"hal_node": {"name": host}, "ansible_python_interpreter": f"'{python}'", **more.get(host, {})}
            found[host] = own
        self.inventory(found, hal_state_dir=str(self.state))

    def holder(self, host: str) -> Path:
        """The file in which a node keeps who holds it."""
        return self.folder / host / "hal-rollout" / "holder.json"

    def hold(self, node: str, /, **more: Any) -> dict[str, Any]:
        """Have a node say that a rollout of another controller holds it."""
        said = {
            **vars(Here("ctl9", "another machine", "another boot", "pid:[1]")),
            **{
                "run": "r",
                "user": "alice",
                "pid": 4711,
                "start": 1,
                "since": 1795233600,
                "command": "ansible-playbook",
            },
            **more,
        }
        self.holder(node).parent.mkdir(mode=0o700, exist_ok=True)
        self.holder(node).write_text(json.dumps(said))
        return said

    def asked(self, host: str) -> list[str]:
        """What the module hal_rollout was asked on a node until now."""
        return (self.folder / host / "asked").read_text().split()

    @property
    def notes(self) -> list[Path]:
        """What rollouts have noted at the controller."""
        return sorted((self.state / "rollouts").glob("*.json"))

    def begin(self, *arguments: str, tasks: Any = (WAIT, WRITE), **environment: str) -> subprocess.Popen[str]:
        """Start a rollout that waits in its first task, and return when it does."""
        self.role(tasks=list(tasks))
        plays = [{"hosts": "all", "gather_facts": False, "roles": ["sample"]}]
        (self.folder / "play.yml").write_text(yaml.safe_dump(plays))
        own = {**self.environment(), **environment}
        with (self.folder / "log").open("w") as log:
            words = self.words(*arguments)
            begun = subprocess.Popen(words, cwd=self.folder, env=own, stdout=log, stderr=log, text=True)
        self.started.append(begun)
        until(lambda: (self.node / "waits").exists() or begun.poll() is not None, "it does not begin")
        assert begun.poll() is None, self.said
        return begun

    @property
    def said(self) -> str:
        """What the rollout that was begun has printed."""
        return (self.folder / "log").read_text()

    def go(self) -> None:
        """Let it go on."""
        (self.node / "go").touch()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site with two nodes."""
    site = Site(tmp_path)
    yield site
    site.go()
    for begun in site.started:
        begun.kill()
        begun.wait()


def forks(path: Path) -> set[int]:
    """Processes that have a file open."""
    found = set()
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.path.samestat(handle.stat(), path.stat()):
                found.add(int(handle.parts[2]))
        except OSError:
            continue
    return found
