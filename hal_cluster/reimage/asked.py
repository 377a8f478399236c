"""What somebody asked for, and what Ansible gives for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hal_cluster.reimage.remote import Run


class RunOn(Protocol):
    """Gives what runs commands on a host."""

    def __call__(self, host: str, fresh: bool = False) -> Run:
        """Return it; ``fresh``: over a new connection, not over one that is open."""


@dataclass(frozen=True)
class Asked:
    """What somebody asked for. ``settings`` as playbooks/reimage.yml gives them."""

    nodes: str
    code: str
    settings: Mapping[str, Any]
    check: bool
    by: str


@dataclass(frozen=True)
class Connected:
    """What Ansible gives: inventory sources, variables of hosts, connections, and how to call ansible-playbook."""

    sources: Sequence[str]
    variable: Callable[[str, str], Any]
    run_on: RunOn
    program: Sequence[str]
    environment: Mapping[str, str]
    extra: Mapping[str, Any]
    project: Path
    say: Callable[[str], None]
