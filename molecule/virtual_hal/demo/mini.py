"""A small virtual HAL beside the demo's, and what a test does to it: play, run, stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

PROJECT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from running.ansible_run import Ansible, Run  # noqa: E402  found through the line above
from running.ssh_config import Cluster  # noqa: E402

NODES = ("molecule/virtual_hal/create.yml", "molecule/virtual_hal/locks.yml")
"""Playbooks that make virtual nodes with all that a rollout of site.yml asks of them."""
IMAGES = ("molecule/virtual_hal/image_base.yml", "playbooks/containers.yml")
"""Playbooks that build the image which docs/users.md names, of a node's own files."""
IMAGE_VARIABLES: Mapping[str, Any] = {
    "container_image": "pytorch",
    "container_definition": str(PROJECT / "molecule/virtual_hal/software/pytorch.def"),
}
IMAGE_OF_ALL = "/opt/container/singularity/pytorch.sif"
SOURCES = (PROJECT / "tests/rollout/site.yml",)
INSTANCE = "mini-rollout"
WITNESS = "/run/witness"


@dataclass(frozen=True)
class Audit:
    """A finished hal-audit run: exit status, what it printed, and the document if it printed one."""

    status: int
    stdout: str
    stderr: str

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """What --json prints."""
        assert self.stdout, self.stderr
        document: Mapping[str, Any] = json.loads(self.stdout)
        return document

    @property
    def findings(self) -> Sequence[Mapping[str, Any]]:
        """All findings."""
        findings: Sequence[Mapping[str, Any]] = self.document["findings"]
        return findings

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """What was looked at, by node."""
        nodes: Mapping[str, Mapping[str, Any]] = self.document["nodes"]
        return nodes


class Mini:
    """The cluster and what the tests do to it."""

    def __init__(self) -> None:
        self.cluster = Cluster(SOURCES)
        self.ansible = Ansible(SOURCES, virtual_name=INSTANCE)
        self.rolled_out = False

    def create(self) -> Run:
        """Make the nodes that are missing, start those that are stopped, and wait until they answer."""
        return self.ansible.playbook(*NODES)

    def destroy(self) -> Run:
        """Remove the nodes."""
        return self.ansible.playbook("molecule/virtual_hal/destroy.yml")

    def site(self, *arguments: str, mitogen: bool = True, **variables: Any) -> Run:
        """Run site.yml, as the demo does unless told otherwise."""
        play = self.ansible.playbook("playbooks/site.yml", *arguments, mitogen=mitogen, **variables)
        self.rolled_out = self.rolled_out or (play.status == 0 and not arguments)
        return play

    def audit(self, *arguments: str, text: bool = False, **variables: Any) -> Audit:
        """Run hal-audit; `variables` are given to Ansible."""
        given = ["--extra-vars", json.dumps({**self.ansible.variables, **variables})]
        form = [] if text else ["--json"]
        argv = [self.program("hal-audit"), "run", *self.ansible.inventory, *form, *arguments, "--", *given]
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        return Audit(done.returncode, done.stdout, done.stderr)

    def program(self, name: str) -> str:
        """A program of the virtual environment that runs us."""
        return str(Path(sys.executable).with_name(name))

    @contextmanager
    def witness(self, node: str) -> Iterator[Callable[[], bool]]:
        """Watch a node's processes; the function given says whether a Python of mitogen was among them.

        mitogen calls its Python on a node 'python3(mitogen:USER@HOST:PID)'. Nobody else is asked: not the settings, not
        what the controller loaded.
        """
        look = "pgrep -f '[m]itogen:'"  # not the shell that looks
        self.cluster.run(node, f"while {look}; do sleep 0.2; done; rm -f {WITNESS}")
        watch = f"until {look} >{WITNESS}; do sleep 0.2; done"
        self.cluster.run(node, f"/usr/bin/systemd-run --quiet --collect --unit=witness sh -c {quote(watch)}")
        try:
            yield lambda: self.cluster.run(node, f"test -s {WITNESS} && echo seen || true") == "seen\n"
        finally:
            self.cluster.run(node, "systemctl stop witness 2>/dev/null || true")

    def podman(self, *arguments: str) -> str:
        """Output of a podman command."""
        return subprocess.run(
            [str(PROJECT / "molecule/virtual_hal/podman"), *arguments], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
