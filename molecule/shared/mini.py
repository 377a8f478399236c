"""A small virtual HAL beside the demo's, and what a test does to it: play, run, stop."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "shared")]

from ssh_config import Cluster  # noqa: E402  found through the line above
from strategy import environment  # noqa: E402

SOURCES = ("inventory/hal/hal.yml", "inventory/virtual/hal.yml", "tests/rollout/site.yml")
INSTANCE = "mini-rollout"
RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Play:
    """A finished ansible-playbook: its status, output, and what the recap says of each host."""

    status: int
    output: str

    @property
    def recap(self) -> Mapping[str, Mapping[str, int]]:
        """Per host: ok, changed, unreachable, failed."""
        names = ("ok", "changed", "unreachable", "failed")
        return {
            match[1]: dict(zip(names, map(int, match.groups()[1:]), strict=True))
            for match in RECAP.finditer(self.output)
        }

    @property
    def changes(self) -> Mapping[str, int]:
        """Hosts with changed tasks, and how many."""
        return {host: counts["changed"] for host, counts in self.recap.items() if counts["changed"]}

    def explain(self) -> str:
        """What changed or failed, for the message of an assertion."""
        return "\n".join(
            line for line in self.output.splitlines() if re.match(r"TASK|changed|failed|fatal|ERROR|PLAY RECAP", line)
        )[-6000:]


class Mini:
    """The cluster and what the tests do to it."""

    def __init__(self) -> None:
        self.cluster = Cluster([PROJECT / source for source in SOURCES])
        self.inventory = [word for source in SOURCES for word in ("-i", str(PROJECT / source))]

    def play(self, playbook: str, *arguments: str, inventory: Sequence[str] | None = None, plain: bool = False) -> Play:
        """Run a playbook; its status is for the test to judge. `plain`: by Ansible alone, without mitogen."""
        done = subprocess.run(
            [
                "ansible-playbook",
                *(self.inventory if inventory is None else inventory),
                "--extra-vars",
                f"virtual_name={INSTANCE}",
                playbook,
                *arguments,
            ],
            cwd=PROJECT,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
                "ANSIBLE_FORCE_COLOR": "0",
                **({} if plain or "shared" in playbook else environment()),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Play(done.returncode, done.stdout)

    def podman(self, *arguments: str) -> str:
        """Output of a podman command."""
        return subprocess.run(
            [str(PROJECT / "molecule/shared/podman"), *arguments], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
