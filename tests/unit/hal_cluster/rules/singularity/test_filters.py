"""What the rules of singularity make of users and of names of images, and what they say of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from hal_cluster.rules.singularity import ledger, registry
from hal_cluster.rules.singularity.ledger import LedgerError, read, remember
from hal_inventory.users import User
from plugins.filter.hal_singularity import FilterModule

ALICE = User("alice", 5001, 0)


def users(*made: User) -> dict[str, dict[str, Any]]:
    return {user.name: user.as_dict() for user in made}


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "tensorflow-2.4_py3", "a.b", "sif", "a.sif.b", "a-b-c"])
def test_a_name_of_an_image_is_taken(name: str) -> None:
    assert registry.name_problem(name) == ""


@pytest.mark.parametrize("name", ["", "a" * 64, "A", "-a", ".a", "_a", "a b", "a\n", "a.sif", "a.json", "a--b", "ä"])
def test_what_is_no_name_of_an_image_is_shown(name: str) -> None:
    assert registry.name_problem(name) == (
        f"{name!r} is not a name of an image: small letters, digits, . _ -, at most 63, without .sif; never two dashes"
        " in a row, which stand before the date of an older one"
    )


def test_a_user_who_may_not_has_a_mark_before_the_line() -> None:
    user = {"uid": 5001, "start": 100000, "count": 65536, "enabled": True}
    assert ledger.subid_line(user) == "5001:100000:65536"
    assert ledger.subid_line({**user, "enabled": False}) == "!5001:100000:65536"


def test_slots_are_users_with_their_names() -> None:
    assert ledger.slots({"alice": {"uid": 1}, "bob": {"uid": 2}}) == [
        {"name": "alice", "uid": 1},
        {"name": "bob", "uid": 2},
    ]


def test_a_slot_is_new_until_it_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "new" / "slots.json"
    assert ledger.slots_new(users(ALICE), str(path)) is True
    assert ledger.slot_problems(users(ALICE), str(path)) == []
    assert remember(path, users(ALICE), dry=True) is True
    assert not path.parent.exists()
    assert remember(path, users(ALICE)) is True
    assert ledger.slots_new(users(ALICE), str(path)) is False
    assert remember(path, users(ALICE), dry=True) is False
    assert remember(path, users(ALICE)) is False
    assert not ledger.slots_new(users(User("carol", 5003, None)), str(path))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_that_cannot_be_read_is_a_problem_in_one_line(tmp_path: Path) -> None:
    (said,) = ledger.slot_problems(users(ALICE), str(tmp_path))
    assert said.startswith(f"{tmp_path}: ")
    with pytest.raises(LedgerError):
        read(tmp_path)


def test_a_ledger_that_others_may_read_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    remember(path, users(ALICE))
    for mode in (0o640, 0o604, 0o601):
        path.chmod(mode)
        (said,) = ledger.slot_problems(users(ALICE), str(path))
        assert f"with mode {mode:04o}; it has to be yours, with 0600: others could give slots away" in said


def test_a_write_that_fails_leaves_the_ledger_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "slots.json"
    remember(path, users(ALICE))
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        remember(path, users(ALICE, User("bob", 5002, 1)))
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["slots.json", "slots.lock"]


def test_a_ledger_that_cannot_be_used_is_an_error_of_ansibles(tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    path.write_text("{")
    path.chmod(0o600)
    with pytest.raises(AnsibleFilterError, match=r"slots\.json: is damaged"):
        FilterModule().filters()["hal_slots_new"](users(ALICE), str(path))
