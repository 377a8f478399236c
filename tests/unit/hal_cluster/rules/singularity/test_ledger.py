"""A slot that was ever given is never given to somebody else, whatever users.yml says by then."""

from __future__ import annotations

import importlib.util
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.singularity.ledger import LedgerError, problems, read, remember, slot_problems, slots, slots_new
from hal_inventory.users import User

ROOT = Path(__file__).resolve().parents[5]


def users(*made: User) -> dict[str, dict[str, Any]]:
    return {user.name: user.as_dict() for user in made}


ALICE, BOB = User("alice", 5001, 0), User("bob", 5002, 1)


@pytest.fixture
def refusal() -> Any:
    """A function: ledger, users -> the lines of the refusal, which changes nothing and which validate says as well."""

    def refused(path: Path, *made: User) -> list[str]:
        before = path.read_bytes()
        with pytest.raises(LedgerError) as caught:
            remember(path, users(*made))
        assert path.read_bytes() == before
        assert slot_problems(users(*made), str(path)) == str(caught.value).split("\n")
        return str(caught.value).split("\n")

    return refused


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "singularity" / "slots.json"
    assert remember(path, users(ALICE, BOB))
    return path


def test_it_is_root_s_alone_and_grows(ledger: Path) -> None:
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert ledger.parent.stat().st_mode & 0o777 == 0o700
    assert not remember(ledger, users(ALICE, BOB)), "nothing new"
    assert remember(ledger, users(ALICE, BOB, User("carol", 5003, 2), User("dave", 5004)))
    assert read(ledger) == {
        0: {"name": "alice", "uid": 5001},
        1: {"name": "bob", "uid": 5002},
        2: {"name": "carol", "uid": 5003},
    }
    assert sorted(path.name for path in ledger.parent.iterdir()) == ["slots.json", "slots.lock"]


def test_a_slot_given_to_somebody_else_is_refused(ledger: Path, refusal: Any) -> None:
    assert refusal(ledger, ALICE, User("erin", 5005, 1)) == [
        "users.yml: slot 1 was given to bob (uid 5002) and is never given again; erin needs another"
        f" (remembered in {ledger})",
        "users.yml: bob (uid 5002) had slot 1 and is not there any more; write"
        f" bob: {{uid: 5002, slot: 1, retired: true}} (remembered in {ledger})",
    ]


def test_a_user_who_is_taken_out_is_asked_for(ledger: Path, refusal: Any) -> None:
    (said,) = refusal(ledger, ALICE)
    assert "bob: {uid: 5002, slot: 1, retired: true}" in said
    assert not remember(ledger, users(ALICE, User("bob", 5002, 1, retired=True)))


@pytest.mark.parametrize(("changed", "now"), [(User("bob", 5002), "none"), (User("bob", 5002, 7), "slot 7")])
def test_a_slot_does_not_change(ledger: Path, refusal: Any, changed: User, now: str) -> None:
    (said,) = refusal(ledger, ALICE, changed)
    assert said.startswith(f"users.yml: bob has had slot 1, and now {now}; a slot is for ever")


def test_a_swap_is_two_faults(ledger: Path, refusal: Any) -> None:
    assert len(refusal(ledger, User("alice", 5001, 1), User("bob", 5002, 0))) == 4


def test_an_account_may_be_renamed(ledger: Path) -> None:
    assert not remember(ledger, users(User("alicia", 5001, 0), BOB))


def test_another_uid_of_the_same_name_is_somebody_else(ledger: Path, refusal: Any) -> None:
    assert "slot 0 was given to alice (uid 5001)" in refusal(ledger, User("alice", 6001, 0), BOB)[0]


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state" / "slots.json"
    assert remember(path, users(ALICE), dry=True)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("{", 0o600, "is damaged"),
        ("[]", 0o600, "is damaged"),
        ('{"format": 1, "slots": {"a": {}}}', 0o600, "is damaged"),
        ('{"format": 2, "slots": {}}', 0o600, "written by another release"),
        ('{"format": 1, "slots": {}}', 0o644, "has to be yours, with 0600"),
    ],
)
def test_a_ledger_that_cannot_be_trusted_stops_everything(
    ledger: Path, refusal: Any, content: str, mode: int, said: str
) -> None:
    ledger.write_text(content)
    ledger.chmod(mode)
    assert said in refusal(ledger, ALICE, BOB)[0]


def test_forks_write_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    lists = [users(*(User(f"u{number}", 5000 + number, number) for number in range(top))) for top in range(1, 9)]
    with ProcessPoolExecutor(4) as pool:
        # A shorter list after a longer one is refused: somebody is missing from it.
        written = list(pool.map(_tried, [path] * len(lists), lists))
    # What was said to be written is there: no fork has put an older ledger over another's.
    longest = max(len(listed) for listed, done in zip(lists, written, strict=True) if done)
    assert {int(slot) for slot in json.loads(path.read_text())["slots"]} == set(range(longest))
    assert os.listdir(tmp_path).count("slots.json") == 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".slots-")]


def _tried(path: Path, listed: dict[str, Any]) -> bool:
    try:
        return remember(path, listed)
    except LedgerError:
        return False


@given(st.lists(st.tuples(st.integers(5000, 5004), st.integers(0, 4)), max_size=6))
def test_whatever_is_declared_one_slot_has_one_owner_for_ever(history: list[tuple[int, int]]) -> None:
    given: dict[int, dict[str, Any]] = {}
    for uid, slot in history:
        listed = users(User(f"u{uid}", uid, slot))
        if problems(given, listed, Path("x")):
            continue
        assert given.get(slot, {"uid": uid})["uid"] == uid
        given[slot] = {"name": f"u{uid}", "uid": uid}


# ---------------------------------------------------------------- two checkouts, one site
class Site:
    """The node that every new slot is written on first: its file, read and planned as the module does it."""

    def __init__(self, lines: Any) -> None:
        """Without a line."""
        self.lines, self.text = lines, ""

    def write(self, listed: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Write the ranges, or refuse, as a result of the module."""
        made = [{"name": name, **user} for name, user in listed.items() if user["slot"] is not None]
        found = self.lines.problems("/etc/subuid", self.lines.parse(self.text), made)
        if found:
            return {"failed": True, "msg": "\n".join(found)}
        self.text, _ = self.lines.planned(self.lines.parse(self.text), made, False)
        return {"changed": True}


@pytest.fixture
def rollout(lines: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: checkout's ledger, users -> result of the task on that node; None where it is not asked."""
    spec = importlib.util.spec_from_file_location("action_hal_subids", ROOT / "plugins/action/hal_subids.py")
    assert spec is not None
    assert spec.loader is not None
    action = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(action)
    site = Site(lines)
    monkeypatch.setattr(action.BoundedAction, "run", lambda *_, **__: {})

    def run(path: Path, *made: User) -> dict[str, Any] | None:
        listed = users(*made)
        if not slots_new(listed, str(path)):
            return None
        plugin = action.ActionModule.__new__(action.ActionModule)
        arguments = {"users": slots(listed), "ledger": str(path), "first": True}
        plugin._task = SimpleNamespace(args=arguments, check_mode=False)
        plugin._execute_module = lambda **_: site.write(listed)
        result: dict[str, Any] = plugin.run()
        return result

    return run


def test_of_two_checkouts_that_give_one_slot_the_second_is_refused(rollout: Any, tmp_path: Path) -> None:
    here, there = tmp_path / "here/slots.json", tmp_path / "there/slots.json"
    erin, frank = User("erin", 5005, 1), User("frank", 5006, 1)
    assert rollout(here, ALICE, erin) == {"changed": True}
    refused = rollout(there, ALICE, frank)
    assert refused["failed"]
    assert refused["msg"] == (
        "/etc/subuid:2: slot 1 was given to 5005 and is never given again; frank needs another in users.yml, and the"
        " entry of 5005 has to be there (another checkout may have it)"
    )
    assert not there.exists(), "a slot that was refused was not given"
    assert rollout(there, ALICE, erin, User("frank", 5006, 2)) == {"changed": True}
    assert read(there)[2] == {"name": "frank", "uid": 5006}


def test_a_slot_that_this_checkout_gave_needs_that_node_no_more(rollout: Any, tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    assert rollout(path, ALICE, BOB) == {"changed": True}
    assert rollout(path, ALICE, User("bob", 5002, 1, retired=True), User("carol", 5003)) is None
