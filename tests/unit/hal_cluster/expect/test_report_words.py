"""The words of a report: one line a result, a headline, and what is cut."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.expect import report

RESULT: dict[str, Any] = {
    **{"id": "a", "role": "r", "status": "fail", "severity": "error", "expected": {"equal": 1}, "observed": 2},
    **{"reason": "differs", "why": "w", "source": "f:1"},
}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "fail: r: a: expected equal 1, observed 2; w (f:1)"),
        ({"role": "", "why": ""}, "fail: a: expected equal 1, observed 2; no reason given (f:1)"),
        *(({"reason": one}, "fail: r: a: expected equal 1, observed 2; w (f:1)") for one in report.PLAIN_REASONS),
        ({"reason": "it is off"}, "fail: r: a: expected equal 1, observed 2: it is off; w (f:1)"),
        ({"reason": "gone", "observed": None}, "fail: r: a: expected equal 1, but gone; w (f:1)"),
        ({"reason": "gone", "observed": [1]}, "fail: r: a: expected equal 1, but gone; w (f:1)"),
        ({"reason": "gone", "observed": "a\nb"}, "fail: r: a: expected equal 1, but gone; w (f:1)"),
        ({"reason": "gone", "observed": "ab"}, 'fail: r: a: expected equal 1, observed "ab": gone; w (f:1)'),
        ({"status": "unknown", "reason": " no\n rpm "}, "unknown: r: a:  no rpm ; w (f:1)"),
        ({"expected": "(secret)", "observed": "(secret)"}, "fail: r: a: expected (secret), observed (secret); w (f:1)"),
        ({"expected": {"a": 1, "b": "ü"}}, 'fail: r: a: expected {"a": 1, "b": "ü"}, observed 2; w (f:1)'),
        ({"observed": "x" * 158}, f'fail: r: a: expected equal 1, observed "{"x" * 158}"; w (f:1)'),
        ({"observed": "x" * 159}, f'fail: r: a: expected equal 1, observed "{"x" * 159}...; w (f:1)'),
    ],
)
def test_a_result_is_one_line(more: Any, words: str) -> None:
    assert report.line({**RESULT, **more}) == words


def test_failures_come_first_then_by_role_and_name() -> None:
    results = [
        {**RESULT, "status": status, "role": role, "id": name}
        for status in ("pass", "unknown", "fail")
        for role in ("s", "r")
        for name in ("b", "a")
    ]
    assert [one.split(": expected")[0].split(": differs")[0] for one in report.lines(results)] == [
        f"{status}: {role}: {name}"
        for status in ("fail", "unknown", "pass")
        for role in ("r", "s")
        for name in ("a", "b")
    ]


@pytest.mark.parametrize(
    ("counts", "mild", "words"),
    [
        ((1, 0, 0, 0), 0, "x: the only expectation holds"),
        ((2, 0, 0, 0), 0, "x: all 2 expectations hold"),
        ((0, 0, 0, 0), 0, "x: all 0 expectations hold"),
        ((1, 0, 0, 2), 0, "x: the only expectation holds, 2 skipped"),
        ((0, 1, 0, 0), 0, "x: of 1 expectation 1 failed"),
        ((1, 0, 1, 3), 1, "x: of 2 expectations 1 unknown (1 of them as a warning), 3 skipped"),
        ((3, 2, 1, 0), 0, "x: of 6 expectations 2 failed, 1 unknown"),
    ],
)
def test_the_headline_counts_what_was_checked(counts: tuple[int, ...], mild: int, words: str) -> None:
    named = dict(zip(("pass", "fail", "unknown", "skipped"), counts, strict=True))
    assert report.headline(named, "x", mild) == words
    results = [{"status": name} for name, number in named.items() for _ in range(number)]
    assert report.summary(results) == named


@pytest.mark.parametrize(("size", "cut"), [(78, False), (79, True)])
def test_what_was_observed_is_cut_below_its_line(size: int, cut: bool) -> None:
    seen = report.brief({**RESULT, "observed": "x" * size})
    assert seen == {**RESULT, "observed": f'"{"x" * 76}...' if cut else "x" * size}
