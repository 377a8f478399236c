"""A small virtual HAL beside the demo's, and what a test does to it: play, run, stop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "shared")]

from ansible_run import VIRTUAL, Ansible, Run  # noqa: E402  found through the line above
from ssh_config import Cluster  # noqa: E402

SOURCES = (*VIRTUAL, PROJECT / "tests/rollout/site.yml")
INSTANCE = "mini-rollout"
WITNESS = "/run/witness"


class Mini:
    """The cluster and what the tests do to it."""

    def __init__(self) -> None:
        self.cluster = Cluster(SOURCES)
        self.ansible = Ansible(SOURCES, virtual_name=INSTANCE)

    def create(self) -> Run:
        """Make the nodes that are missing, start those that are stopped, and wait until they answer."""
        return self.ansible.playbook("molecule/shared/create.yml")

    def destroy(self) -> Run:
        """Remove the nodes."""
        return self.ansible.playbook("molecule/shared/destroy.yml")

    def site(self, *arguments: str, mitogen: bool = True) -> Run:
        """Run site.yml, as the demo does unless told otherwise."""
        return self.ansible.playbook("playbooks/site.yml", *arguments, mitogen=mitogen)

    @contextmanager
    def witness(self, node: str) -> Iterator[Callable[[], bool]]:
        """Watch a node's processes; the function given says whether a Python of mitogen was among them.

        mitogen calls its Python on a node 'python3(mitogen:USER@HOST:PID)'. Nobody else is asked: not the settings, not
        what the controller loaded.
        """
        look = "pgrep -f '[m]itogen:'"  # not the shell that looks
        self.cluster.run(node, f"while {look}; do sleep 0.2; done; rm -f {WITNESS}")
        watch = f"until {look} >{WITNESS}; do sleep 0.2; done"
        self.cluster.run(node, f"systemd-run --quiet --collect --unit=witness sh -c {quote(watch)}")
        try:
            yield lambda: self.cluster.run(node, f"test -s {WITNESS} && echo seen || true") == "seen\n"
        finally:
            self.cluster.run(node, "systemctl stop witness 2>/dev/null || true")

    def podman(self, *arguments: str) -> str:
        """Output of a podman command."""
        return subprocess.run(
            [str(PROJECT / "molecule/shared/podman"), *arguments], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
