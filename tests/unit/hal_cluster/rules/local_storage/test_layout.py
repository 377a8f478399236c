"""RAID sets of the model as md arrays: members, names, chunks, and the stripe that follows."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.local_storage.layout import StorageError, data_drives, layout, stripe
from tests.unit.hal_node.storage.conftest import disks, raid, sets

BAYS = [f"bay{at:02}" for at in range(1, 13)]


@pytest.mark.parametrize(
    ("level", "drives", "width"),
    [
        ("raid0", 4, 4),
        ("raid1", 2, 1),
        ("raid5", 4, 3),
        ("raid6", 12, 10),
        ("raid10", 8, 4),
        ("raid50", 6, 4),
        ("raid60", 12, 8),
        ("raid60", 36, 32),
    ],
)
def test_data_lies_over_what_is_no_copy_and_no_parity(level: str, drives: int, width: int) -> None:
    assert data_drives(level, drives) == width
    assert stripe(level, drives, 64) == ({"su_kb": 64, "sw": width} if width > 1 else None)


def test_a_single_drive_has_no_stripe() -> None:
    assert stripe("raid0", 1, 64) is None


def test_raid60_is_a_raid0_over_two_halves() -> None:
    wwns = disks(*BAYS)
    (one,) = sets(raid("internal", "raid60", BAYS, wwns, chunk_kb=64), wwns=wwns)
    first, second, whole = one["arrays"]
    assert [array["name"] for array in one["arrays"]] == ["internal-a", "internal-b", "internal"]
    assert [member["name"] for member in first["members"]] == BAYS[:6]
    assert [member["name"] for member in second["members"]] == BAYS[6:]
    assert (first["level"], first["chunk_kb"]) == ("raid6", 64)
    # One chunk of it is a whole stripe of a half: four data drives of 64 KiB.
    assert (whole["level"], whole["chunk_kb"]) == ("raid0", 256)
    assert [member["path"] for member in whole["members"]] == ["/dev/md/internal-a", "/dev/md/internal-b"]
    assert one["device"] == "/dev/md/internal"


def test_a_chunk_that_is_not_declared_is_mdadm_s_own_and_in_the_stripe() -> None:
    wwns = disks(*BAYS)
    (one,) = sets(raid("data", "raid6", BAYS, wwns), wwns=wwns)
    assert one["arrays"][0]["chunk_kb"] == 512
    assert one["stripe"] == {"su_kb": 512, "sw": 10}


def test_a_name_that_md_would_cut_is_refused() -> None:
    """Cut, the array would not be known again as the node's own."""
    wwns = disks("a", "b")
    with pytest.raises(StorageError, match="set a-name-of-more-than-twenty-letters: md writes names of 31 letters"):
        sets(raid("a-name-of-more-than-twenty-letters", "raid1", ["a", "b"], wwns), wwns=wwns)


def test_a_mirror_has_no_chunk() -> None:
    wwns = disks("a", "b")
    (one,) = sets(raid("images", "raid1", ["a", "b"], wwns), wwns=wwns)
    assert one["arrays"][0]["chunk_kb"] is None
    assert one["stripe"] is None


def test_of_a_controller_s_set_only_the_file_system_is_made() -> None:
    wwns = disks("vd0")
    made = raid("big", "raid60", ["vd0"], wwns, controller="hardware", drives=12, chunk_kb=256)
    (one,) = sets(made, wwns=wwns)
    assert one["arrays"] == []
    assert one["device"] == one["disks"][0]["path"]
    assert one["stripe"] == {"su_kb": 256, "sw": 8}


def test_what_is_not_mounted_is_only_watched() -> None:
    wwns = disks("a", "b")
    (one,) = sets(raid("system", "raid1", ["a", "b"], wwns, mount=None, file_system=None), wwns=wwns)
    assert (one["arrays"], one["mount"]) == ([], None)


def test_sets_of_other_nodes_and_without_disks_are_left_out() -> None:
    wwns = disks("a", "b")
    other = raid("images", "raid1", ["a", "b"], wwns, node="other")
    unnamed = raid("images", "raid1", [], wwns)
    assert sets(other, unnamed, wwns=wwns) == []


@pytest.mark.parametrize(
    ("scratch", "said"),
    [
        ({"mount": "/scratch", "disk": "nvme9"}, "local_storage_scratch.disk is nvme9; the node has a, b, c"),
        ({"mount": "/scratch", "disk": "a"}, "local_storage_scratch.disk is a, which is in RAID set images"),
    ],
)
def test_scratch_on_a_disk_that_it_cannot_have_is_refused(scratch: dict[str, Any], said: str) -> None:
    wwns = disks("a", "b", "c")
    with pytest.raises(StorageError, match=said):
        layout([raid("images", "raid1", ["a", "b"], wwns)], "data01", wwns, scratch)


def test_scratch_on_a_disk_is_a_set_of_this_disk() -> None:
    wwns = disks("a", "b", "c")
    scratch = {"mount": "/scratch", "disk": "c"}
    *_, one = layout([raid("images", "raid1", ["a", "b"], wwns)], "data01", wwns, scratch)
    assert (one["device"], one["mount"], one["label"]) == (f"/dev/disk/by-id/wwn-{wwns['c']}", "/scratch", "scratch")


def test_names_that_xfs_would_cut_to_the_same_label_are_refused() -> None:
    wwns = disks("a", "b", "c", "d")
    first, second = "measurements-1", "measurements-2"
    with pytest.raises(StorageError, match="would have the same label, measurements: rename one"):
        sets(raid(first, "raid1", ["a", "b"], wwns), raid(second, "raid1", ["c", "d"], wwns), wwns=wwns)


def test_what_md_cannot_make_is_refused() -> None:
    wwns = disks("a", "b")
    with pytest.raises(StorageError, match="set tank: nothing here makes raidz1"):
        sets(raid("tank", "raidz1", ["a", "b"], wwns), wwns=wwns)
