"""users.yml: every fault is one line that says where and what is right; ranges never overlap; sources find the file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.inventory.cli import main
from hal_inventory.compiled import Compiled
from hal_inventory.errors import FindingsError, UsersFileError
from hal_inventory.load import load_users, users_bytes
from hal_inventory.sources import read_source
from hal_inventory.users import FIRST_START, HIGHEST_SLOT, RANGE, SYSTEM_TOP, User, free_slot, start_of

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(__file__).parent / "data"
USERS = (DATA / "users.yml").read_text()
SMALL = (DATA / "small.yml").read_text()
REFUSALS = yaml.safe_load((DATA / "users_refusals.yml").read_text())


def findings(text: str) -> list[str]:
    try:
        users_bytes(text.encode(), "users.yml")
    except UsersFileError as error:
        return str(error).split("\n")
    return []


def test_the_file_that_faults_are_planted_in_is_sound() -> None:
    assert findings(USERS) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [pytest.param(case["replace"], case["by"], case["findings"], id=case["fault"]) for case in REFUSALS],
)
def test_a_fault_is_one_line_that_says_where_and_what_is_right(old: str, new: str, expected: list[str]) -> None:
    assert old in USERS
    assert findings(USERS.replace(old, new, 1)) == expected


def test_faults_of_every_kind_are_reported_in_one_run() -> None:
    text = USERS.replace("slot: 1", "slot: 0").replace("uid: 5003", "uid: many").replace("retired", "retird")
    assert findings(text) == [
        "users.yml:6: users.bob.slot: slot 0 is alice's (users.alice, line 3) for ever; the next free one is 1",
        'users.yml:9: users.carol.uid: must be a whole number, not "many"',
        'users.yml:13: users.dave.retird: unknown field; did you mean "retired"?',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "users.yml: is empty; a mapping of fields is expected"),
        ("format: 1\n\tusers: {}\n", "users.yml:2: is not YAML: "),
        ("users: {}\n", "users.yml:1: format: is missing"),
        ("format: 1\nusers: {a: {uid: '{{ x }}'}}\n", "a template is not evaluated here"),
    ],
)
def test_what_is_no_such_file_is_said_in_words(text: str, said: str) -> None:
    assert said in findings(text)[0]


def test_ranges_begin_where_singularity_begins() -> None:
    """singularity config fakeroot --add: 4294836224 first, then 65536 less for each."""
    assert [start_of(slot) for slot in (0, 1, 2)] == [4294836224, 4294770688, 4294705152]
    assert start_of(HIGHEST_SLOT) > SYSTEM_TOP >= start_of(HIGHEST_SLOT + 1)
    assert FIRST_START + RANGE - 1 < 2**32 - 2


@given(st.lists(st.integers(0, HIGHEST_SLOT), min_size=2, unique=True))
def test_two_slots_never_overlap(slots: list[int]) -> None:
    starts = sorted(start_of(slot) for slot in slots)
    assert all(after - before >= RANGE for before, after in pairwise(starts))


def test_the_next_free_slot_is_none_that_somebody_left() -> None:
    assert free_slot([User("a", 5001, 0), User("b", 5002, 1, retired=True), User("c", 5003)]) == 2


def slice_of(folder: Path, source: str = "plugin: hal\ncluster: cluster.yml\n") -> Any:
    (folder / "cluster.yml").write_text(SMALL)
    (folder / "hal.yml").write_text(source)
    return Compiled(folder / "hal.yml").slice("users", {})


def test_the_slice_has_everybody_with_his_range(tmp_path: Path) -> None:
    (tmp_path / "users.yml").write_text(USERS)
    assert slice_of(tmp_path) == {
        "alice": {"uid": 5001, "slot": 0, "start": 4294836224, "count": 65536, "enabled": True, "retired": False},
        "bob": {"uid": 5002, "slot": 1, "start": 4294770688, "count": 65536, "enabled": False, "retired": False},
        "carol": {"uid": 5003, "slot": None, "start": None, "count": None, "enabled": False, "retired": False},
        "dave": {"uid": 5004, "slot": 2, "start": 4294705152, "count": 65536, "enabled": False, "retired": True},
    }


def test_a_change_of_the_file_is_seen_at_once(tmp_path: Path) -> None:
    assert slice_of(tmp_path) == {}
    (tmp_path / "users.yml").write_text("format: 1\nusers: {erin: {uid: 5009}}\n")
    assert list(slice_of(tmp_path)) == ["erin"]


def test_a_source_names_another_file_or_takes_the_one_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "users.yml").write_text("format: 1\n")
    (tmp_path / "other.yml").write_text(USERS)
    assert list(slice_of(tmp_path, "plugin: hal\ncluster: cluster.yml\nusers: other.yml\n")) == [
        *("alice", "bob", "carol", "dave")
    ]
    with pytest.raises(FindingsError, match=r"missing.yml: no such file"):
        slice_of(tmp_path, "plugin: hal\ncluster: cluster.yml\nusers: missing.yml\n")


def test_faults_of_both_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "cluster.yml").write_text(SMALL.replace("role: login", "role: 7", 1))
    (tmp_path / "users.yml").write_text(USERS.replace("slot: 1", "slot: 0"))
    (tmp_path / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
    with pytest.raises(FindingsError) as caught:
        Compiled(tmp_path / "hal.yml").inventory()
    assert [Path(one.file).name for one in caught.value.findings] == ["cluster.yml", "users.yml"]


@pytest.mark.parametrize("site", ["hal", "virtual"])
def test_the_lists_of_the_repository_are_sound(site: str) -> None:
    users = load_users(ROOT / f"inventory/{site}/users.yml")
    assert [user.name for user in users] == {"hal": [], "virtual": ["alice", "bob", "hal-build"]}[site]
    source = read_source(ROOT / f"inventory/{site}/hal.yml")
    assert source.users_file is not None
    assert source.users_file.resolve() == ROOT / f"inventory/{site}/users.yml"


def test_validate_checks_a_list_of_users_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "users.yml"
    path.write_text(USERS)
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out.strip().endswith("users.yml: 4 users: no findings")
    path.write_text(USERS.replace("slot: 1", "slot: 0"))
    assert main(["validate", str(path)]) == 2
    assert "users.bob.slot: slot 0 is alice's" in capsys.readouterr().out
