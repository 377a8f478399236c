"""Borders of what the server's store takes and gives, whole documents that it writes, and what it says of them."""

from __future__ import annotations

import calendar
import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.roles.provision_server.refusals import problem
from tests.unit.roles.provision_server.test_store import NOW, WORDS, Place, an_order, settings_of, trail

store: Any = importlib.import_module("provision_store")
trails: Any = importlib.import_module("provision_trail")
HOME = "10.1.0.105"
STAMP = "2027-01-15T08:00:00Z"


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return Place(str(settings_of(tmp_path, [node("hal05", 5), node("hal06", 6)])))


@pytest.fixture
def armed(place: Any) -> Any:
    store.arm(place, "hal05", an_order(node()), NOW)
    return place


def document(place: Any, kind: str, name: str = "hal05") -> Any:
    return json.loads(Path(place.state, kind, name).read_text())


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("ab", "ab", True),
        ("ab", "bb", False),
        ("ab", "aa", False),
        ("ab", "a", False),
        ("a", "ab", False),
        ("`a", "a`", False),
        ("", "", True),
    ],
)
def test_digests_are_the_same_when_every_letter_is(one: str, other: str, equal: bool) -> None:
    assert store.same(one, other) is equal


def test_an_order_is_written_whole(armed: Any) -> None:
    order = an_order(node())
    kept = {key: order[key] for key in ("what", "config", "files", "expires")}
    assert document(armed, "armed") == {**kept, "node": "hal05", "armed": STAMP, "given": {}}
    token = {"sha256": order["token_sha256"], "address": HOME, "expires": NOW + 3600}
    assert sorted(path.name for path in Path(armed.state, "tokens").glob("hal05.*")) == [
        f"hal05.{purpose}" for purpose in ("begin", "call-home", "secrets", "stop")
    ]
    for purpose in store.PURPOSES:
        assert document(armed, "tokens", f"hal05.{purpose}") == token


@pytest.mark.parametrize(
    "changes",
    [
        {"expires": NOW + 86400},
        {"expires": NOW + 1},
        {"expires": NOW + 0.5},
        {"config": "x", "files": {"a" * 81: "x" * 131071}},
        {"files": {}},
    ],
)
def test_an_order_up_to_the_border_is_taken(place: Any, changes: dict[str, Any]) -> None:
    store.arm(place, "hal05", {**an_order(node()), **changes}, NOW)
    assert store.armed(place, "hal05", NOW)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"address": "10.1.0.9"},
            "the order is for address 10.1.0.9, and this server knows 10.1.0.105: roll out provision_server first",
        ),
        ({"expires": NOW - 1}, "the order runs out in -1 s; more than 0 s and at most 86400 s from now are taken"),
        ({"expires": None}, "the order runs out in None; more than 0 s and at most 86400 s from now are taken"),
        ({"files": {"a" * 82: ""}}, f"a file of the order has a name that is not served: {'a' * 82}"),
        ({"files": {"begin": ""}}, "a file of the order has a name that is not served: begin"),
        ({"token_sha256": "0" * 65}, "the order has no digest of a token"),
    ],
)
def test_an_order_beyond_it_is_refused_with_what_is_wrong(place: Any, changes: dict[str, Any], said: str) -> None:
    assert problem(store.arm, place, "hal05", {**an_order(node()), **changes}, NOW) == f"hal05: {said}"


def test_a_part_that_an_order_lacks_is_named_with_its_kind(place: Any) -> None:
    order = an_order(node())
    del order["files"]
    assert problem(store.arm, place, "hal05", order, NOW) == "hal05: the order has no files (a mapping)"


def test_an_order_takes_the_place_of_all_of_the_one_before(armed: Any) -> None:
    """Its secrets, too: and the order is the last to come, and the last to go."""
    store.spool(armed, "hal05", b"of before", NOW)
    done: dict[str, list[str]] = {"remove": [], "write_json": []}
    with pytest.MonkeyPatch.context() as patch:
        for name, real in (("remove", store.remove), ("write_json", store.write_json)):

            def noted(path: str, *words: Any, real: Any = real, paths: list[str] = done[name]) -> Any:
                paths.append(os.path.relpath(path, armed.state))
                return real(path, *words)

            patch.setattr(store, name, noted)
        store.arm(armed, "hal05", an_order(node()), NOW)
    tokens = [f"tokens/hal05.{purpose}" for purpose in store.PURPOSES]
    assert done["remove"] == ["spool/hal05", *reversed(tokens), "armed/hal05"]
    assert done["write_json"] == [*tokens, "armed/hal05"]


def test_status_says_all_of_a_node(armed: Any) -> None:
    store.spool(armed, "hal05", b"1", NOW)
    store.give(armed, "hal05", "kickstart.cfg", HOME, NOW)
    nothing = {
        "address": "10.1.0.106", "armed": False, "what": "", "until": "", "ran_out": False, "given": {}, "began": "",
        "unfinished": "", "stopped": None, "tokens": [], "secrets_wait": False, "called": None,
    }  # fmt: skip
    waits = {
        **nothing, "address": HOME, "armed": True, "what": "image compute-1", "until": "2027-01-15T09:00:00Z",
        "given": {"kickstart.cfg": 1}, "tokens": ["begin", "secrets", "call-home", "stop"], "secrets_wait": True,
    }  # fmt: skip
    seen = {"nodes": {"hal05": waits, "hal06": nothing}, "armed": ["hal05"], "unfinished": [], "unknown": []}
    assert store.status(armed, (), NOW) == seen
    assert store.status(armed, ["hal06"], NOW)["nodes"] == {"hal06": nothing}
    over = {**waits, "armed": False, "ran_out": True, "tokens": []}
    assert store.status(armed, ["hal05"], NOW + 3600)["nodes"]["hal05"] == over
    store.begin(armed, "hal05", WORDS, HOME, NOW)
    store.stop(armed, "hal05", WORDS, HOME, "no disk", NOW)
    store.call_home(armed, "hal05", WORDS, HOME, "done", NOW)
    called = {"node": "hal05", "at": STAMP, "address": HOME, "said": "done", "began": STAMP}
    assert store.status(armed, ["hal05"], NOW)["nodes"]["hal05"] == {
        **nothing, "address": HOME, "began": STAMP, "called": called
    }  # fmt: skip


def test_a_call_home_of_what_never_began_says_so(armed: Any) -> None:
    """Nor is it the beginning of an earlier one."""
    for _ in range(2):
        store.call_home(armed, "hal05", WORDS, HOME, "x", NOW)
        assert document(armed, "calls") == {"node": "hal05", "at": STAMP, "address": HOME, "said": "x"}
        store.arm(armed, "hal05", an_order(node()), NOW)
        store.begin(armed, "hal05", WORDS, HOME, NOW)
        assert document(armed, "calls") == {"node": "hal05", "began": STAMP, "what": "image compute-1"}
        store.call_home(armed, "hal05", WORDS, HOME, "x", NOW)
        store.arm(armed, "hal05", an_order(node()), NOW)


def test_files_of_strangers_are_named_and_those_that_are_written_just_now_are_not(armed: Any) -> None:
    for name in ("armed/hal09", "spool/hal08", "armed/.new-x", "tokens/hal07.begin", "calls/hal07"):
        Path(armed.state, name).touch()
    assert store.status(armed, (), NOW)["unknown"] == ["armed/hal09", "spool/hal08"]


@pytest.mark.parametrize(("size", "taken"), [(0, False), (1, True), (1048576, True), (1048577, False)])
def test_secrets_have_a_size(armed: Any, size: int, taken: bool) -> None:
    if taken:
        store.spool(armed, "hal05", b"x" * size, NOW)
        assert Path(armed.state, "spool", "hal05").stat().st_size == size
    else:
        said = f"hal05: {size} bytes of secrets; 1 to 1048576 are taken"
        assert problem(store.spool, armed, "hal05", b"x" * size, NOW) == said


def test_secrets_of_a_node_that_is_not_there_are_not_kept(place: Any) -> None:
    assert problem(store.spool, place, "hal09", b"x", NOW).startswith("hal09: this server has no such node")
    assert sorted(os.listdir(Path(place.state, "spool"))) == []
    assert os.listdir(Path(place.state, "tokens")) == []


def test_secrets_that_cannot_be_read_use_no_token_up(armed: Any) -> None:
    path = Path(armed.state, "spool", "hal05")
    path.mkdir()
    said = f"{path}: cannot be read: Is a directory"
    assert problem(store.redeem_secrets, armed, "hal05", WORDS, HOME, NOW) == said
    path.rmdir()
    store.spool(armed, "hal05", b"key", NOW)
    assert store.redeem_secrets(armed, "hal05", WORDS, HOME, NOW) == b"key"


def test_how_often_a_file_was_given_is_counted_to_a_thousand(armed: Any) -> None:
    for count in (998, 999, 1000, 1000):
        store.give(armed, "hal05", "kickstart.cfg", HOME, NOW)
        order = document(armed, "armed")
        if count == 998:
            order["given"]["kickstart.cfg"] = 998
            Path(armed.state, "armed", "hal05").write_text(json.dumps(order))
        else:
            assert order["given"] == {"kickstart.cfg": count}
    said = [(line["address"], line["result"]) for line in trail(armed) if line["what"] == "GET kickstart.cfg"]
    assert said == [(HOME, "given"), (HOME, "given, 1000 times since it was armed")]


def test_each_reason_for_a_stop_is_kept_and_few_are_in_the_trail(armed: Any) -> None:
    for at in range(1, 12):
        store.stop(armed, "hal05", WORDS, HOME, f"reason {at}", NOW + at)
    order = document(armed, "armed")
    assert (order["stops"], order["stopped"]) == (11, {"at": "2027-01-15T08:00:11Z", "why": "reason 11"})
    assert [line["result"] for line in trail(armed) if line["what"] == "stop"] == ["reason 1", "reason 10"]
    assert not Path(armed.state, "calls", "hal05").exists()
    store.begin(armed, "hal05", WORDS, HOME, NOW)
    store.stop(armed, "hal05", WORDS, HOME, "broken", NOW)
    began = {"node": "hal05", "began": STAMP, "what": "image compute-1"}
    assert document(armed, "calls") == {**began, "stopped": {"at": STAMP, "why": "broken"}}
    said = (
        f"installation began at {STAMP}, did not call home: image compute-1; its installer stopped at {STAMP}: broken"
    )
    assert store.unfinished(armed, "hal05") == said


@pytest.mark.parametrize("purpose", ["begin", "stop"])
def test_a_token_whose_order_is_gone_does_nothing(armed: Any, purpose: str) -> None:
    Path(armed.state, "armed", "hal05").unlink()
    words = ("hal05", WORDS, HOME, "x", NOW) if purpose == "stop" else ("hal05", WORDS, HOME, NOW)
    assert problem(getattr(store, purpose), armed, *words) == "it is not armed"
    assert Path(armed.state, "tokens", f"hal05.{purpose}").exists()


def test_a_token_of_another_hour_is_said_with_its_end(armed: Any) -> None:
    refusal = store.refusal
    assert refusal(armed, "hal05", "begin", WORDS, HOME, NOW + 3599) is None
    assert refusal(armed, "hal05", "begin", WORDS, HOME, NOW + 3600) == "the token ran out at 2027-01-15T09:00:00Z"
    assert refusal(armed, "hal05", "begin", WORDS, HOME, NOW + 3600 - 86400) is None
    assert refusal(armed, "hal05", "begin", WORDS, HOME, NOW + 3599 - 86400) == (
        "the token is good until 2027-01-15T09:00:00Z, and no order lasts so long: this server's clock went back"
    )


def test_what_is_used_is_gone_and_nothing_else(armed: Any) -> None:
    def there() -> list[str]:
        return sorted(path.name for path in Path(armed.state, "tokens").glob("hal05.*"))

    store.spool(armed, "hal05", b"1", NOW)
    store.begin(armed, "hal05", WORDS, HOME, NOW)
    assert there() == ["hal05.call-home", "hal05.secrets", "hal05.stop"]
    store.redeem_secrets(armed, "hal05", WORDS, HOME, NOW)
    assert there() == ["hal05.call-home", "hal05.stop"]
    assert not Path(armed.state, "spool", "hal05").exists()
    store.call_home(armed, "hal05", WORDS, HOME, "x", NOW)
    assert there() == []


@pytest.mark.parametrize("what", ["token", "spool"])
def test_what_is_left_of_an_order_is_disarmed(armed: Any, what: str) -> None:
    """An order that broke off: any of its files is one to take back."""
    store.disarm(armed, "hal05", NOW)
    lines = len(trail(armed))
    path = Path(armed.state, "tokens/hal05.stop" if what == "token" else "spool/hal05")
    path.write_text("{}")
    assert store.disarm(armed, "hal05", NOW) == "was not armed"
    assert not path.exists()
    assert [line["result"] for line in trail(armed)][lines:] == ["done"]


def test_now_is_now_unless_said(place: Any) -> None:
    order = an_order(node(), expires=time.time() + 600)
    store.arm(place, "hal05", order)
    store.spool(place, "hal05", b"1")
    store.stop(place, "hal05", WORDS, HOME, "x")
    store.begin(place, "hal05", WORDS, HOME)
    assert store.redeem_secrets(place, "hal05", WORDS, HOME) == b"1"
    assert store.status(place)["unfinished"] == ["hal05"]
    store.call_home(place, "hal05", WORDS, HOME, "x")
    store.arm(place, "hal05", order)
    assert store.disarm(place, "hal05") == "disarmed"
    now = time.time()
    assert all(
        abs(calendar.timegm(time.strptime(line["at"][:10], "%Y-%m-%d")) - now) < 3 * 86400 for line in trail(place)
    )


# ---------------------------------------------------------------- the trail


def test_a_line_of_the_trail_says_all(place: Any) -> None:
    trails.done(place, NOW, "hal05", HOME, "arm", "größe")
    line = {"node": "hal05", "address": HOME, "what": "arm", "result": "größe", "at": STAMP}
    assert Path(place.state, "audit.jsonl").read_text() == json.dumps(line, sort_keys=True) + "\n"
    assert Path(place.state, "audit.jsonl").stat().st_mode & 0o777 == 0o600
    before = len(os.listdir("/proc/self/fd"))
    trails.done(place, NOW, None, None, "arm", "x")
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(trail(place)) == 2


def test_a_file_of_the_trail_ends_where_it_is_too_large(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trails.done(place, NOW, "hal05", None, "arm", "x")
    path = Path(place.state, "audit.jsonl")
    monkeypatch.setattr(trails, "MOST_BYTES", path.stat().st_size)
    trails.done(place, NOW, "hal05", None, "arm", "x")
    assert len(trail(place)) == 2
    trails.done(place, NOW, "hal05", None, "arm", "x")
    assert (len(trail(place)), len(path.with_name("audit.jsonl.1").read_text().splitlines())) == (1, 2)


@pytest.mark.parametrize(
    ("times", "worth"), [(1, True), (2, False), (10, True), (11, False), (20, False), (100, True), (101, False)]
)
def test_the_first_and_each_power_of_ten_are_worth_a_line(times: int, worth: bool) -> None:
    assert trails.worth(times) is worth


def test_an_hour_ends_with_its_last_second(place: Any) -> None:
    refusals = trails.Refusals(place)
    said = [refusals.note(NOW + at, "hal05", HOME, "x", "no") for at in (0, 3599.9, 3600, 3601, 7199, 7200)]
    assert said == [True, False, True, False, False, True]
