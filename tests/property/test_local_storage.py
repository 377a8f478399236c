"""Whatever is on the disks, nothing is erased that was not shown and confirmed; and scratch loses only what is old."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ansible.module_utils
from hypothesis import given, settings
from hypothesis import strategies as st

PROJECT = Path(__file__).resolve().parents[2]
SHIPPED = str(PROJECT / "plugins/module_utils")
for folder in (str(PROJECT), str(PROJECT / "roles/local_storage/files"), SHIPPED):
    sys.path.insert(0, folder)
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)

from hal_cluster.rules.local_storage.layout import layout  # noqa: E402  found through the lines above

plans = importlib.import_module("ansible.module_utils.hal_node.storage.plan")
scratch = importlib.import_module("scratch_clean")

NAMES = [f"disk{at}" for at in range(10)]
WWNS = {name: f"0x5024{at:012x}" for at, name in enumerate(NAMES)}


def declared(level: str, drives: int) -> list[dict[str, Any]]:
    """One set of the first drives; the others are somebody else's."""
    raid = {
        "node": "data01", "name": "data", "level": level, "drives": drives, "controller": "md", "chunk_kb": None,
        "file_system": "xfs", "mount": "/data",
        "devices": [f"/dev/disk/by-id/wwn-{WWNS[one]}" for one in NAMES[:drives]],
    }  # fmt: skip
    return layout([raid], "data01", WWNS, {})


SETS = st.sampled_from(
    [("raid0", 2), ("raid1", 2), ("raid5", 3), ("raid6", 5), ("raid10", 4), ("raid50", 6), ("raid60", 8)]
)
CONTENTS = st.sampled_from(["empty", "empty", "empty", "ext4", "nameless", "member", "other", "in use", "missing"])


class Machine:
    """The disks of a node, and what mdadm, wipefs and mkfs do to them."""

    def __init__(self, sets: list[dict[str, Any]], contents: list[str]) -> None:
        self.sets = sets
        self.arrays: dict[str, dict[str, Any]] = {}
        self.disks = {disk["path"]: what for disk, what in zip(sets[0]["disks"], contents, strict=False)}
        self.precious = {path for path, what in self.disks.items() if what not in ("empty", "missing")}
        self.by_path = {array["path"]: array for array in sets[0]["arrays"]}
        self.of = {m["path"]: a for a in sets[0]["arrays"] for m in a["members"]}
        self.formatted = False

    def volume(self, path: str) -> dict[str, Any] | None:
        what = self.disks.get(path, "empty")
        if what == "missing" or (path in self.by_path and path not in self.arrays):
            return None
        found: dict[str, Any] = {
            "device": "/dev/" + path.rsplit("/", 1)[-1], "size": 10**12, "model": "m", "serial": "s", "partitions": [],
            "signatures": [], "superblock": {}, "file_system": {}, "uses": [], "blank": what == "empty",
        }  # fmt: skip
        if what in ("ext4", "in use"):
            found.update(signatures=["ext4"], file_system={"TYPE": "ext4"})
        if what == "in use":
            found["uses"] = ["mounted at /home"]
        if what in ("member", "other"):
            array = self.of[path]
            node = "data01" if what == "member" else "old01"
            found["superblock"] = {
                "MD_NAME": f"{node}:{array['name']}", "MD_LEVEL": array["level"], "MD_UUID": "u",
                "MD_DEVICES": str(len(array["members"])),
            }  # fmt: skip
            found["signatures"] = ["linux_raid_member"]
        if path == self.sets[0]["device"] and self.formatted:
            found.update(file_system={"TYPE": "xfs", "LABEL": "data", "UUID": "x"}, signatures=["xfs"], blank=False)
        return found

    def state(self) -> dict[str, Any]:
        paths = [*self.disks, *self.by_path]
        volumes = {path: self.volume(path) for path in paths}
        names = {path: one["device"][5:] for path, one in volumes.items() if one}
        return {"volumes": volumes, "kernel_names": names, "arrays": {names[p]: a for p, a in self.arrays.items()}}

    def act(self, step: dict[str, Any]) -> None:
        if step["argv"][0] == "wipefs":
            for path in step["volumes"]:
                if path in self.disks:
                    self.disks[path] = "empty"
        elif step["argv"][0] == "mkfs.xfs":
            self.formatted = True
        else:
            array = self.by_path[step["argv"][2]]
            for path in step["volumes"]:
                self.disks[path] = "member"
            self.arrays[array["path"]] = {
                "name": f"data01:{array['name']}", "uuid": "u", "level": array["level"],
                "raid_disks": len(array["members"]), "state": "clean", "members": {},
            }  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(kind=SETS, contents=st.lists(CONTENTS, min_size=10, max_size=10), create_ok=st.booleans(), data=st.data())
def test_nothing_is_lost_that_was_not_confirmed(
    kind: tuple[str, int], contents: list[str], create_ok: bool, data: st.DataObject
) -> None:
    """As the module does it: read, plan, act, again; and it may be interrupted after any step."""
    sets = declared(*kind)
    machine = Machine(sets, contents)
    first = plans.Planner("data01", sets, machine.state()).plan()
    confirm = data.draw(st.sampled_from(["", "dead-beef", first["code"]]))
    confirmed = bool(first["code"]) and confirm == first["code"]
    own = {disk["path"] for disk in sets[0]["disks"]} | set(machine.by_path)
    granted: list[str] = []
    stop_after = data.draw(st.integers(min_value=0, max_value=20))
    done = 0
    for _ in range(12):
        plan = plans.Planner("data01", sets, machine.state(), create_ok, confirm, granted).plan()
        for step in plan["steps"]:
            assert set(step["volumes"]) <= own
            assert {word for word in step["argv"] if word.startswith("/dev/")} <= own
            if step["erases"]:
                assert confirmed
                assert not {path for path in step["volumes"] if contents[NAMES.index(name_of(path))] == "in use"}
            if step.get("makes"):
                assert create_ok or confirmed
                assert all(plans.is_empty(machine.volume(path)) or confirmed for path in step["volumes"])
        if plan["refused"] or (plan["erased"] and not plan["confirmed"]) or plan["waiting"] or not plan["steps"]:
            break
        for step in plan["steps"]:
            if done == stop_after:
                break
            machine.act(step)
            done += 1
        else:
            granted, confirm = plan["granted"], ""
            continue
        break
    if not confirmed:
        kept = {path for path in machine.precious if machine.disks[path] == contents[NAMES.index(name_of(path))]}
        assert kept == machine.precious


@settings(max_examples=100, deadline=None)
@given(kind=SETS, stop_after=st.integers(min_value=0, max_value=6))
def test_an_interrupted_creation_ends_as_one_that_was_not(kind: tuple[str, int], stop_after: int) -> None:
    sets = declared(*kind)
    machine = Machine(sets, ["empty"] * 10)
    done = 0
    for _ in range(12):
        for step in plans.Planner("data01", sets, machine.state(), True).plan()["steps"]:
            if done == stop_after:
                break  # killed; the next run reads anew
            machine.act(step)
            done += 1
        stop_after = stop_after if done < stop_after else -1
    assert machine.formatted
    assert set(machine.arrays) == set(machine.by_path)
    assert plans.Planner("data01", sets, machine.state()).plan()["file_systems"] == {"data": "x"}


def name_of(path: str) -> str:
    """The disk's name; an array has the name of none."""
    return next((name for name, wwn in WWNS.items() if path.endswith(wwn)), NAMES[-1])


TREE = st.recursive(
    st.sampled_from(["old", "new", "open", "link"]),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(tree=st.dictionaries(st.sampled_from("abcd"), TREE, max_size=4), busy=st.booleans(), remove=st.booleans())
def test_a_clean_up_removes_what_is_old_and_nothing_else(tree: dict[str, Any], busy: bool, remove: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        top, outside = Path(name, "scratch"), Path(name, "outside")
        outside.mkdir()
        (outside / "kept").write_text("x")
        made: dict[Path, str] = {}

        def build(folder: Path, inner: dict[str, Any]) -> None:
            folder.mkdir()
            for key, what in inner.items():
                path = folder / key
                if isinstance(what, dict):
                    build(path, what)
                    continue
                if what == "link":
                    path.symlink_to(outside)
                else:
                    path.write_text("x")
                made[path] = what

        build(top, tree)
        now = time.time() + 100 * 86400
        opened = set()
        for path, what in made.items():
            if what == "new":
                os.utime(path, (now, now))
            if what == "open":
                opened.add((path.stat().st_dev, path.stat().st_ino))
        users = frozenset({os.getuid()}) if busy else frozenset()
        cleaner = scratch.Cleaner(str(top), 30, lambda: users, now, opened, remove=remove)
        before = os.getcwd()
        cleaner.run()
        assert os.getcwd() == before
        assert (outside / "kept").read_text() == "x"
        assert top.is_dir()
        goes = {path for path, what in made.items() if what in ("old", "link")} if remove and not busy else set()
        assert {path for path in made if not os.path.lexists(path)} == goes
