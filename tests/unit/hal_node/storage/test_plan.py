"""What is done to disks, and what only with the code of exactly what is on them."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import disks, plan_module, raid, sets, volume

WWNS = disks("a", "b", "c", "d", "e", "f", "g", "h")
MIRROR = sets(raid("images", "raid1", ["a", "b"], WWNS), wwns=WWNS)
SIXTY = sets(raid("internal", "raid60", list(WWNS), WWNS, chunk_kb=64), wwns=WWNS)
EXT4 = {"signatures": ["ext4 (thesis)"], "file_system": {"TYPE": "ext4"}, "blank": False}


def state(declared: list[dict[str, Any]], **changed: dict[str, Any] | None) -> dict[str, Any]:
    """Empty disks of these sets; changes by name of the disk, None for one that is not there."""
    volumes: dict[str, Any] = {}
    for one in declared:
        for disk in one["disks"]:
            change = changed.get(disk["name"], {})
            volumes[disk["path"]] = None if change is None else volume(disk["path"], **change)
    names = {path: found["device"][5:] for path, found in volumes.items() if found}
    return {"volumes": volumes, "kernel_names": names, "arrays": {}}


def member(array: dict[str, Any], uuid: str = "u1", node: str = "data01") -> dict[str, Any]:
    """What a member of this array looks like."""
    block = {"MD_NAME": f"{node}:{array['name']}", "MD_LEVEL": array["level"], "MD_UUID": uuid}
    block["MD_DEVICES"] = str(len(array["members"]))
    return {"signatures": ["linux_raid_member"], "superblock": block, "blank": False}


def running(found: dict[str, Any], array: dict[str, Any], kernel: str, **on_it: Any) -> None:
    """Let an array run in this state."""
    found["arrays"][kernel] = {
        "name": f"data01:{array['name']}", "uuid": "u1", "level": array["level"], "raid_disks": len(array["members"]),
        "state": "clean", "members": {},
    }  # fmt: skip
    found["kernel_names"][array["path"]] = kernel
    found["volumes"][array["path"]] = volume(array["path"], **{"device": f"/dev/{kernel}", **on_it})


def plan(declared: list[dict[str, Any]], found: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The plan of the node data01."""
    made: dict[str, Any] = plan_module.Planner("data01", declared, found, **options).plan()
    return made


def test_of_empty_disks_nothing_is_made_unasked() -> None:
    found = plan(MIRROR, state(MIRROR))
    assert (found["steps"], found["waiting"], found["erased"]) == ([], ["images"], [])
    found = plan(MIRROR, state(MIRROR), create_ok=True)
    (step,) = found["steps"]
    assert step["argv"] == [
        "mdadm", "--create", "/dev/md/images", "--metadata=1.2", "--homehost=data01", "--name=images", "--level=raid1",
        "--raid-devices=2", "--bitmap=internal", *(disk["path"] for disk in MIRROR[0]["disks"]),
    ]  # fmt: skip
    assert not step["erases"]


def test_halves_come_first_and_the_whole_when_they_run() -> None:
    found = state(SIXTY)
    made = plan(SIXTY, found, create_ok=True)
    assert [step["what"] for step in made["steps"]] == ["make internal-a", "make internal-b"]
    for array, kernel in zip(SIXTY[0]["arrays"][:2], ("md127", "md126"), strict=True):
        running(found, array, kernel)
    (step,) = plan(SIXTY, found, create_ok=True)["steps"]
    assert step["what"] == "make internal"
    assert "--chunk=128" in step["argv"]
    running(found, SIXTY[0]["arrays"][2], "md125")
    (step,) = plan(SIXTY, found, create_ok=True)["steps"]
    assert step["argv"] == ["mkfs.xfs", "-L", "internal", "-d", "su=64k,sw=4", "/dev/md/internal"]


def test_an_interrupted_creation_continues_with_what_is_missing() -> None:
    found = state(SIXTY)
    running(found, SIXTY[0]["arrays"][0], "md127")
    assert plan(SIXTY, found)["steps"] == []
    assert [step["what"] for step in plan(SIXTY, found, create_ok=True)["steps"]] == ["make internal-b"]


def test_what_is_complete_is_left_alone() -> None:
    found = state(MIRROR)
    on_it = {
        "file_system": {"TYPE": "xfs", "LABEL": "images", "UUID": "abc"},
        "blank": False,
        "uses": ["mounted at /images"],
    }
    running(found, MIRROR[0]["arrays"][0], "md127", **on_it)
    made = plan(MIRROR, found, create_ok=True, confirm="dead-beef")
    assert (made["steps"], made["refused"], made["file_systems"]) == ([], [], {"images": "abc"})


def test_members_are_assembled_and_never_made_again() -> None:
    array = MIRROR[0]["arrays"][0]
    found = state(MIRROR, a=member(array), b=None)
    (step,) = plan(MIRROR, found, create_ok=True)["steps"]
    assert step["argv"] == ["mdadm", "--assemble", "/dev/md/images", "--uuid=u1", MIRROR[0]["disks"][0]["path"]]
    # A new disk beside a member is no reason to begin again, either.
    found = state(MIRROR, a=member(array), b=EXT4)
    made = plan(MIRROR, found, create_ok=True)
    assert ([step["what"] for step in made["steps"]], made["erased"]) == (["assemble images"], [])


def test_an_array_of_the_declared_name_that_was_made_otherwise_is_never_given_up() -> None:
    """Also when it is stopped, and nothing but its members tells of it."""
    other = member({**MIRROR[0]["arrays"][0], "level": "raid0"})
    made = plan(MIRROR, state(MIRROR, a=other, b=other), create_ok=True)
    assert (made["steps"], made["code"]) == ([], "")
    (said,) = made["refused"]
    assert said.startswith("images: a is of an array data01:images that is raid0 of 2 disks; declared is raid1 of 2")


def test_disks_with_anything_on_them_are_shown_and_need_their_code() -> None:
    found = state(MIRROR, b=EXT4)
    shown = plan(MIRROR, found, create_ok=True)
    assert shown["steps"] == []
    assert shown["erased"] == [
        f"images: a wwn-{WWNS['a']}, model ST8000NM0055, serial ZA10000, 8000.0 GB: empty",
        f"images: b wwn-{WWNS['b']}, model ST8000NM0055, serial ZA10001, 8000.0 GB: ext4 (thesis)",
    ]
    done = plan(MIRROR, found, confirm=shown["code"])
    assert [step["what"] for step in done["steps"]] == [f"erase {MIRROR[0]['disks'][1]['path']}", "make images"]
    # What follows in the same run needs nothing more: these disks were given up.
    granted = plan(MIRROR, state(MIRROR), granted=done["granted"])
    assert [step["what"] for step in granted["steps"]] == ["make images"]


@pytest.mark.parametrize(
    "change",
    [
        {"b": {**EXT4, "serial": "another"}},
        {"b": {**EXT4, "signatures": ["ext4 (thesis2)"]}},
        {"b": EXT4, "a": {"blank": False}},
    ],
    ids=["another disk", "other data", "more data"],
)
def test_a_code_fits_only_what_it_was_shown_with(change: dict[str, Any]) -> None:
    code = plan(MIRROR, state(MIRROR, b=EXT4))["code"]
    made = plan(MIRROR, state(MIRROR, **change), confirm=code, create_ok=True)
    assert made["steps"] == []
    assert f"the code {code} does not fit what is on these disks now" in made["refused"]


def test_the_code_of_another_node_does_not_fit() -> None:
    found = state(MIRROR, b=EXT4)
    other = plan_module.Planner("data02", MIRROR, found).plan()
    assert other["code"] != plan(MIRROR, found)["code"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"b": None}, f"images: images cannot be made: not in the machine: b (wwn-{WWNS['b']})"),
        ({"b": {**EXT4, "uses": ["mounted at /home"]}}, "images: b is in use (mounted at /home): end that first"),
        ({"b": {**EXT4, "uses": ["held by dm-0"]}}, "images: b is in use (held by dm-0): end that first"),
    ],
)
def test_what_is_refused_whatever_is_confirmed(changes: dict[str, Any], said: str) -> None:
    made = plan(MIRROR, state(MIRROR, **changes), create_ok=True)
    assert (made["steps"], made["refused"], made["code"]) == ([], [said], "")


def test_an_array_of_the_same_name_from_another_node_is_foreign() -> None:
    array = MIRROR[0]["arrays"][0]
    found = state(MIRROR, a=member(array, node="old01"), b=member(array, node="old01"))
    made = plan(MIRROR, found, create_ok=True)
    assert made["steps"] == []
    assert made["erased"][0].endswith("member of md array old01:images (u1)")


def test_members_of_two_arrays_of_one_name_are_refused() -> None:
    array = MIRROR[0]["arrays"][0]
    found = state(MIRROR, a=member(array), b=member(array, uuid="u2"))
    assert plan(MIRROR, found)["refused"] == ["images: its disks are of 2 arrays called images: u1, u2"]


def test_another_level_is_never_converted() -> None:
    found = state(MIRROR)
    running(found, MIRROR[0]["arrays"][0], "md127")
    found["arrays"]["md127"]["level"] = "raid0"
    (said,) = plan(MIRROR, found, create_ok=True)["refused"]
    assert said.startswith(
        "images: /dev/md/images is raid0 of 2 disks and called data01:images; declared is raid1 of 2"
    )


def test_a_foreign_array_that_udev_has_started_is_stopped_with_the_code() -> None:
    use = {"uses": ["held by md127"], "signatures": ["linux_raid_member"], "blank": False}
    found = state(MIRROR, a=use, b=use)
    kernels = [found["volumes"][disk["path"]]["device"][5:] for disk in MIRROR[0]["disks"]]
    found["arrays"]["md127"] = {
        "name": "old01:x",
        "state": "clean",
        "uses": [],
        "members": {key: {} for key in kernels},
    }
    code = plan(MIRROR, found)["code"]
    steps = plan(MIRROR, found, confirm=code)["steps"]
    assert steps[0]["argv"] == ["mdadm", "--stop", "/dev/md127"]
    # One that is mounted stays, whatever is confirmed.
    found["arrays"]["md127"]["uses"] = ["mounted at /projects"]
    made = plan(MIRROR, found, confirm=code, create_ok=True)
    assert made["steps"] == []
    assert made["refused"] == ["images: a is in use (held by md127, mounted at /projects): end that first"]
    found["arrays"]["md127"]["uses"] = []
    # One with a disk that is not given up stays.
    found["arrays"]["md127"]["members"]["sdz"] = {}
    assert plan(MIRROR, found)["refused"] == ["images: a is in use (held by md127): end that first"]


def test_a_file_system_of_another_name_on_the_set_is_not_overwritten() -> None:
    found = state(MIRROR)
    on_it = {"file_system": {"TYPE": "xfs", "LABEL": "other"}, "signatures": ["xfs (other)"], "blank": False}
    running(found, MIRROR[0]["arrays"][0], "md127", **on_it)
    made = plan(MIRROR, found, create_ok=True)
    assert (made["steps"], len(made["erased"])) == ([], 1)
    assert "xfs (other)" in made["erased"][0]


def test_empty_disks_of_a_set_go_with_its_code() -> None:
    """One question for one set: the half that is empty is in the list, and needs no second permission."""
    found = state(SIXTY, h=EXT4)
    shown = plan(SIXTY, found)
    assert (len(shown["erased"]), shown["waiting"]) == (8, [])
    done = plan(SIXTY, found, confirm=shown["code"])
    assert [step["what"].split()[0] for step in done["steps"]] == ["make", "erase", "make"]


def test_a_code_opens_nothing_that_it_was_not_shown_with() -> None:
    """A half that runs has somebody's data on it: the code for the disks of the other half is not for these."""
    found = state(SIXTY, h=EXT4)
    first, second, _ = SIXTY[0]["arrays"]
    precious = {"signatures": ["ext4 (thesis)"], "file_system": {"TYPE": "ext4"}, "blank": False}
    running(found, first, "md127", **precious)
    code = plan(SIXTY, found)["code"]
    done = plan(SIXTY, found, confirm=code, create_ok=True)
    assert [step["what"] for step in done["steps"]][-1] == "make internal-b"
    later = state(SIXTY)
    running(later, first, "md127", **precious)
    running(later, second, "md126")
    after = plan(SIXTY, later, granted=done["granted"], create_ok=True)
    assert after["steps"] == []
    assert "internal-a internal-a" in after["erased"][0]


def test_a_set_that_waits_or_needs_its_code_does_not_keep_the_next_one_from_its_steps() -> None:
    both = sets(raid("images", "raid1", ["a", "b"], WWNS), raid("scratch", "raid1", ["c", "d"], WWNS), wwns=WWNS)
    array = both[1]["arrays"][0]
    # The first one needs a code; then it waits for a permission. The second one has to be assembled alone.
    for first in (EXT4, {}):
        made = plan(both, state(both, b=first, c=member(array), d=member(array)))
        assert [step["what"] for step in made["steps"]] == ["assemble scratch"]
        assert (bool(made["code"]), made["waiting"]) == ((True, []) if first else (False, ["images"]))
    made = plan(both, state(both, b=EXT4), create_ok=True)
    assert [step["what"] for step in made["steps"]] == ["make scratch"]
