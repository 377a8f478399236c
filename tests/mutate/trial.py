"""Whether the tests see a fault."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from running import strategy

from tests.mutate import keeper
from tests.mutate.copies import Copy
from tests.mutate.mutant import Mutant
from tests.mutate.questions import PYTEST, QUIET_SCENARIO_SECONDS, Question

SCENARIO = {**strategy.environment(), "PYTEST_ADDOPTS": "-x -m 'not slow'"}
"""What tests/run.py gives a scenario; it ends at the first test that fails."""


class RedError(Exception):
    """What fails whatever the fault: every one would seem seen. The message says what, and where its output is."""


class StoppedError(Exception):
    """Somebody asked to stop."""


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: `by` is what saw it (tests, a linter), empty when nothing did; `test` which."""

    mutant: Mutant
    by: str
    test: str = ""
    seconds: float = 0.0


class Bench:
    """A copy of the tree and what is asked in it, one fault after the other."""

    def __init__(
        self,
        copy: Copy,
        ask: Callable[[Mutant], Iterable[Question]],
        logs: Path,
        stop: threading.Event,
    ) -> None:
        self._copy, self._questions, self._stop = copy, ask, stop
        self._log = logs / f"{copy.root.name}.log"
        self._green = set[tuple[str, ...]]()

    def judge(self, mutant: Mutant) -> Verdict:
        """Try a fault. What fails with it is asked again without it: RedError when that fails, too."""
        began = time.monotonic()
        for question in self._questions(mutant):
            with question.alone:
                with self._copy.having(mutant):
                    status = self._ask(question.argv, question.quiet_seconds)
                    failed = self._failed(status) if question.tests else []
                if status in question.green:
                    continue
                name = mutant.path.replace("/", "-")
                self._log.replace(self._log.with_name(f"{name}-{mutant.line}.log"))
                self._prove_green(question, failed)
            by = "hung" if status == keeper.HUNG else question.name
            return Verdict(mutant, by, ", ".join(failed), time.monotonic() - began)
        return Verdict(mutant, "", "", time.monotonic() - began)

    def end(self, argv: Sequence[str]) -> None:
        """Run what takes away what is no child of a command, as nodes are; whatever it says, and also after a stop."""
        stop, self._stop = self._stop, threading.Event()
        try:
            self._ask(argv, QUIET_SCENARIO_SECONDS)
        finally:
            self._stop = stop

    def _failed(self, status: int) -> list[str]:
        """The test that failed, or the one that hangs; none when not even collecting them went well."""
        if status == keeper.HUNG:
            last = self._log.read_text(errors="replace").splitlines()[-1:]
            return [line.strip() for line in last if re.match(r"tests/.*::", line)]
        kept = self._copy.root / ".pytest_cache/v/cache/lastfailed"
        return list(json.loads(kept.read_text()))[:1] if kept.is_file() else []

    def _prove_green(self, question: Question, failed: list[str]) -> None:
        """The same without the fault: the one test, or its whole file when it needs the others."""
        if question.proven:
            return
        again: list[tuple[str, ...]] = [question.argv]
        if question.tests:
            again = [("pytest", "--collect-only", "-q", *question.tests)]
        if failed:
            again = [(*PYTEST, *failed), (*PYTEST, failed[0].partition("::")[0])]
        for argv in again:
            if argv in self._green or self._ask(argv, question.quiet_seconds) in question.green:
                self._green.add(argv)
                return
        raise RedError(f"red without a fault: {', '.join(failed) or question.name} (output: {self._log})")

    def _ask(self, argv: Sequence[str], quiet_seconds: float) -> int:
        programs = self._copy.root / ".venv" / "bin"
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL"))},
            "ANSIBLE_CONFIG": str(self._copy.root / "ansible.cfg"),
            "NO_COLOR": "1",
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            **(SCENARIO if argv[0] == "molecule" else {}),
        }
        words = [
            sys.executable,
            keeper.__file__,
            str(self._log),
            str(quiet_seconds),
            str(programs / argv[0]),
            *argv[1:],
        ]
        if argv[0] == "pytest":
            words.append("--cache-clear")
        process = subprocess.Popen(words, cwd=self._copy.root, env=environment, stdin=subprocess.DEVNULL)
        while process.poll() is None:
            if self._stop.wait(0.05):
                process.terminate()
                process.wait()
                raise StoppedError
        if process.returncode == 128 + signal.SIGTERM:
            raise RedError(f"somebody ended {argv[0]} (output: {self._log})")
        return process.returncode
