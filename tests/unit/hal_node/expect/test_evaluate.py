"""All entries of a call together: one that cannot be asked leaves the others alone, and nothing passes unread."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import evaluate as hal_expect_evaluate
from ansible.module_utils.hal_node.expect.evaluate import evaluate
from ansible.module_utils.hal_node.expect.matchers import JUDGES
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = {"file": {"path": "/", "read": "type"}, "equal": "directory"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"equal": 1}, "exactly one reader"),
        ({"file": {"path": "/"}, "sysctl": {"name": "a"}, "equal": 1}, "exactly one reader"),
        ({"fiel": {"path": "/"}, "equal": 1}, "exactly one reader"),
        ({"file": {"path": "/", "read": "type"}}, "exactly one matcher"),
        ({"file": {"path": "/", "read": "type"}, "equal": 1, "count": 1}, "exactly one matcher"),
        ({"file": "/", "equal": 1}, "file has to be a mapping"),
        ({"file": {"path": "/", "raed": "type"}, "equal": 1}, 'file has no field "raed"'),
        ({"file": {"read": "type"}, "equal": 1}, "file needs path"),
        ({"file": {"path": "", "read": "type"}, "equal": 1}, "file needs path"),
        ({"file": {"path": 5}, "equal": 1}, "has to be a text"),
        ({"file": {"path": "/", "read": "mood"}, "equal": 1}, "has to be one of"),
        ({"command": {"argv": []}, "equal": 1}, "argv has to be a list"),
        ({"command": {"argv": "id"}, "equal": 1}, "argv has to be a list"),
        ({"command": {"argv": ["id"], "lines": "maybe"}, "equal": 1}, "true or false"),
        ({"command": {"argv": ["id"], "timeout_seconds": 0}, "equal": 1}, "number above 0"),
        ({"port": {"port": 22, "protocol": "sctp"}, "equal": True}, "has to be one of"),
    ],
)
def test_a_faulty_entry_is_unknown_and_its_neighbours_are_not(entry: dict[str, Any], words: str) -> None:
    before, faulty, after = evaluate([GOOD, entry, GOOD])
    assert (before["status"], after["status"]) == ("pass", "pass")
    assert faulty["status"] == "unknown"
    assert words in faulty["reason"]


def test_a_reader_with_a_fault_of_its_own_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_requests: list[Any]) -> list[Any]:
        raise ZeroDivisionError("oops")

    monkeypatch.setitem(hal_expect_evaluate.READ, "sysctl", broken)
    results = evaluate([{"sysctl": {"name": "a.b"}, "equal": 1}, GOOD])
    assert [one["status"] for one in results] == ["unknown", "pass"]
    assert "ZeroDivisionError: oops" in results[0]["reason"]


def test_a_matcher_with_a_fault_of_its_own_is_unknown_and_keeps_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_reading: Any, _wanted: Any) -> str:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setitem(JUDGES, "count", broken)
    entry = {"file": {"path": "/proc/sys/kernel/ostype"}, "count": 1}
    shown, secret, good = evaluate([entry, {**entry, "secret": True}, GOOD])
    assert [one["status"] for one in (shown, secret, good)] == ["unknown", "unknown", "pass"]
    assert shown["reason"] == "cannot be judged: hunter2"
    assert secret["reason"] == "cannot be judged: ZeroDivisionError"


@pytest.mark.parametrize(
    "entry",
    [
        {"file": {"path": "/proc/sys/kernel/ostype"}, "equal": "hunter2"},
        {"file": {"path": "/proc/sys/kernel/ostype"}, "contain": "hunter2"},
        {"file": {"path": "/proc/sys/kernel/ostype"}, "match": "hunter2"},
        {"file": {"path": "/proc/sys/kernel/ostype"}, "one_of": ["hunter2"]},
        {"file": {"path": "/proc/sys/kernel/ostype"}, "at_least": "hunter2"},
        {"file": {"path": "/proc/sys/kernel/ostype"}, "match": "hunter2("},
        {"command": {"argv": ["sh", "-c", "echo Linux hunter2 >&2; false"]}, "equal": "hunter2"},
        {"command": {"argv": ["echo", "Linux"], "json": True}, "equal": "hunter2"},
    ],
)
def test_a_secret_shows_neither_what_is_nor_what_should_be(entry: dict[str, Any]) -> None:
    result = evaluate([{**entry, "secret": True}])[0]
    assert result["status"] in ("fail", "unknown")
    assert "Linux" not in str(result)
    assert "hunter2" not in str(result)
    assert result["observed"] == "(secret)"


def test_without_secret_the_same_would_be_shown() -> None:
    result = evaluate([{"file": {"path": "/proc/sys/kernel/ostype"}, "contain": "hunter2"}])[0]
    assert (result["observed"], result["reason"]) == ("Linux", 'lacks "hunter2"')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(max_examples=60)
@given(
    st.sampled_from(["sysctl", "mount", "port", "kernel-module", "service", "package"]),
    JSON,
    st.sampled_from(["equal", "contain", "match", "count", "at_least", "at_most", "one_of", "absent"]),
    JSON,
)
def test_whatever_an_entry_says_there_is_a_result(reader: str, request: Any, matcher: str, wanted: Any) -> None:
    result, good = evaluate([{reader: request, matcher: wanted}, GOOD])
    assert result["status"] in ("pass", "fail", "unknown")
    assert good["status"] == "pass"
