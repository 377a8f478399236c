"""What is said of disks and arrays, in whole sentences, and which of several faults do not hide one another."""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.modules import loaded

from .conftest import plan_module, volume
from .test_plan import EXT4, MIRROR, SIXTY, member, plan, running, state

storage = importlib.import_module("ansible.module_utils.hal_node.storage.state")
ARRAY = MIRROR[0]["arrays"][0]
BLOCK = {"MD_NAME": "old:x", "MD_UUID": "u"}


@pytest.mark.parametrize(
    ("changes", "words", "empty"),
    [
        ({}, "empty", True),
        ({"blank": False}, "data without a signature", False),
        ({"signatures": ["dos", "sda1: xfs"], "blank": False}, "dos, sda1: xfs", False),
        ({"superblock": BLOCK}, "member of md array old:x (u)", False),
        ({"superblock": {"MD_LEVEL": "raid1"}}, "member of md array ? (?)", False),
        ({"partitions": ["/dev/a1", "/dev/a2"], "blank": False}, "2 partitions", False),
        ({"uses": ["swap", "held by md1"]}, "swap, held by md1", False),
        ({"file_system": {"TYPE": "xfs"}}, "empty", False),
        (
            {"signatures": ["a"], "superblock": BLOCK, "partitions": ["p"], "uses": ["u"], "blank": False},
            "a, member of md array old:x (u), 1 partitions, u",
            False,
        ),
    ],
)
def test_what_is_on_a_disk_in_words(changes: dict[str, Any], words: str, *, empty: bool) -> None:
    found = volume("/dev/disk/by-id/wwn-0x50241", **changes)
    assert (plan_module.contents(found), plan_module.is_empty(found)) == (words, empty)
    assert plan_module.described("bay1", "/dev/x/y-z", {**found, "model": "", "serial": "", "size": 1_250_000_000}) == (
        f"bay1 y-z, model ?, serial ?, 1.2 GB: {words}"
    )


def test_a_code_is_of_the_node_and_of_the_lines_in_any_order() -> None:
    digest = hashlib.sha256(b'["n", ["a", "b"]]').hexdigest()
    assert plan_module.code_of("n", ["b", "a"]) == f"{digest[:4]}-{digest[4:8]}"
    found = state(MIRROR, b=EXT4)
    code = plan(MIRROR, found)["code"]
    for typed in (code, f" {code.upper()}\n"):
        assert plan(MIRROR, found, confirm=typed)["confirmed"] is True
    assert [plan(MIRROR, found, confirm=typed)["confirmed"] for typed in ("", None, "x")] == [False] * 3


@pytest.mark.parametrize(
    ("how", "said"),
    [("inactive", "images is not started: too few disks as /dev/md9"), ("clean", "images runs as /dev/md9")],
)
def test_an_array_that_runs_under_another_name_is_told(how: str, said: str) -> None:
    found = state(MIRROR)
    found["arrays"] = {"md8": {"name": "data01:other"}, "md9": {"name": "data01:images", "state": how}}
    made = plan(MIRROR, found, create_ok=True)
    assert (made["refused"], made["steps"]) == ([f"images: {said}, see docs/local-storage.md"], [])


@pytest.mark.parametrize(
    ("changes", "have"),
    [
        ({"level": "raid0"}, "raid0 of 2 disks and called data01:images"),
        ({"raid_disks": 3}, "raid1 of 3 disks and called data01:images"),
        ({"name": "data02:images"}, "raid1 of 2 disks and called data02:images"),
        ({"name": ""}, "raid1 of 2 disks and called ?"),
    ],
)
def test_an_array_in_its_place_that_is_another_is_told(changes: dict[str, Any], have: str) -> None:
    found = state(MIRROR)
    running(found, ARRAY, "md127")
    found["arrays"]["md127"].update(changes)
    said = f"images: /dev/md/images is {have}; declared is raid1 of 2, called data01:images"
    assert plan(MIRROR, found, create_ok=True)["refused"] == [said]


@pytest.mark.parametrize(("label", "called"), [({"LABEL": "old"}, "old"), ({}, "?")])
def test_another_file_system_that_is_in_use_is_told(label: dict[str, str], called: str) -> None:
    found = state(MIRROR)
    on_it = {"file_system": {"TYPE": "xfs", **label}, "uses": ["mounted at /x"], "blank": False}
    running(found, ARRAY, "md127", **on_it)
    said = f"images: an XFS called {called} is in use there; declared is images"
    assert plan(MIRROR, found, create_ok=True)["refused"] == [said]
    found["volumes"][ARRAY["path"]] = None
    assert plan(MIRROR, found)["refused"] == ["images: /dev/md/images is not in the machine"]


def test_members_of_another_shape_are_told_with_theirs() -> None:
    block = member({**ARRAY, "members": [1, 2, 3]})
    said = "images: b is of an array data01:images that is raid1 of 3 disks; declared is raid1 of 2, see"
    (refused,) = plan(MIRROR, state(MIRROR, b=block), create_ok=True)["refused"]
    assert refused == f"{said} docs/local-storage.md"


def test_all_disks_that_are_missing_are_told() -> None:
    (refused,) = plan(MIRROR, state(MIRROR, a=None, b=None), create_ok=True)["refused"]
    names = [f"{disk['name']} ({disk['path'].rsplit('/', 1)[-1]})" for disk in MIRROR[0]["disks"]]
    assert refused == f"images: images cannot be made: not in the machine: {', '.join(names)}"


def test_halves_that_cannot_be_made_do_not_hide_what_comes_after() -> None:
    """A half that waits for others is passed over; a half that runs, too."""
    found = state(SIXTY)
    running(found, SIXTY[0]["arrays"][1], "md126")
    assert [step["what"] for step in plan(SIXTY, found, create_ok=True)["steps"]] == ["make internal-a"]


# ---------------------------------------------------------------- what is not as declared
def test_one_array_that_does_not_run_does_not_hide_another(monkeypatch: pytest.MonkeyPatch) -> None:
    node = SimpleNamespace(
        kernel_name={"/md/a": None, "/md/b": "md2", "/md/c": "md3"}.get, text=lambda *_: "", links=dict, shown=dict
    )
    plain = {"level": "raid1", "chunk_kb": 0, "members": []}
    arrays = [{"name": name, "path": f"/md/{name}", **plain} for name in "abc"]
    runs = {"level": "raid1", "chunk_kb": 4, "raid_disks": 0, "members": {}, "degraded": 0, "state": "clean"}
    there = {"md2": {**runs, "level": "raid0", "raid_disks": 5, "chunk_kb": 8}, "md3": {**runs, "state": "inactive"}}
    one = {"name": "s", "disks": [], "arrays": arrays}
    assert storage.set_differences(node, [], one, there) == [
        "s: a does not run",
        "s: b: level is raid0, declared raid1",
        "s: b: number of disks is 5, declared 0",
        "s: c is inactive",
    ]


@pytest.mark.parametrize("runs", ["clean", "active", "active-idle", "write-pending", "readonly", "read-auto"])
def test_these_states_are_of_arrays_that_run(runs: str) -> None:
    array = {"members": {}, "degraded": 0, "raid_disks": 2, "state": runs}
    assert storage.array_state("a", array, {}, None) == []
    assert storage.array_state("a", {**array, "state": "suspended"}, {}, None) == ["a is suspended"]


# ---------------------------------------------------------------- erasing
def test_zeros_are_written_before_the_disk_is_told_to_keep_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a disk so small that they would wait in this process."""
    module, disk, seen = loaded("hal_raid_set"), tmp_path / "disk", list[bytes]()
    disk.write_bytes(b"x" * 100)
    monkeypatch.setattr(module.os, "fsync", lambda handle: seen.append(os.pread(handle, 200, 0)))
    module.zero_edges(str(disk))
    assert seen == [b"\0" * 100]
