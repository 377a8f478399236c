"""Other disks that an installation empties: which may be, and what %pre does to them, run by a shell."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.unit.hal_node.storage.conftest  # noqa: F401  makes the module_utils of the toolkit findable
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.kickstart import kickstart, wipeable
from tests.unit.hal_cluster.provision.conftest import node, run_script
from tests.unit.hal_cluster.provision.test_kickstart import (
    FROM_IMAGE,
    PLACE,
    SERVER,
    TOKEN,
    made,
    read,
    script,
)

is_blank = importlib.import_module("ansible.module_utils.hal_node.storage.state").is_blank
SYSTEM, SCRATCH, SECOND = "0x50248414c0550001", "0x50248414c0550002", "0x50248414c0550003"
DISKS = {"system": SYSTEM, "scratch": SCRATCH, "scratch2": SECOND}


def wiping(*wipe: str, **changes: Any) -> str:
    return kickstart(node(**{"disks": DISKS, **changes}), PLACE, FROM_IMAGE, SERVER, TOKEN, wipe=wipe)


def test_only_declared_disks_may_be_wiped_and_never_the_system_disk() -> None:
    assert wipeable(node(disks=DISKS)) == {"scratch": SCRATCH, "scratch2": SECOND}
    assert wipeable(node(disks={"system": SYSTEM, "also": SYSTEM.upper().replace("X", "x")})) == {}
    assert wipeable(node(disks={"odd": "sdb"})) == {}
    assert wipeable(node(disk=None, disks={})) == {}


@pytest.mark.parametrize("wwn", [SYSTEM, SYSTEM.upper().replace("X", "x"), "0x50248414c0560002", "scratch", "sdb", ""])
def test_what_may_not_be_wiped_is_refused_with_what_may(wwn: str) -> None:
    with pytest.raises(ProvisionError) as refused:
        wiping(SCRATCH, wwn)
    said = f"hal05: {wwn} may not be wiped; of its declared disks may be: scratch {SCRATCH}, scratch2 {SECOND}"
    assert str(refused.value) == said
    with pytest.raises(ProvisionError, match=r"may be: none$"):
        wiping(SCRATCH, disks={"system": SYSTEM})


def test_anaconda_sees_the_system_disk_alone_whatever_is_wiped() -> None:
    found = read(wiping(SCRATCH, SECOND))
    assert found.ignoredisk.onlyuse == found.clearpart.drives == [f"disk/by-id/wwn-{SYSTEM}"]
    outside = wiping(SCRATCH).replace(script(wiping(SCRATCH), "pre"), "")
    assert SCRATCH not in outside
    assert "wipefs" not in made()


@dataclass
class Machine:
    """A machine's /dev and /sys in a folder, and programs that write down what they are asked.

    Of curl's command line that is the last part of the URL.
    """

    folder: Path
    links: dict[str, str] = field(default_factory=lambda: {SYSTEM: "sda", SCRATCH: "sdb", SECOND: "sdc"})
    failing: str = ""
    real: tuple[str, ...] = ()
    sectors: int = 1000000

    def __post_init__(self) -> None:
        by_id, self.sys = self.folder / "dev/disk/by-id", self.folder / "sys/class/block"
        by_id.mkdir(parents=True)
        for wwn, name in self.links.items():
            (self.folder / "dev" / name).touch()
            (by_id / f"wwn-{wwn}").symlink_to(f"../../{name}")
            (self.sys / name).mkdir(parents=True, exist_ok=True)

    def part(self, disk: str, name: str, *holders: str) -> None:
        """Give a disk a partition."""
        (self.sys / disk / name).mkdir()
        (self.sys / disk / name / "partition").write_text("1\n")
        self.held(name, *holders)

    def held(self, name: str, *holders: str) -> None:
        """Let something be held by arrays (md0) or what device mapper made (dm-0, whose name is system-root)."""
        for one in holders:
            (self.sys / name / "holders").mkdir(parents=True, exist_ok=True)
            (self.sys / one / "dm").mkdir(parents=True, exist_ok=True)
            (self.sys / one / "dm/name").write_text(f"name-of-{one}\n")
            (self.sys / name / "holders" / one).symlink_to(self.sys / one)

    def run(self, *wipe: str) -> subprocess.CompletedProcess[str]:
        log = self.folder / "log"
        log.write_text("")
        said = {"uname": "echo ppc64le", "sha256sum": f"echo {'ab' * 32}", "blockdev": f"echo {self.sectors}"}
        said["curl"] = f"cat >/dev/null; case $* in *{SERVER.url}*) for one; do :; done; basename $one >>{log} ;; esac"
        said |= {name: f'echo {name} "$@" >>{log}' for name in ("wipefs", "dd", "mdadm", "dmsetup")}
        said |= {name: f'echo {name} >>{log}; exec {shutil.which(name)} "$@"' for name in self.real}
        for name, words in said.items():
            program = self.folder / name
            program.write_text(f"#!/bin/sh\n{words}\n" + ("exit 1\n" if name == self.failing else ""))
            program.chmod(0o755)
        text = script(wiping(*wipe), "pre").replace("/run/", f"{self.folder}/")
        for name in ("/dev/", "/sys/"):
            text = text.replace(name, f"{self.folder}{name}")
        text = text.replace(f"{self.folder}/dev/zero", "/dev/zero").replace("[ -b ", "[ -e ")
        done = run_script(text, self.folder)
        self.asked = log.read_text().replace(f"{self.folder}", "").splitlines()
        return done


def zeros(disk: str) -> list[str]:
    words = f"dd if=/dev/zero of=/dev/{disk} bs=512 seek={{}} count=2048 conv=notrunc,fsync"
    return [words.format(0), words.format(1000000 - 2048)]


def test_what_was_asked_for_is_wiped_after_it_began_and_nothing_else(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    done = machine.run(SCRATCH)
    assert (done.returncode, done.stdout) == (0, "")
    assert machine.asked == ["begin", "wipefs --all --force /dev/sdb", *zeros("sdb")]


def test_of_none_asked_for_none_is_wiped(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run().returncode == 0
    assert machine.asked == ["begin"]


def test_what_is_left_is_an_empty_disk_to_role_local_storage_and_nothing_else_was_written(tmp_path: Path) -> None:
    if not shutil.which("wipefs"):
        pytest.skip("there is no wipefs on this machine")
    mib = 1024 * 1024
    machine = Machine(tmp_path, real=("wipefs", "dd"), sectors=5 * 2048)
    disk, others = tmp_path / "dev/sdb", [tmp_path / "dev" / name for name in ("sda", "sdc")]
    content = bytearray(os.urandom(5 * mib))
    content[510:512] = b"\x55\xaa"  # a partition table
    for one in (disk, *others):
        one.write_bytes(content)
    assert not is_blank(str(disk), 5 * mib)
    done = machine.run(SCRATCH)
    assert done.returncode == 0, done.stdout + done.stderr
    assert is_blank(str(disk), 5 * mib)
    assert disk.read_bytes()[mib : 4 * mib] == content[mib : 4 * mib]
    assert disk.stat().st_size == 5 * mib
    assert [one.read_bytes() for one in others] == [content, content]


def test_partitions_come_first_and_what_holds_them_is_stopped_the_topmost_first(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.part("sdb", "sdb1", "md0")
    machine.part("sdb", "sdb2")
    machine.held("md0", "dm-0")
    machine.held("dm-0", "dm-1")
    machine.held("sdc", "dm-7")  # not asked for
    machine.part("sda", "sda1", "dm-8")
    assert machine.run(SCRATCH).returncode == 0
    assert machine.asked == [
        "begin",
        "dmsetup remove name-of-dm-1",
        "dmsetup remove name-of-dm-0",
        "mdadm --stop /dev/md0",
        *(f"wipefs --all --force /dev/{one}" for one in ("sdb1", "sdb2", "sdb")),
        *zeros("sdb"),
    ]


def test_two_are_wiped_one_after_the_other(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run(SECOND, SCRATCH).returncode == 0
    assert [one for one in machine.asked if one.startswith("wipefs")] == [
        "wipefs --all --force /dev/sdc",
        "wipefs --all --force /dev/sdb",
    ]


def test_a_disk_that_is_missing_stops_it_before_anything_is_touched(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {SYSTEM: "sda", SECOND: "sdc"})
    done = machine.run(SECOND, SCRATCH)
    said = f"hal05: NOT INSTALLED: disk scratch ({SCRATCH}), which is to be wiped, is not in this machine"
    assert (done.returncode, done.stdout.strip()) == (1, f"{said}; no disk was touched")
    assert machine.asked == ["stop"]


def test_the_system_disk_under_another_name_stops_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {SYSTEM: "sda", SCRATCH: "sda"})
    done = machine.run(SCRATCH)
    assert done.returncode == 1
    assert f"disk scratch ({SCRATCH}), which is to be wiped, is the system disk by another name" in done.stdout
    assert machine.asked == ["stop"]


@pytest.mark.parametrize("program", ["wipefs", "mdadm", "dmsetup", "blockdev", "dd"])
def test_one_that_cannot_be_wiped_stops_it_and_the_system_disk_is_as_it_was(tmp_path: Path, program: str) -> None:
    machine = Machine(tmp_path, failing=program)
    machine.held("sdb", "md0")
    machine.held("md0", "dm-0")
    done = machine.run(SCRATCH, SECOND)
    assert done.returncode == 1
    assert f"hal05: NOT INSTALLED: disk scratch ({SCRATCH}) could not be wiped" in done.stdout
    assert done.stdout.strip().endswith("the system disk is as it was")
    assert not any("sdc" in one for one in machine.asked), "the next one is left alone"


@given(
    disks=st.dictionaries(
        st.sampled_from(["system", "scratch", "a", "b", "c"]), st.integers(1, 6).map("0x50248414c055000{}".format)
    ),
    system=st.none() | st.integers(1, 6).map("0x50248414c055000{}".format),
)
def test_the_system_disk_is_never_among_those_that_may_be_wiped(disks: dict[str, str], system: str | None) -> None:
    found = wipeable(node(disks=disks, disk=system))
    assert not {system, disks.get("system")} & set(found.values())
    assert "system" not in found
    assert set(found.items()) <= set(disks.items())
