"""Playbooks against installed nodes, as processes of their own: nodes that come together are rolled out together.

One playbook on sixteen nodes costs the controller little more than on one, sixteen playbooks cost sixteen times as
much. So a node waits a while for others that are on their way; nodes that come later are in the next batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from hal_inventory.ranges import fold

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here: between fork and exec nothing may wait for a lock
_GRACE_SECONDS = 10.0  # between TERM and KILL
_POLL_SECONDS = 0.05
_KEPT_SECONDS = 30 * 86400.0
_OURS = re.compile(r"\d{8}T\d{6}Z-(converge|gates)-.+\.(log|outcome|variables)")


def end_with_parent() -> None:
    """Have this process end when the one that started it does, however that ends: nothing goes on unseen."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(frozen=True)
class Playbook:
    """A playbook and how it is called. ``variables`` may have secrets: they go through a pipe, never to a disk."""

    program: Sequence[str]
    path: Path
    variables: Mapping[str, Any] = field(default_factory=dict)

    def command(self, nodes: Sequence[str], pipe: Path) -> list[str]:
        """Return the argv that runs it on nodes. ``pipe``: where it reads the variables, if there are any."""
        extra = ["--extra-vars", f"@{pipe}"] if self.variables else []
        return [*self.program, "--limit", ",".join(nodes), *extra, str(self.path)]


@dataclass
class _Kind:
    """What waits for one playbook, what it runs on, and what came of it."""

    playbook: Playbook
    waiting: dict[str, float] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    results: dict[str, str] = field(default_factory=dict)


class Playbooks:
    """Implements world.Rollout. ``to_come``: how many nodes are on their way to a kind, which may wait for them."""

    def __init__(
        self,
        converge: Playbook,
        gates: Playbook,
        logs: Path,
        environment: Mapping[str, str],
        folder: Path,
        *,
        together_seconds: float = 120,
        limit_seconds: float = 7200,
        to_come: Callable[[str], int] = lambda kind: 0,
        forget: Callable[[str], None] = lambda node: None,
    ) -> None:
        """``forget``: drop what the controller keeps of a node's former system; called before its first rollout.

        ``limit_seconds``: a playbook that takes longer hangs. It is ended, so that others have their turn.
        """
        self._kinds = {"converge": _Kind(converge), "gates": _Kind(gates)}
        self._logs, self._environment, self._folder = logs, dict(environment), folder
        self._together, self.to_come, self._forget = together_seconds, to_come, forget
        self._limit = limit_seconds
        self._lock = threading.Lock()

    def converge(self, node: str) -> str | None:
        """Roll the site out to a node."""
        return self._ask("converge", node)

    def gates(self, node: str) -> str | None:
        """Check a node."""
        return self._ask("gates", node)

    def leave(self, node: str) -> None:
        """Have the next batch go without a node."""
        with self._lock:
            for kind in self._kinds.values():
                kind.waiting.pop(node, None)

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
        except Exception as error:  # whatever it is: without an answer nodes would wait for hours
            said = getattr(error, "strerror", "") or f"{type(error).__name__}: {error}"
            results = dict.fromkeys(nodes, f"{name} could not be started: {said}")
        with self._lock:
            kind.results.update(results)
            kind.running = ()

    def _results(self, name: str, playbook: Playbook, nodes: Sequence[str]) -> dict[str, str]:
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        log = self._logs / f"{stamp}-{name}-{fold(list(nodes))}.log"
        pipe, outcome = log.with_suffix(".variables"), log.with_suffix(".outcome")
        text = json.dumps(playbook.variables).encode()
        try:
            with _begun(log) as out, _pipe(pipe):
                with _STARTING:  # or end_running would overlook it
                    child = subprocess.Popen(
                        playbook.command(nodes, pipe),
                        cwd=self._folder,
                        env={**self._environment, "HAL_OUTCOME": str(outcome)},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=end_with_parent,
                    )
                    _RUNNING.add(child)
                try:
                    over = time.monotonic() + self._limit
                    if playbook.variables:
                        _hand_over(text, pipe, child, over)
                    status = child.wait(max(0.0, over - time.monotonic()))
                except subprocess.TimeoutExpired:
                    return dict.fromkeys(nodes, f"did not end within {self._limit / 60:g} min; {log}")
                finally:
                    if child.poll() is None:
                        _end(child)
                    _RUNNING.discard(child)
            return results_of(nodes, outcome, status, log)
        finally:
            outcome.unlink(missing_ok=True)


_RUNNING: set[subprocess.Popen[bytes]] = set()
_STARTING = threading.Lock()


def end_running() -> None:
    """End every playbook that runs, with all that it started. For Ctrl-C: it does not reach other process groups."""
    with _STARTING:
        running = tuple(_RUNNING)
    for child in running:
        _signal(child, signal.SIGTERM)


def _signal(child: subprocess.Popen[bytes], number: int) -> bool:
    """Return whether there was somebody in the child's process group."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return False
    return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and all that it started: TERM, and KILL for what does not listen."""
    _signal(child, signal.SIGTERM)
    over = time.monotonic() + _GRACE_SECONDS
    while (child.poll() is None or _signal(child, 0)) and time.monotonic() < over:
        time.sleep(_POLL_SECONDS)
    _signal(child, signal.SIGKILL)
    child.wait()


@contextlib.contextmanager
def _pipe(path: Path) -> Iterator[None]:
    """Have a named pipe that only its owner reads. A kill may leave it there, with nothing in it.

    It has a name, because Ansible makes a real path of what it is told to read (option_helpers.maybe_unfrack_path), and
    an inherited descriptor has none.
    """
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _hand_over(text: bytes, path: Path, child: subprocess.Popen[bytes], over: float) -> None:
    """Write to a named pipe once the child reads it, until it ends; subprocess.TimeoutExpired after ``over``."""
    end = None
    try:
        while child.poll() is None and text:
            try:
                if end is None:
                    end = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    path.unlink()  # a second reader finds nothing, instead of waiting
                text = text[os.write(end, text) :]
            except OSError as error:
                if error.errno == errno.EPIPE:
                    return  # it no longer reads, and says itself how it ended
                if error.errno not in (errno.ENXIO, errno.EAGAIN):  # nobody reads yet; it is full
                    raise
                if time.monotonic() > over:
                    raise subprocess.TimeoutExpired(child.args, 0) from None
                time.sleep(_POLL_SECONDS)
    finally:
        if end is not None:
            os.close(end)


def _begun(log: Path) -> BinaryIO:
    """Return a new log, open to write; the old ones beside it are removed."""
    for old in log.parent.iterdir():
        if _OURS.fullmatch(old.name) and old.lstat().st_mtime < time.time() - _KEPT_SECONDS:
            old.unlink(missing_ok=True)
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def results_of(nodes: Sequence[str], outcome: Path, status: int, log: Path) -> dict[str, str]:
    """Return "" for each node on which the playbook ended well, or what failed. A node that it did not reach failed."""
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
