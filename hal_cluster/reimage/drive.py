"""Drives nodes through the engine: some at a time, each in its thread. After a failure no other node begins."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from hal_cluster.reimage.engine import Engine, before
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import Record, Run, State, Step
from hal_inventory.errors import HalError

PATIENCE_SECONDS = 900
"""How long the management node may be silent before a run gives up; the records say where it goes on."""

MARK_SECONDS = 60
"""How often the management node is told which nodes are being driven, however long one look at one of them takes."""

LOOK_SECONDS = 3600
"""A look that takes longer hangs: the management node is no longer told that its node is driven. The longest, at a
machine that does not shut down, takes 17 min."""

Answer = TypeVar("Answer")


class Lost(HalError):
    """Somebody else works on this node now, or the server does not answer any more."""


class Drive:
    """One run. ``report`` is called with each record that says something new, from several threads.

    ``begin`` and ``leave``: called as a node's turn begins and when it is over, however it ended. ``mark``: told once a
    minute which nodes are being driven. ``say``: given a line about a node that could not be begun yet.
    """

    def __init__(
        self,
        engine: Engine,
        run: Run,
        report: Callable[[Record], None],
        *,
        parallel: int,
        poll_seconds: float,
        go_on: bool = False,
        begin: Callable[[str], object] = lambda node: None,
        mark: Callable[[Sequence[str]], object] = lambda nodes: None,
        leave: Callable[[str], object] = lambda node: None,
        say: Callable[[str], object] = lambda line: None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._run, self._report = engine, run, report
        self._parallel, self._poll, self._go_on = parallel, poll_seconds, go_on
        self._begin, self._mark, self._leave, self._say = begin, mark, leave, say
        self._sleep, self._monotonic = sleep, monotonic
        self._looks: dict[str, float] = {}
        self._steps: dict[str, Step] = {}
        self._failed: list[str] = []
        self._gone: dict[str, str] = {}
        self._records: dict[str, Record] = {}

    def to_come(self, step: Step) -> int:
        """Return how many nodes are on their way to a step, without those that still have jobs: these may take long."""
        here = list(self._steps.values())
        return sum(1 for at in here if before(Step.DRAIN, at) and before(at, step))

    def all(self, nodes: Sequence[str]) -> tuple[dict[str, Record], dict[str, str]]:
        """Drive nodes; return the last record of each, and why some are in other hands or were not begun."""
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in nodes:
            waiting.put(name)
        over = threading.Event()
        threading.Thread(target=self._marks, args=(over,), daemon=True).start()
        # They end with the process: what one of them does is written down before and after.
        threads = [
            threading.Thread(target=self._work, args=(waiting,), daemon=True)
            for _ in range(max(1, min(self._parallel, len(nodes))))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # in pieces: so it hears Ctrl-C
                thread.join(0.5)
        over.set()
        return self._records, self._gone

    def _marks(self, over: threading.Event) -> None:
        while not over.wait(MARK_SECONDS):
            since = self._monotonic() - LOOK_SECONDS
            driven = sorted(name for name, began in list(self._looks.items()) if began > since)
            with suppress(Exception):  # a mark that fails is made again in a minute
                if driven:
                    self._mark(driven)

    def _work(self, waiting: queue.SimpleQueue[str]) -> None:
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            if self._failed and not self._go_on:
                self._gone[name] = f"not begun, because {self._failed[0]} failed; the same command goes on with it"
                continue
            try:
                self._node(name)
            except Lost as lost:
                self._gone[name] = str(lost)
            except Exception as error:
                self._gone[name] = f"{type(error).__name__}: {error}"
            finally:
                self._looks.pop(name, None)
                self._steps.pop(name, None)
                self._leave(name)
            if name in self._gone or self._records[name].state is not State.DONE:
                self._failed.append(name)

    def _node(self, name: str) -> None:
        said: list[str] = []

        def not_yet(trouble: Exception) -> bool:
            """Return whether to try once more to begin; say each reason why not yet, once."""
            if not (isinstance(trouble, Trouble) and trouble.passes):
                return False
            if trouble.reason not in said:
                said.append(trouble.reason)
                self._say(f"{name}: not begun yet: {trouble.reason}")
            return True

        try:
            self._answer(lambda: self._begin(name), not_yet, "not begun: ")
        except (ReimageError, Trouble) as error:
            raise Lost(f"not begun: {error}") from None
        except Conflict:
            raise Lost("not begun: somebody else works on it now: hal-reimage status on the server") from None
        while True:
            record = self._answer(lambda: self._look(name), lambda trouble: True)
            self._tell(record)
            if not record.going:
                return
            if not record.run.same(self._run):
                raise Lost(f"taken over by {record.run.by} at {record.run.began}")
            if record.waiting:
                self._sleep(self._poll)

    def _look(self, name: str) -> Record:
        self._looks[name] = self._monotonic()
        try:
            return self._engine.tick(name, self._run)
        except ReimageError as error:
            raise Lost(str(error)) from None

    def _answer(self, ask: Callable[[], Answer], again: Callable[[Exception], bool], what: str = "") -> Answer:
        """Return an answer. While there is none, ask again if ``again`` says so; Lost after a time."""
        silent_since = None
        while True:
            try:
                return ask()
            except (Trouble, Conflict) as trouble:
                if not again(trouble):
                    raise
                # Time counts from the first call that failed: what came before it in this look may have taken long.
                now = self._monotonic()
                silent_since = now if silent_since is None else silent_since
                if now - silent_since >= PATIENCE_SECONDS:
                    minutes = PATIENCE_SECONDS // 60
                    raise Lost(f"{what}{trouble}, for {minutes} min; the same command goes on") from None
                self._sleep(self._poll)

    def _tell(self, record: Record) -> None:
        last = self._records.get(record.node)
        self._records[record.node], self._steps[record.node] = record, record.step
        if last is None or (last.step, last.waiting, last.state, last.reason) != (
            record.step,
            record.waiting,
            record.state,
            record.reason,
        ):
            self._report(record)
