"""hal_cluster/expect/verdict.py: which promises are meant, and what the task says of their results."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.expect import verdict as subject
from hal_cluster.expect.prepare import Prepared

OPTIONS: dict[str, Any] = {
    "role": None, "roles": None, "file": None, "severity": "error", "report_only": False, "allow_all_skipped": False,
}  # fmt: skip


def one(name: str = "a", role: str = "r") -> Prepared:
    return Prepared(id=name, role=role, source="f:1", why="w", severity="error", secret=False)


def result(status: str, severity: str = "error", name: str = "a", **more: Any) -> dict[str, Any]:
    known = {"role": "r", "expected": {"equal": 1}, "observed": 2, "reason": "differs", "why": "w", "source": "f:1"}
    return {"id": name, "status": status, "severity": severity, **known, **more}


FAIL, WARNING, SKIPPED, PASS = result("fail"), result("fail", "warning", "b"), result("skipped"), result("pass")
LINE = "fail: r: {}: expected equal 1, observed 2; w (f:1)"


@pytest.mark.parametrize(("name", "meant"), [("a", True), ("a [x]", True), ("ab", False), ("a[x]", False), ("", False)])
def test_an_id_means_its_entry_and_all_of_its_loop(name: str, meant: bool) -> None:
    assert subject.is_named(one(name), "a") is meant


@pytest.mark.parametrize(
    ("options", "roles", "title"),
    [
        ({"file": "my.yml", "role": "time"}, ["time"], "my.yml"),
        ({"role": "time"}, [], "time"),
        ({"roles": ["time", "ssh"]}, ["ssh"], "time, ssh"),
        ({}, ["base", "base", "ssh"], "base, ssh"),
        ({}, [], "hal_expect"),
        ({"roles": []}, ["base"], "base"),
    ],
)
def test_the_headline_names_what_was_asked(options: dict[str, Any], roles: list[str], title: str) -> None:
    assert subject.title({**OPTIONS, **options}, [one(role=role) for role in roles]) == title


def verdict(*results: dict[str, Any], **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = subject.verdict(list(results), {**OPTIONS, **options}, "time", "hal05")
    return found


def test_what_holds_passes_with_all_results() -> None:
    assert verdict(PASS, SKIPPED) == {
        "changed": False,
        "results": [PASS, SKIPPED],
        "summary": {"pass": 1, "fail": 0, "unknown": 0, "skipped": 1},
        "msg": "time: the only expectation holds, 1 skipped",
    }


@pytest.mark.parametrize("status", ["fail", "unknown"])
def test_an_error_fails_and_only_what_is_wrong_is_shown(status: str) -> None:
    wrong = result(status)
    found = verdict(PASS, wrong, SKIPPED)
    assert (found["failed"], found["results"], found["changed"]) == (True, [wrong], False)
    assert "warnings" not in found
    assert found["msg"].startswith("time: of 2 expectations 1 ")
    assert found["msg"].splitlines()[1:] == [
        LINE.format("a") if status == "fail" else "unknown: r: a: differs; w (f:1)"
    ]


def test_what_was_observed_is_cut_where_the_task_fails() -> None:
    (shown,) = verdict(result("fail", observed="x" * 500))["results"]
    assert len(shown["observed"]) == 80


def test_a_warning_is_shown_and_does_not_fail() -> None:
    found = verdict(PASS, WARNING)
    assert "failed" not in found
    assert found["warnings"] == [f"hal05: {LINE.format('b')}"]
    assert found["results"] == [PASS, WARNING]
    assert found["msg"] == "time: of 2 expectations 1 failed (1 of them as a warning)"


def test_a_warning_beside_an_error_stays_one() -> None:
    found = verdict(FAIL, WARNING)
    assert found["warnings"] == [f"hal05: {LINE.format('b')}"]
    assert (found["failed"], found["results"]) == (True, [FAIL, WARNING])
    assert found["msg"] == f"time: of 2 expectations 2 failed (1 of them as a warning)\n{LINE.format('a')}"


def test_a_warning_fails_where_that_is_asked() -> None:
    found = verdict(PASS, WARNING, severity="warning")
    assert (found["failed"], found["results"]) == (True, [WARNING])
    assert "warnings" not in found
    assert found["msg"] == f"time: of 2 expectations 1 failed\n{LINE.format('b')}"


def test_a_report_has_everything_and_never_fails() -> None:
    for results in ([FAIL, WARNING], [SKIPPED], []):
        found = verdict(*results, report_only=True)
        assert set(found) == {"changed", "results", "summary", "msg"}
        assert found["results"] == results


def test_all_skipped_is_nothing_checked_unless_that_is_right() -> None:
    found = verdict(SKIPPED, SKIPPED)
    assert (found["failed"], found["results"]) == (True, [])
    assert found["msg"].startswith("time: nothing was checked: all 2 expectations were skipped; ")
    assert "allow_all_skipped: true" in found["msg"]
    allowed = verdict(SKIPPED, SKIPPED, allow_all_skipped=True)
    assert "failed" not in allowed
    assert allowed["results"] == [SKIPPED, SKIPPED]
