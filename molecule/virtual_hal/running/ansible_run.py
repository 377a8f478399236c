"""Run Ansible from Python: a playbook or one module on inventory sources, and what came of it.

Every run has the project's ansible.cfg and no other setting: ANSIBLE_ variables of a calling molecule or shell are not
passed on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import strategy

PROJECT = Path(__file__).resolve().parents[3]

RECAP = re.compile(r"^(\S+) +: (ok=\d+ .*)$", re.MULTILINE)
# Below a failure its message is indented.
TELLING = re.compile(r"TASK|RUNNING HANDLER|changed|failed|fatal|ERROR|PLAY RECAP|  ")
JSON_OUTPUT = {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true"}


@dataclass(frozen=True)
class Run:
    """A finished run: its exit status, which is for the caller to judge, and what it printed."""

    status: int
    stdout: str
    stderr: str = ""

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr

    @property
    def words(self) -> str:
        """The output with single blanks: where Ansible broke a message into lines does not matter.

        Nor that YAML doubles an apostrophe where it quotes the message.
        """
        return " ".join(self.output.split()).replace("''", "'")

    @property
    def recap(self) -> Mapping[str, Mapping[str, int]]:
        """What a playbook says at its end, by host: ok, changed, unreachable, failed, skipped, rescued, ignored."""
        return {
            host: {name: int(number) for name, number in (pair.split("=") for pair in counts.split())}
            for host, counts in RECAP.findall(self.stdout)
        }

    @property
    def changes(self) -> Mapping[str, int]:
        """Hosts with changed tasks, and how many."""
        return {host: counts["changed"] for host, counts in self.recap.items() if counts["changed"]}

    @property
    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """What one module returned, by host; of a run of `Ansible.module`."""
        hosts: Mapping[str, Mapping[str, Any]] = json.loads(self.stdout)["plays"][0]["tasks"][0]["hosts"]
        return hosts

    def explain(self) -> str:
        """What changed or failed, for the message of an assertion: from the task of the first failure on."""
        lines = [line for line in self.output.splitlines() if TELLING.match(line)]
        failed = next((at for at, line in enumerate(lines) if line.startswith(("fatal", "failed"))), None)
        if failed is not None:
            titles = (at for at in range(failed) if lines[at].startswith(("TASK", "RUNNING HANDLER")))
            task = max(titles, default=failed)
            return "\n".join(lines[task:])[:6000]
        return "\n".join(lines)[-6000:]


class Ansible:
    """Ansible on inventory sources, with variables that every run gets."""

    def __init__(self, sources: Sequence[str | Path], **variables: Any) -> None:
        """`sources` as Ansible's -i takes them; relative paths are below the project."""
        self.inventory = [word for source in sources for word in ("-i", str(PROJECT / source))]
        self.variables = variables

    def playbook(
        self,
        path: str | Path,
        *arguments: str,
        mitogen: bool = False,
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Run:
        """Run a playbook. `mitogen`: through it, unless HAL_STRATEGY says otherwise; `environment`: more of it."""
        more = {**(strategy.environment() if mitogen else {}), **(environment or {})}
        return self._run(self.command(path, *arguments, **variables), more)

    def module(self, hosts: str, name: str, arguments: Mapping[str, Any], **variables: Any) -> Run:
        """Run one module on the hosts of a pattern: `ansible HOSTS -m NAME`. What it returned is in `results`."""
        called = ["-m", name, "-a", json.dumps(arguments)]
        return self._run([*self._program("ansible", variables), hosts, *called], JSON_OUTPUT)

    def ping(self, environment: Mapping[str, str] | None = None) -> Run:
        """`ansible all -m ping`: the least that Ansible can do on every node."""
        return self._run([*self._program("ansible", {}), "all", "-m", "ping"], environment or {})

    def command(self, path: str | Path, *arguments: str, **variables: Any) -> list[str]:
        """The argv that runs a playbook, for those who start it themselves."""
        return [*self._program("ansible-playbook", variables), str(path), *arguments]

    def _program(self, name: str, variables: Mapping[str, Any]) -> list[str]:
        extra = {**self.variables, **variables}
        given = ["--extra-vars", json.dumps(extra)] if extra else []
        return [str(Path(sys.executable).with_name(name)), *self.inventory, *given]

    def _run(self, argv: Sequence[str], environment: Mapping[str, str]) -> Run:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        done = subprocess.run(
            argv,
            cwd=PROJECT,
            env={**inherited, "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)


def of_scenario(folder: Path, source: str = "hal.yml") -> Ansible:
    """Ansible on the nodes of a molecule scenario, as molecule calls it."""
    return Ansible([folder / source], virtual_name=folder.name)
