"""The trail: what was done stays, whatever strangers ask for."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.roles.provision_server.test_store import NOW, place, trail  # noqa: F401  a fixture

trails: Any = importlib.import_module("provision_trail")
UNKNOWN = "no node has this address"


def lines(place: Any) -> list[dict[str, Any]]:  # noqa: F811
    """Who was refused, without the time."""
    path = Path(place.state, "refused.jsonl")
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert all(one.pop("at").endswith("Z") for one in found)
    return found


def test_a_refusal_is_written_once_and_then_counted(place: Any) -> None:  # noqa: F811
    refusals = trails.Refusals(place)
    for at in range(250):
        refusals.note(NOW + at, "hal05", "10.1.0.105", f"GET hal{at}", "another node's")
    said = {"node": "hal05", "address": "10.1.0.105", "result": "another node's"}
    assert lines(place) == [
        {**said, "what": "GET hal0"},
        {**said, "what": "GET hal9", "times": 10},
        {**said, "what": "GET hal99", "times": 100},
    ]
    refusals.note(NOW + 250, "hal05", "10.1.0.105", "secrets", "not the token")
    assert lines(place)[-1] == {**said, "what": "secrets", "result": "not the token"}


@pytest.mark.parametrize("later", [3600, -1])
def test_each_hour_is_counted_anew_and_so_is_a_clock_that_went_back(place: Any, later: int) -> None:  # noqa: F811
    refusals = trails.Refusals(place)
    for at in (NOW, NOW + 3599, NOW + later):
        refusals.note(at, None, "10.1.0.250", "GET hal05", UNKNOWN)
    assert len(lines(place)) == 2


def test_strangers_beyond_a_few_are_one(place: Any) -> None:  # noqa: F811
    refusals = trails.Refusals(place)
    for at in range(1, 131):
        refusals.note(NOW, None, f"10.1.7.{at}", f"GET x{at}", UNKNOWN)
    found = lines(place)
    assert [one["address"] for one in found[:20]] == [f"10.1.7.{at}" for at in range(1, 21)]
    others = {"node": None, "address": "others", "what": "", "result": UNKNOWN}
    assert found[20:] == [others, {**others, "times": 10}, {**others, "times": 100}]
    refusals.note(NOW, None, "10.1.7.3", "GET hal05", "only once")  # of these few it is still said
    assert lines(place)[-1]["address"] == "10.1.7.3"


ADDRESSES = st.integers(0, 10**6).map("10.{}".format)


@given(st.lists(st.tuples(ADDRESSES, st.text(max_size=20)), max_size=300))
def test_no_number_of_strangers_writes_more_than_a_few_lines_nor_into_what_was_done(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, str]]
) -> None:
    place = SimpleNamespace(state=str(tmp_path_factory.mktemp("trail")))  # noqa: F811
    trails.done(place, NOW, "hal05", None, "arm", "image")
    before = Path(place.state, "audit.jsonl").read_bytes()
    refusals = trails.Refusals(place)
    for address, what in asked:
        refusals.note(NOW, None, address, what, UNKNOWN)
    assert Path(place.state, "audit.jsonl").read_bytes() == before
    assert len(lines(place)) <= 3 * (trails.MOST_STRANGERS + 1)
    assert len(refusals._times) <= trails.MOST_STRANGERS + 1


def test_two_who_rotate_at_once_keep_what_was_done(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for _ in range(2):
        trails.done(place, NOW, "hal05", None, "arm", "an image")
    monkeypatch.setattr(trails, "MOST_BYTES", 150)  # more than a line, less than two
    old = Path(place.state, "audit.jsonl").read_text()
    assert len(old.splitlines()) == 2
    both, size_of = threading.Barrier(2), os.path.getsize

    def slowly(path: str) -> int:
        found = size_of(path)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.5)  # one alone goes on then: the other waits for the lock
        return found

    monkeypatch.setattr(trails.os.path, "getsize", slowly)
    wrong: list[Exception] = []

    def write(name: str) -> None:
        try:
            trails.done(place, NOW, name, None, "disarm", "done")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("hal06", "hal07")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert wrong == []
    assert Path(place.state, "audit.jsonl.1").read_text() == old
    assert sorted(one["node"] for one in trail(place)) == ["hal06", "hal07"]


def test_it_grows_to_two_files_and_no_more(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(trails, "MOST_BYTES", 1000)
    for at in range(100):
        trails.done(place, NOW, f"hal{at:03}", None, "arm", "an image")
    found = sorted(path for path in Path(place.state).iterdir() if path.name.startswith("audit"))
    assert [path.name for path in found] == ["audit.jsonl", "audit.jsonl.1"]
    assert all(path.stat().st_size < 1200 for path in found)
    assert trail(place)[-1]["node"] == "hal099"


@pytest.mark.parametrize("name", ["audit.jsonl: cannot be written", ".lock-trail cannot be locked"])
def test_what_cannot_be_written_is_named(place: Any, name: str) -> None:  # noqa: F811
    Path(place.state, re.split("[: ]", name)[0]).mkdir()
    with pytest.raises(trails.Problem, match=re.escape(f"/state/{name}: Is a directory")):
        trails.done(place, NOW, "hal05", None, "arm", "x")
