"""A test that skips proves nothing: only those in tests/skips.yml may, and only as long as they do."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

PROJECT = Path(__file__).resolve().parents[1]
LIST = PROJECT / "tests" / "skips.yml"
LONGEST = 160


class Allowed(BaseModel):
    """One entry of skips.yml: a test, without its parameters, and the reason that it gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    test: str
    reason: str
    sometimes: bool = False


def load(path: Path = LIST) -> list[Allowed]:
    """Return the entries."""
    return TypeAdapter(list[Allowed]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or [])


class Skips:
    """A plugin of pytest: remembers which tests ran and which skipped, and fails a run that skipped others."""

    def __init__(self, allowed: Iterable[Allowed]) -> None:
        """`allowed`: tests that may skip."""
        self.allowed = tuple(allowed)
        self.skipped: Counter[tuple[str, str]] = Counter()
        self.ran: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what became of one part of one test."""
        name = report.nodeid.partition("[")[0]
        if report.skipped and not hasattr(report, "wasxfail"):
            text = report.longrepr[2] if isinstance(report.longrepr, (tuple, list)) else str(report.longrepr)
            self.skipped[name, re.sub(r"^Skipped: ", "", text)] += 1
        elif report.when == "call":
            self.ran.add(name)

    def findings(self) -> list[str]:
        """Return what makes the list and the run differ."""
        found = []
        for name, why in self.skipped:
            if not any(one.test == name and fnmatch.fnmatchcase(why, _plain(one.reason)) for one in self.allowed):
                found.append(f"{name} skips, and {LIST.name} does not allow that: {why}"[:LONGEST])
        names = {name for name, _ in self.skipped}
        files = {name.partition("::")[0] for name in self.ran | names}  # others are not read: they are not of this run
        for one in self.allowed:
            file, _, function = one.test.partition("::")
            if one.test in self.ran - names and not one.sometimes:
                found.append(f"{one.test} no longer skips: take it out of {LIST.name}")
            elif not (PROJECT / file).is_file() or (
                file in files and f"def {function}(" not in (PROJECT / file).read_text()
            ):
                found.append(f"{one.test} is not a test: take it out of {LIST.name}")
        return sorted(found)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that is otherwise fine."""
        if self.findings() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what skipped, and what is wrong with that."""
        if self.skipped:
            terminalreporter.section("skipped")
        for (name, why), number in sorted(self.skipped.items()):
            terminalreporter.line(f"{name}{f' ({number})' if number > 1 else ''}: {why}"[:LONGEST])
        if found := self.findings():
            terminalreporter.section("skips that are not as tests/skips.yml says", red=True)
        for line in found:
            terminalreporter.line(line)


def _plain(pattern: str) -> str:
    """Return a pattern in which only * is special."""
    return re.sub(r"[\[?]", r"[\g<0>]", pattern)
