"""The page of make mutate: what saw the faults."""

from __future__ import annotations

from tests.mutate.mutant import Mutant
from tests.mutate.report import Measured, page
from tests.mutate.trial import Verdict


def test_what_a_snapshot_saw_is_counted_apart() -> None:
    verdicts = [
        Verdict(Mutant("roles/time/tasks/main.yml", number, "value", "a\n", "b\n"), by, test)
        for number, (by, test) in enumerate(
            [
                ("contract tests", "tests/contract/test_written.py::test_it[time]"),
                ("contract tests", "tests/contract/test_tags.py::test_it"),
                ("yamllint", ""),
                ("", ""),
            ]
        )
    ]
    run = Measured("make mutate SEED=1", "abc", "2026-11-24", "all", verdicts, 0, 0)
    counted = "by nothing 1, contract tests 1, contract tests, snapshot 1"
    assert f"How they were seen: {counted}, yamllint 1." in page(run)
