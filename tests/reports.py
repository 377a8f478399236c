"""What the reports of pytest runs say: counts, what skipped, and in which files tests failed."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / "molecule" / "shared")]

from stages import Outcome  # noqa: E402  found through the line above

LONGEST_LINE = 160  # of what is said about one test that skipped


def counts(outcome: Outcome) -> tuple[int, int, int]:
    """What a stage adds to passed, failed and skipped: itself and the tests of its report; a failed one at least 1."""
    total = failed = skipped = 0
    if outcome.stage.report and not outcome.silent:
        for suite in ET.parse(outcome.stage.report).getroot().iter("testsuite"):
            number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
            total += number["tests"]
            failed += number["failures"] + number["errors"]
            skipped += number["skipped"]
    return total - failed - skipped + outcome.passed, max(failed, not outcome.passed), skipped


def skips(outcomes: Iterable[Outcome]) -> list[str]:
    """Each test that skipped, with its reason; those of pytest's stages without nodes are all in tests/skips.yml."""
    found: Counter[str] = Counter()
    for case in (case for outcome in outcomes for case in _cases(outcome)):
        for skipped in case.iter("skipped"):
            if skipped.get("type") != "pytest.xfail":
                name = f"{case.get('classname')}.{case.get('name', '').partition('[')[0]}"
                found[f"{name}: {skipped.get('message', '')}"[:LONGEST_LINE]] += 1
    return [f"skipped: {number} of {line}" for line, number in sorted(found.items())]


def failed_files(outcome: Outcome) -> list[str]:
    """The files in which tests failed, sorted; none where the report does not say which they all were."""
    broken = [case for case in _cases(outcome) if case.find("failure") is not None or case.find("error") is not None]
    files = {case.get("classname", "").replace(".", "/") + ".py" for case in broken}
    return sorted(files) if all((PROJECT / path).is_file() for path in files) else []


def _cases(outcome: Outcome) -> Iterator[ET.Element]:
    if outcome.stage.report and not outcome.silent:
        yield from ET.parse(outcome.stage.report).getroot().iter("testcase")
