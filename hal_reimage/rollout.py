"""Playbooks against installed nodes, as processes of their own: nodes that come together are rolled out together.

One playbook on sixteen nodes costs the controller little more than on one, sixteen playbooks cost sixteen times as
much. So a node waits for others that are on their way, for a while; whoever comes later is in the next batch.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hal_inventory.ranges import fold

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here: between fork and exec nothing may wait for a lock


def end_with_parent() -> None:
    """Have this process end when the one that started it does, however that ends: nothing goes on unseen."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(frozen=True)
class Playbook:
    """A playbook and how it is called. ``variables`` may have secrets: they go by a file that only its owner reads."""

    program: Sequence[str]
    path: Path
    variables: Mapping[str, Any] = field(default_factory=dict)

    def command(self, nodes: Sequence[str], variables_file: Path) -> list[str]:
        """Return the argv that runs it on nodes."""
        return [*self.program, "--limit", ",".join(nodes), "--extra-vars", f"@{variables_file}", str(self.path)]


@dataclass
class _Kind:
    """What waits for one playbook, what it runs on, and what came of it."""

    playbook: Playbook
    waiting: dict[str, float] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    results: dict[str, str] = field(default_factory=dict)


class Playbooks:
    """Implements world.Rollout. ``to_come``: how many nodes are on their way to a kind, so that it is worth waiting."""

    def __init__(
        self,
        converge: Playbook,
        gates: Playbook,
        logs: Path,
        environment: Mapping[str, str],
        folder: Path,
        *,
        together_seconds: float = 120,
        to_come: Callable[[str], int] = lambda kind: 0,
        forget: Callable[[str], None] = lambda node: None,
    ) -> None:
        """``forget``: drop what the controller keeps of a node's former system; called before its first rollout."""
        self._kinds = {"converge": _Kind(converge), "gates": _Kind(gates)}
        self._logs, self._environment, self._folder = logs, dict(environment), folder
        self._together, self.to_come, self._forget = together_seconds, to_come, forget
        self._lock = threading.Lock()

    def converge(self, node: str) -> str | None:
        """Roll the site out to a node."""
        return self._ask("converge", node)

    def gates(self, node: str) -> str | None:
        """Check a node."""
        return self._ask("gates", node)

    def _ask(self, name: str, node: str) -> str | None:
        kind = self._kinds[name]
        with self._lock:
            if node in kind.results:
                return kind.results.pop(node)
            if node not in kind.running:
                kind.waiting.setdefault(node, time.monotonic())
            if kind.waiting and not kind.running:
                oldest = time.monotonic() - min(kind.waiting.values())
                if oldest >= self._together or self.to_come(name) == 0:
                    kind.running = tuple(sorted(kind.waiting))
                    kind.waiting.clear()
                    threading.Thread(target=self._run, args=(name, kind), daemon=True).start()
        return None

    def _run(self, name: str, kind: _Kind) -> None:
        nodes = kind.running
        try:
            if name == "converge":
                for node in nodes:
                    self._forget(node)  # or the copy of its old record would be taken for the new system's
            results = self._results(name, kind.playbook, nodes)
        except Exception as error:  # whatever it is: nodes that nobody answers would wait for hours
            said = getattr(error, "strerror", "") or f"{type(error).__name__}: {error}"
            results = dict.fromkeys(nodes, f"{name} could not be started: {said}")
        with self._lock:
            kind.results.update(results)
            kind.running = ()

    def _results(self, name: str, playbook: Playbook, nodes: Sequence[str]) -> dict[str, str]:
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        log = self._logs / f"{stamp}-{name}-{fold(list(nodes))}.log"
        with tempfile.TemporaryDirectory(prefix="hal-reimage-") as place:
            variables, outcome = Path(place) / "variables.json", Path(place) / "outcome.json"
            owners = os.open(variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(owners, "w", encoding="utf-8") as file:
                json.dump(playbook.variables, file)
            environment = {**self._environment, "HAL_OUTCOME": str(outcome)}
            with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                done = subprocess.run(
                    playbook.command(nodes, variables),
                    cwd=self._folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    preexec_fn=end_with_parent,
                    check=False,
                )
            return results_of(nodes, outcome, done.returncode, log)


def results_of(nodes: Sequence[str], outcome: Path, status: int, log: Path) -> dict[str, str]:
    """Return "" for each node that the playbook ended well on, or what failed there; what it did not reach, failed."""
    try:
        said = json.loads(outcome.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = None
    results = {}
    for node in nodes:
        host = said.get(node) if isinstance(said, dict) else None
        if not isinstance(host, dict) or not host:
            results[node] = f"the playbook did not reach it (exit status {status}); {log}"
        elif host.get("well") is True and host.get("tasks"):
            results[node] = ""
        elif host.get("well") is True:
            results[node] = f"nothing was done there; {log}"
        else:
            results[node] = f"{host.get('why') or f'it failed (exit status {status})'}; {log}"
    return results
