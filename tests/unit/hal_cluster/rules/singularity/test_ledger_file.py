"""The ledger's file: its text, its mode and its way to the disk; what is said of one that cannot be read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hal_cluster import lock as shared
from hal_cluster.rules.singularity.ledger import LedgerError, read, remember, slots_new
from hal_inventory.users import User

USERS = {user.name: user.as_dict() for user in (User("bob", 5002, 10), User("al", 5001, 9), User("x", 5003))}
WAY = "bring it back from a backup, or remove it: the nodes' /etc/subuid is compared too"


def test_it_is_written_in_order_and_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done, replace = tmp_path / "slots.json", list[Any](), os.replace

    def replaced(one: str, other: Path) -> None:
        done.append("name")
        replace(one, other)

    monkeypatch.setattr(os, "fsync", lambda handle: done.append(os.fstat(handle).st_size))
    monkeypatch.setattr(os, "replace", replaced)
    assert remember(path, USERS) is True
    text = (
        '{\n "format": 1,\n "slots": {\n  "9": {\n   "name": "al",\n   "uid": 5001\n  },\n'
        '  "10": {\n   "name": "bob",\n   "uid": 5002\n  }\n }\n}\n'
    )
    assert path.read_text() == text
    assert done == [len(text), "name"]
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("slots.json", "slots.lock")] == [0o600] * 2


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "slots.json"
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        remember(path, USERS)
    assert os.listdir(tmp_path) == ["slots.lock"]


def test_another_that_holds_it_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "slots.lock"
    monkeypatch.setattr(shared, "WAIT_SECONDS", 0)
    with (
        shared.locked(lock, LedgerError, "x"),
        pytest.raises(LedgerError, match=r"^the slots of users: process \d+ on "),
    ):
        remember(tmp_path / "slots.json", USERS)
    assert os.listdir(tmp_path) == ["slots.lock"]
    assert remember(tmp_path / "slots.json", USERS) is True


def test_what_this_checkout_does_not_know_is_told(tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    assert slots_new(USERS, str(path)) is True
    assert slots_new({"x": USERS["x"]}, str(path)) is False
    remember(path, USERS)
    assert slots_new(USERS, str(path)) is False
    assert remember(path, USERS) is remember(path, USERS, dry=True) is False


def test_its_folder_and_those_above_are_made_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert remember(tmp_path / "state/of/slots.json", USERS)
        assert remember(tmp_path / "state/of/more.json", USERS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state/of").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ('{"slots": {}}', 0o600, f"is damaged ('format'); {WAY}"),
        ('{"format": "1", "slots": {}}', 0o600, "format '1' is not 1: written by another release"),
        ('{"format": 1, "slots": []}', 0o600, f"is damaged ('list' object has no attribute 'items'); {WAY}"),
        ("{}", 0o610, f"belongs to uid {os.geteuid()} with mode 0610; it has to be yours, with 0600: others could give"
         " slots away"),
        ("{}", 0o604, f"belongs to uid {os.geteuid()} with mode 0604; it has to be yours, with 0600: others could give"
         " slots away"),
    ],
)  # fmt: skip
def test_one_that_cannot_be_used_is_told(tmp_path: Path, content: str, mode: int, said: str) -> None:
    path = tmp_path / "slots.json"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(LedgerError) as refused:
        read(path)
    assert str(refused.value) == f"{path}: {said}"


def test_one_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as refused:
        read(tmp_path)
    assert str(refused.value) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.root
def test_one_of_somebody_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "slots.json"
    remember(path, USERS)
    os.chown(path, 5001, 0)
    with pytest.raises(LedgerError, match="belongs to uid 5001 with mode 0600; it has to be yours"):
        read(path)
