"""Run a list of named stages: one log file each, progress while they run, a table of times at the end.

A stage that failed may be run once more, on fresh nodes: green then, it is *flaky*, which passes and is named.

On a terminal the running stage has one live line; otherwise a line is printed when it starts, every 20 seconds and
when it ends, so that a log of an unattended run shows where time went.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

PROJECT = Path(__file__).resolve().parents[3]
TAIL_LINES = 40
FAILURES = ("fatal: [", "failed: [", "ERROR! ")  # how Ansible begins the account of a failed task
HEARTBEAT_SECONDS = 20
GRACE_SECONDS = 5
EVERYTHING = "everything"


@dataclass(frozen=True)
class Stage:
    """One command: `name` for people, `argv` run in the project's root, `env` added to ours, `report` left behind.

    `again`: what is run once more when it failed, from its outcome; None when failing twice says nothing new.
    `seconds`: how long it is expected to take, for a run whose time is limited. `uses`: what no two stages that run at
    once may have, as nodes of one name; EVERYTHING: it runs alone.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    report: Path | None = None
    again: Callable[[Outcome], Stage] | None = None
    seconds: int = 0
    uses: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a stage ended: its exit status, wall time in seconds, where its output is; and how it ended at first."""

    stage: Stage
    status: int
    seconds: float
    log: Path
    first: Outcome | None = None

    @property
    def passed(self) -> bool:
        """True when the command exited with 0 and left its report: no report, nothing proven."""
        return self.status == 0 and not self.silent

    @property
    def flaky(self) -> bool:
        """True when it failed, and passed when it was run once more."""
        return self.passed and self.first is not None

    @property
    def silent(self) -> bool:
        """True when the stage owes a report that is not there."""
        return self.stage.report is not None and not self.stage.report.is_file()


@dataclass
class _Running:
    stage: Stage
    process: subprocess.Popen[bytes]
    log: Path
    began: float
    spoke: float
    first: Outcome | None = None

    def seconds(self) -> float:
        return time.monotonic() - self.began


class Runner:
    """Runs stages, in order or side by side, and remembers their outcomes."""

    def __init__(self, title: str, ended: Callable[[Outcome], None] | None = None) -> None:
        """`title` names the folder of logs under .state/logs/; `ended` is told each outcome as it comes."""
        self._tell = ended
        self.folder = PROJECT / ".state" / "logs" / title
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.log"):
            old.unlink()
        self.outcomes: list[Outcome] = []
        self.live = sys.stdout.isatty()
        self.began = time.monotonic()
        self._begun = 0

    def run(self, *stages: Stage, side_by_side: int = 1, within: float | None = None) -> bool:
        """Run stages, at most `side_by_side` at once. True when every one that was run passed.

        All are run, whether others fail or not. `within` (seconds since the runner was made): a stage whose `seconds`
        say that it would end later is left out; one that does not say is run. Interrupted (SIGINT, SIGTERM) it ends the
        stages that run, with all that they started.
        """
        waiting: list[tuple[Stage, Outcome | None]] = [(stage, None) for stage in stages]
        running = list[_Running]()
        first = len(self.outcomes)
        before = signal.signal(signal.SIGTERM, _interrupted)
        try:
            while waiting or running:
                left = math.inf if within is None else within - (time.monotonic() - self.began)
                waiting = [entry for entry in waiting if entry[1] or not entry[0].seconds or entry[0].seconds <= left]
                while len(running) < side_by_side and (chosen := _free(waiting, running)) is not None:
                    running.append(self._start(*waiting.pop(chosen)))
                time.sleep(0.2)
                for item in list(running):
                    if item.process.poll() is not None:
                        running.remove(item)
                        outcome = self._end(item)
                        if not outcome.passed and outcome.stage.again and outcome.first is None:
                            waiting.insert(0, (outcome.stage.again(outcome), outcome))
                        else:
                            self.outcomes.append(outcome)
                            if self._tell:
                                self._tell(outcome)
                self._progress(running)
        except BaseException:
            for item in running:
                _stop(item.process)
            if running:
                say(f"interrupted: {', '.join(item.stage.name for item in running)}; make clean removes virtual nodes")
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
        return all(outcome.passed for outcome in self.outcomes[first:])

    def table(self) -> str:
        """The stages with their wall times, as text."""
        width = max((len(outcome.stage.name) for outcome in self.outcomes), default=0)
        rows = [
            f"  {outcome.stage.name:<{width}}  {clock(outcome.seconds):>7}{_mark(outcome)}" for outcome in self.outcomes
        ]
        return "\n".join([*rows, f"  {'all':<{width}}  {clock(time.monotonic() - self.began):>7}"])

    def _start(self, stage: Stage, first: Outcome | None) -> _Running:
        self._begun += 1
        log = self.folder / f"{self._begun:02d}-{''.join(c if c.isalnum() else '-' for c in stage.name)}.log"
        now = time.monotonic()
        if stage.report:
            stage.report.unlink(missing_ok=True)  # of a run before: not this one's
        # A program that is not there is a stage that failed, not the end of the run.
        installed = shutil.which(stage.argv[0], path=os.environ.get("PATH")) or (PROJECT / stage.argv[0]).is_file()
        argv = stage.argv if installed else ["sh", "-c", 'echo "$0 is not installed"; exit 127', stage.argv[0]]
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **stage.env},
            )
        if not self.live:
            say(f"... {stage.name}{', once more' if first else ''}")
        return _Running(stage, process, log, now, now, first)

    def _end(self, item: _Running) -> Outcome:
        outcome = Outcome(item.stage, item.process.returncode, item.seconds(), item.log, item.first)
        self._clear()
        word = "flaky" if outcome.flaky else "ok " if outcome.passed else "FAILED"
        say(f"{word} {outcome.stage.name} ({clock(outcome.seconds)})")
        if not outcome.passed:
            say("\n".join(f"    | {line}" for line in excerpt(item.log.read_text(errors="replace"))))
            if outcome.silent:
                say("    left no report of what it tested")
            say(f"    whole output: {item.log.relative_to(PROJECT)}")
        return outcome

    def _progress(self, running: Sequence[_Running]) -> None:
        if self.live and running:
            item = running[0]
            text = f"... {item.stage.name} {clock(item.seconds())}  {last_line(item.log)}"
            self._clear()
            sys.stdout.write(text[: terminal_width() - 1])
            sys.stdout.flush()
            return
        for item in running:
            if time.monotonic() - item.spoke >= HEARTBEAT_SECONDS:
                item.spoke = time.monotonic()
                say(f"    {item.stage.name} {clock(item.seconds())}  {last_line(item.log)[:90]}")

    def _clear(self) -> None:
        if self.live:
            sys.stdout.write("\r\033[K")


def same(outcome: Outcome) -> Stage:
    """Once more as it was: for a stage that makes its nodes anew."""
    return replace(outcome.stage)


def _free(waiting: Sequence[tuple[Stage, Outcome | None]], running: Sequence[_Running]) -> int | None:
    """The place of the first stage that waits for nothing that another uses; None when there is none."""
    used = {item.stage.uses for item in running} - {""}
    if EVERYTHING in used:
        return None
    free = (place for place, (stage, _) in enumerate(waiting) if stage.uses not in used)
    return next((place for place in free if waiting[place][0].uses != EVERYTHING or not running), None)


def _mark(outcome: Outcome) -> str:
    """What the table says behind a stage."""
    return "  flaky" if outcome.flaky else "" if outcome.passed else "  FAILED"


def _interrupted(number: int, _frame: object) -> NoReturn:
    """Leave by an exception, as Ctrl-C does."""
    sys.exit(128 + number)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a stage and what it started: asked first, then killed.

    By its children and not as a session: one of its own would keep sudo from the terminal.
    """
    family = _with_descendants(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for member in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)


def _with_descendants(pid: int) -> list[int]:
    parents = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may have blanks; then state and parent (proc(5)).
            parents.append((int(path.parent.name), int(path.read_text(errors="replace").rpartition(")")[2].split()[1])))
    family = [pid]
    for member in family:  # grows while it is read
        family.extend(child for child, parent in parents if parent == member)
    return family


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def clock(seconds: float) -> str:
    """Seconds as m:ss."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def excerpt(text: str) -> list[str]:
    """What to read of a failed stage: the end of its output, before that what Ansible said failed further up."""
    lines = text.splitlines()
    tail = max(0, len(lines) - TAIL_LINES)
    for number, line in enumerate(lines[:tail]):
        if line.startswith(FAILURES):
            block = list(itertools.takewhile(str.strip, lines[number : min(tail, number + TAIL_LINES)]))
            return [*block, "[...]", *lines[tail:]]
    return lines[tail:]


def terminal_width() -> int:
    """Columns of the terminal; 80 when it does not say."""
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 80


def last_line(log: Path) -> str:
    """What a log says last: Ansible's running task, or else its last line; without control characters."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 32768))
        lines = [line.strip(" *") for line in file.read().decode(errors="replace").splitlines()]
    tasks = [line for line in lines if line.startswith("TASK [")]
    speaking = tasks[-1:] or [line for line in lines if line][-1:]
    return "".join(c for c in "".join(speaking) if c.isprintable())
