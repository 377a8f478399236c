"""What is read of a node: real output of its tools, CentOS 7's older forms, and the words for what is wrong."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.interpreters import EVERY, interpreter

from .conftest import PROJECT, disks, raid, sets

state = importlib.import_module("ansible.module_utils.hal_node.storage.state")
CAPTURES = Path(__file__).parent / "captures"
MODULE = PROJECT / "plugins/modules/hal_raid_set.py"
PROGRAM = PROJECT / "hal_node/storage/state.py"


def capture(name: str) -> str:
    return (CAPTURES / name).read_text()


def test_a_member_says_of_which_array_it_is() -> None:
    shown = state.parse_export(capture("examine_member.txt"))
    assert (shown["MD_NAME"], shown["MD_LEVEL"], shown["MD_DEVICES"]) == ("data01:internal-a", "raid6", "6")
    assert state.parse_export(capture("detail_healthy.txt"))["MD_UUID"] == shown["MD_UUID"]


def test_an_inactive_array_has_neither_level_nor_roles() -> None:
    """linux-raid, "--detail --export doesn't show all properties", 5 July 2021."""
    text = (
        "MD_DEVICES=3\nMD_METADATA=1.2\nMD_UUID=70bc1acd:f879f9cd:dca76d79:d9ce624a\nMD_DEVNAME=debian:R5\n"
        "MD_NAME=debian:R5\nMD_DEVICE_dev_sdc_ROLE=spare\nMD_DEVICE_dev_sdc_DEV=/dev/sdc\n"
    )
    shown = state.parse_export(text)
    assert shown["MD_NAME"] == "debian:R5"
    assert "MD_LEVEL" not in shown


# What blivet's mdadm_conf() writes for anaconda; two sets of Intel's firmware, whose container comes before its member,
# then lines of the examples in mdadm.conf(5) and in mdadm's mdadm.conf-example.
MDADM_CONF = """\
# mdadm.conf written out by anaconda
MAILADDR root
AUTO +imsm +1.x -all
ARRAY /dev/md/imsm UUID=549c2ba4:1e03463b:d429e75b:398c67a3
ARRAY /dev/md/Volume0_0 UUID=8061c4cf:06de8a59:a9eefb7e:3edb011a
ARRAY /dev/md127 level=raid1 num-devices=2 UUID=2F878EC9.7b884fd2.ae073b96.6953a0c5
ARRAY /dev/md/images metadata=1.2 UUID=44110dab:705d1842:07064f76:702a2c72 # before it was made anew
#ARRAY /dev/md7 super-minor=7
ARRAY /dev/md1 super-minor=1
array <ignore>
   uuid=19464854:03f71b1b:e0df2edd:246cc977 \tspare-group=group1
ARRAY UUID=3aaa0122:29827cfa:5331ad66:ca767371
"""


def test_lines_of_other_arrays_are_kept_and_those_of_ours_are_not() -> None:
    ours = [
        {"name": "system", "uuid": "2f878ec9:7b884fd2:ae073b96:6953a0c5"},
        {"name": "images", "uuid": "d7cb4e4d:28442f0a:6c0ecb2b:c47e75c9"},
    ]
    kept = [
        "ARRAY /dev/md/imsm UUID=549c2ba4:1e03463b:d429e75b:398c67a3",
        "ARRAY /dev/md/Volume0_0 UUID=8061c4cf:06de8a59:a9eefb7e:3edb011a",
        "ARRAY /dev/md1 super-minor=1",
        "array <ignore> uuid=19464854:03f71b1b:e0df2edd:246cc977 spare-group=group1",
        "ARRAY UUID=3aaa0122:29827cfa:5331ad66:ca767371",
    ]
    assert state.other_arrays(MDADM_CONF, ours) == kept
    assert state.other_arrays("\n".join(kept), ours) == kept, "of what the role has written, the same"
    assert state.other_arrays("", ours) == []


def test_signatures_are_named_with_their_labels() -> None:
    assert state.parse_wipefs(capture("wipefs_member.txt")) == ["linux_raid_member (data01:internal-a)"]
    # wipefs(8) of util-linux 2.23 prints a heading before them.
    assert state.parse_wipefs("# offset,uuid,label,type\n0x1fe,,,dos\n0x438,6a-1,thesis,ext4\n") == [
        "dos",
        "ext4 (thesis)",
    ]
    assert state.parse_wipefs("") == []


def test_a_file_system_has_its_label() -> None:
    shown = state.parse_export(capture("blkid_xfs.txt"))
    assert (shown["TYPE"], shown["LABEL"]) == ("xfs", "internal")


def test_disks_have_what_is_on_their_label() -> None:
    lines = state.parse_lsblk(capture("lsblk.txt"))
    assert lines[0] == {"NAME": "sda", "MODEL": "QEMU HARDDISK", "SERIAL": "VIRTUAL-50248414c0760001"}
    assert lines[-1] == {"NAME": "vda", "MODEL": "", "SERIAL": ""}


@pytest.mark.parametrize(
    ("name", "stripe"), [("xfs_info_stripe.txt", {"su_kb": 64, "sw": 8}), ("xfs_info_mirror.txt", None)]
)
def test_a_stripe_is_counted_in_kib(name: str, stripe: dict[str, int] | None) -> None:
    assert state.parse_xfs_info(capture(name)) == stripe


def test_an_older_xfs_info_is_read_as_well() -> None:
    """The form that CentOS 7's xfsprogs 4.5 prints ("finobt=0 spinodes=0", "ftype=1" after a blank), with a stripe."""
    text = (
        "meta-data=/dev/md127             isize=512    agcount=32, agsize=76300416 blks\n"
        "         =                       sectsz=4096  attr=2, projid32bit=1\n"
        "         =                       crc=1        finobt=0 spinodes=0\n"
        "data     =                       bsize=4096   blocks=2441609216, imaxpct=5\n"
        "         =                       sunit=128    swidth=1280 blks\n"
        "naming   =version 2              bsize=4096   ascii-ci=0 ftype=1\n"
        "log      =internal               bsize=4096   blocks=521728, version=2\n"
        "         =                       sectsz=4096  sunit=1 blks, lazy-count=1\n"
    )
    assert state.parse_xfs_info(text) == {"su_kb": 512, "sw": 10}
    with pytest.raises(state.CannotRead):
        state.parse_xfs_info("xfs_info: /internal is not a mounted XFS filesystem\n")


def test_mounts_are_found_by_the_number_of_the_device() -> None:
    assert state.parse_mounts(capture("mountinfo.txt"))["254:0"] == ["/"]


WWNS = disks("bay01", "bay02", "bay03", "bay04")
FIVE = sets(raid("data", "raid5", ["bay01", "bay02", "bay03"], WWNS, chunk_kb=64), wwns=WWNS)


class Rack:
    """/sys and /dev of a node with a RAID5 of three disks; the words are those of the kernel (admin-guide/md.rst)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_id = folder / "by-id"
        self.by_id.mkdir()
        self.block = folder / "block"
        self.block.mkdir()
        self.links: dict[str, Path] = {}
        for kernel, (name, wwn) in zip("abcd", WWNS.items(), strict=True):
            self.plug(f"sd{kernel}", name, wwn)
        self.array({"sda": "0 in_sync", "sdb": "1 in_sync", "sdc": "2 in_sync"})

    def plug(self, kernel: str, name: str, wwn: str) -> None:
        (self.block / kernel).mkdir(exist_ok=True)
        device = self.folder / kernel
        device.write_text("")
        link = self.by_id / f"wwn-{wwn}"
        link.symlink_to(device)
        self.links[name] = link

    def array(self, members: dict[str, str], **changes: str) -> None:
        md = self.block / "md127" / "md"
        md.mkdir(parents=True, exist_ok=True)
        for old in md.glob("dev-*"):
            for part in old.iterdir():
                part.unlink()
            old.rmdir()
        files = {
            "level": "raid5", "raid_disks": "3", "chunk_size": "65536", "degraded": "0", "array_state": "clean",
            "sync_action": "idle", "sync_completed": "none", **changes,
        }  # fmt: skip
        for name, text in files.items():
            (md / name).write_text(text + "\n")
        for kernel, words in members.items():
            slot, what = words.split(" ")
            (md / f"dev-{kernel}").mkdir()
            (md / f"dev-{kernel}" / "slot").write_text(slot + "\n")
            (md / f"dev-{kernel}" / "state").write_text(what + "\n")
        (self.folder / "md127").write_text("")

    def call(self, argv: list[str]) -> tuple[int, str, str]:
        if "mdadm" in argv:
            return 0, "MD_NAME=data01:data\nMD_UUID=u\n", ""
        return 0, 'NAME="sdx" MODEL="ST8000NM0055" SERIAL="ZA1XYZ"\n', ""

    def differences(self) -> list[str]:
        """What is said of this node."""
        declared = json.loads(json.dumps(FIVE).replace("/dev/disk/by-id", str(self.by_id)))
        declared[0]["arrays"][0]["path"] = str(self.folder / "md127")
        node = state.Node(self.call, str(self.block), str(self.by_id))
        known = [str(self.by_id / f"wwn-{wwn}") for wwn in WWNS.values()]
        found: list[str] = state.set_differences(node, known, declared[0], node.arrays())
        return found


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path)


def label(name: str) -> str:
    return f"{name} (wwn-{WWNS[name]})"


def test_of_a_whole_set_there_is_nothing_to_say(rack: Rack) -> None:
    assert rack.differences() == []


def test_a_failed_disk_is_named(rack: Rack) -> None:
    members = {"sda": "0 in_sync", "sdb": "1 faulty", "sdc": "2 in_sync"}
    rack.array(members, degraded="1")
    assert rack.differences() == [
        f"data: {label('bay02')} has failed",
        "data lacks 1 of 3 disks, and nothing is being rebuilt",
    ]


def test_a_rebuild_says_how_far_it_is(rack: Rack) -> None:
    members = {"sda": "0 in_sync", "sdb": "1 spare", "sdc": "2 in_sync"}
    rack.array(members, degraded="1", sync_action="recover", sync_completed="250 / 1000")
    assert rack.differences() == [
        f"data: {label('bay02')} is being rebuilt",
        "data lacks 1 of 3 disks, one is being rebuilt, 25 % done",
    ]


def test_the_first_writing_of_the_parity_is_no_fault(rack: Rack) -> None:
    members = {"sda": "0 in_sync", "sdb": "1 in_sync", "sdc": "2 in_sync"}
    rack.array(members, array_state="active", sync_action="resync", sync_completed="250 / 1000")
    assert rack.differences() == []


def test_a_disk_of_another_place_is_named_on_both_sides(rack: Rack) -> None:
    rack.array({"sda": "0 in_sync", "sdb": "1 in_sync", "sdd": "2 in_sync"})
    assert rack.differences() == [
        f"data: {label('bay03')} is not a member",
        f"data: sdd (wwn-{WWNS['bay04']}) is a member, and not declared",
    ]


def test_a_replaced_disk_is_named_with_the_one_in_its_place(rack: Rack) -> None:
    rack.links["bay03"].unlink()
    rack.plug("sdx", "new", "0x5000c500e5f60718")
    rack.array({"sda": "0 in_sync", "sdb": "1 in_sync"}, degraded="1")
    assert rack.differences()[0] == (
        f"data: disk {label('bay03')} is not in the machine; there is sdx (wwn-0x5000c500e5f60718, serial ZA1XYZ),"
        " which the model does not have"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"level": "raid6"}, "data: level is raid6, declared raid5"),
        ({"chunk_size": "524288"}, "data: chunk is 512, declared 64"),
        ({"raid_disks": "4"}, "data: number of disks is 4, declared 3"),
        ({"array_state": "broken"}, "data is broken"),
    ],
)
def test_another_array_than_declared_is_named(rack: Rack, changes: dict[str, str], said: str) -> None:
    rack.array({"sda": "0 in_sync", "sdb": "1 in_sync", "sdc": "2 in_sync"}, **changes)
    assert rack.differences() == [said]


def test_an_array_that_does_not_run_is_named(rack: Rack) -> None:
    (rack.folder / "md127").unlink()
    assert rack.differences() == ["data does not run"]


def test_a_stopped_array_is_none(rack: Rack) -> None:
    """What mdadm --stop leaves behind (Linux 6.1): a number with empty files."""
    rack.array({}, level="", raid_disks="", chunk_size="0", degraded="", array_state="clear")
    assert state.Node(rack.call, str(rack.block), str(rack.by_id)).arrays() == {}


def test_a_disk_whose_edges_hold_data_is_not_blank(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with disk.open("wb") as stream:
        stream.truncate(8 * 2**20)
    assert state.is_blank(str(disk), 8 * 2**20)
    for offset in (0, 2**20 - 1, 7 * 2**20, 8 * 2**20 - 1):
        with disk.open("r+b") as stream:
            stream.seek(offset)
            stream.write(b"x")
        assert not state.is_blank(str(disk), 8 * 2**20), offset
        with disk.open("r+b") as stream:
            stream.seek(offset)
            stream.write(b"\0")
    with pytest.raises(state.CannotRead):
        state.is_blank(str(tmp_path / "none"), 8 * 2**20)


@pytest.mark.parametrize("version", EVERY)
def test_the_program_of_the_expectations_runs_and_says_what_it_cannot_read(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    made = [{**FIVE[0], "mount": str(tmp_path)}]
    told = json.dumps({"sets": made, "disks": []})
    argv = [python, "-c", PROGRAM.read_text(), "sets", " " + told]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "data does not run"), done.stderr
    argv[3] = "stripe"
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "PATH": "/nowhere"})
    assert done.returncode == 3
    assert done.stdout == ""
    assert "xfs_info" in done.stderr or "timeout" in done.stderr


def test_arrays_of_declared_disks_alone_are_listed_also_arrays_of_arrays(tmp_path: Path) -> None:
    """What mdadm.conf gets: none that has a disk of somebody else's in it."""
    module = ModuleType("hal_raid_set")
    exec(compile(MODULE.read_text(), MODULE, "exec"), module.__dict__)
    for name in ("sda", "sdb", "sdz", "md1", "md2", "md3"):
        (tmp_path / name).mkdir()
    node = state.Node(sys_block=str(tmp_path), by_id=str(tmp_path))

    def array(name: str, *members: str, uuid: str = "1:2:3:4") -> dict[str, object]:
        return {"name": name, "members": members, "uuid": uuid}

    running = {
        "md1": array("data01:top", "md2"),
        "md2": array("data01:images", "sda", "sdb"),
        "md3": array("data01:strange", "sda", "sdz"),
    }
    declared = [{"disks": [{"path": str(tmp_path / name)} for name in ("sda", "sdb")]}]
    found = module.found_arrays(node, declared, {"arrays": running})
    assert [one["name"] for one in found] == ["images", "top"]
    running["md2"]["uuid"] = ""
    assert module.found_arrays(node, declared, {"arrays": running}) == []
