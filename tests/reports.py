"""What the reports of pytest runs say: counts, what skipped, and in which files tests failed."""

from __future__ import annotations

import contextlib
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / "molecule" / "virtual_hal")]

from running.stages import Outcome  # noqa: E402  found through the line above

MOST_FAILURES = 50  # then this machine lacks something: what the other tests would say is no news
LONGEST_LINE = 160  # of what is said about one test that skipped


def counts(outcome: Outcome) -> tuple[int, int, int]:
    """What a stage adds to passed, failed and skipped: itself and the tests of its report; a failed one at least 1.

    Of a stage whose failed files alone were run once more, what had passed at first counts, too.
    """
    total, failed, skipped = _counted(outcome)
    if outcome.first and outcome.first.stage.report != outcome.stage.report:
        before = _counted(outcome.first)
        total, skipped = total + before[0] - before[1], skipped + before[2]
    return total - failed - skipped + outcome.passed, max(failed, not outcome.passed), skipped


def _counted(outcome: Outcome) -> tuple[int, int, int]:
    """Tests, failed and skipped ones in a report."""
    total = failed = skipped = 0
    for suite in _elements(outcome, "testsuite"):
        number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        total += number["tests"]
        failed += number["failures"] + number["errors"]
        skipped += number["skipped"]
    return total, failed, skipped


def skips(outcomes: Iterable[Outcome]) -> list[str]:
    """Each test that skipped, with its reason."""
    found: Counter[str] = Counter()
    runs = [run for outcome in outcomes for run in (outcome.first, outcome) if run]
    for case in (case for run in runs for case in _elements(run, "testcase")):
        for skipped in case.iter("skipped"):
            if skipped.get("type") != "pytest.xfail":
                name = f"{case.get('classname')}.{case.get('name', '').partition('[')[0]}"
                found[f"{name}: {skipped.get('message', '')}"[:LONGEST_LINE]] += 1
    return [f"skipped: {number} of {line}" for line, number in sorted(found.items())]


def failed_files(outcome: Outcome) -> list[str]:
    """The files in which tests failed, sorted; none where the report does not say which they all were.

    It says so when pytest came to its end (status 1), and did not give up after `MOST_FAILURES`.
    """
    cases = list(_elements(outcome, "testcase"))
    broken = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    files = {case.get("classname", "").replace(".", "/") + ".py" for case in broken}
    whole = outcome.status == 1 and len(broken) < MOST_FAILURES
    return sorted(files) if whole and all((PROJECT / path).is_file() for path in files) else []


def _elements(outcome: Outcome, name: str) -> Iterator[ET.Element]:
    """The elements of a report; none where there is none, or only a part of one."""
    if outcome.stage.report and not outcome.silent:
        with contextlib.suppress(ET.ParseError):
            yield from ET.parse(outcome.stage.report).getroot().iter(name)
