"""What a node says of a volume: its size, what is on it and what uses it, by programs, /sys and /proc."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

state = importlib.import_module("ansible.module_utils.hal_node.storage.state")
MEMBER = "0x1000,u,name,linux_raid_member\n"
EXPORT = "MD_LEVEL=raid1\nMD_UUID=1:2:3:4\n"


class Machine:
    """A disk sda with a partition sda1, and what programs say of it; /proc and /dev are files of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.block, self.by_id = folder, folder / "block", folder / "by-id"
        self.by_id.mkdir()
        for name, text in {
            "sda/size": "6", "sda/dev": "8:0", "sda/sda1/partition": "1", "sda1/partition": "1", "sda1/dev": "8:1",
            "sda1/size": "4", "sda/queue/rotational": "1",
        }.items():  # fmt: skip
            self.write(f"block/{name}", text + "\n")
        self.path = self.write("sda", "\0" * 3072)
        self.write("dev/sda", "\0" * 3072)
        self.mounts, self.swaps = self.write("mounts", ""), self.write("swaps", "Filename Type Size\n")
        self.said: dict[str, tuple[int, str, str]] = {"lsblk": (0, 'NAME="sda" MODEL="M" SERIAL="S"\n', "")}
        self.told: list[str] = []
        self.node = state.Node(self.call, str(self.block), str(self.by_id))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def call(self, argv: list[str]) -> tuple[int, str, str]:
        assert argv[:2] == ["timeout", "20"]
        words = " ".join(argv[2:])
        self.told.append(words)
        return next((said for begin, said in self.said.items() if words.startswith(begin)), (0, "", ""))

    def open(self, path: str, *given: Any, **words: Any) -> Any:
        here = {"/proc/self/mountinfo": self.mounts, "/proc/swaps": self.swaps}.get(path, path)
        here = self.folder / path[1:] if str(path).startswith("/dev/") else here
        return io.open(here, *given, **words)  # noqa: UP020  the code's own is in its place


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(state, "io", SimpleNamespace(open=made.open))
    return made


WHOLE: dict[str, Any] = {
    "device": "/dev/sda", "size": 3072, "model": "M", "serial": "S", "partitions": ["/dev/sda1"], "signatures": [],
    "superblock": {}, "file_system": {}, "uses": [], "blank": False,
}  # fmt: skip


def unpartitioned(machine: Machine) -> None:
    (machine.block / "sda/sda1/partition").unlink()


def test_a_volume_is_what_programs_and_the_kernel_say_of_it(machine: Machine) -> None:
    assert machine.node.volume(str(machine.path)) == WHOLE
    assert machine.told == ["wipefs -p /dev/sda", "wipefs -p /dev/sda1", "lsblk -d -n -P -o NAME,MODEL,SERIAL"]
    unpartitioned(machine)
    assert machine.node.volume(str(machine.path)) == {**WHOLE, "partitions": [], "blank": True}
    assert machine.told[3:] == ["wipefs -p /dev/sda"], "labels are read once"
    (machine.block / "sda/size").unlink()
    machine.said["lsblk"] = (0, "", "")
    machine.node.labels = None
    nothing = {"partitions": [], "blank": True, "size": 0, "model": "", "serial": ""}
    assert machine.node.volume(str(machine.path)) == {**WHOLE, **nothing}
    assert machine.node.volume(str(machine.folder / "sdz")) is None


def test_a_disk_whose_edge_holds_data_is_not_blank_though_nothing_is_recognized(machine: Machine) -> None:
    unpartitioned(machine)
    machine.write("dev/sda", "\0" * 3071 + "x")
    assert machine.node.volume(str(machine.path))["blank"] is False


def test_signatures_are_those_of_the_disk_and_of_its_partitions(machine: Machine) -> None:
    machine.said |= {
        "wipefs -p /dev/sda1": (0, "# offset,uuid,label,type\n0x438,u,thesis,ext4\n0x438,u,thesis,ext4\n", ""),
        "wipefs -p /dev/sda": (0, "0x1fe,,,dos\n0x0,,,atari\nshort,,x\n", ""),
        "blkid": (0, "PTTYPE=dos\n", ""),
    }
    found = machine.node.volume(str(machine.path))
    signatures = ["atari", "dos", "sda1: ext4 (thesis)"]
    assert found == {**WHOLE, "signatures": signatures, "file_system": {"PTTYPE": "dos"}}
    assert machine.told[2] == "blkid -p -o export /dev/sda"


def test_a_member_of_an_array_is_examined_and_not_probed(machine: Machine) -> None:
    unpartitioned(machine)
    machine.said |= {"wipefs": (0, MEMBER, ""), "mdadm --examine --export /dev/sda": (0, EXPORT, "")}
    wanted = {**WHOLE, "partitions": [], "signatures": ["linux_raid_member (name)"]}
    block = {"MD_LEVEL": "raid1", "MD_UUID": "1:2:3:4"}
    assert machine.node.volume(str(machine.path)) == {**wanted, "superblock": block}
    for status in (0, 1, 2):
        machine.said["mdadm"] = machine.said["mdadm --examine --export /dev/sda"] = (status, "MD_LEVEL=raid1\n", "")
        assert machine.node.volume(str(machine.path)) == wanted
    assert not [words for words in machine.told if "blkid" in words]


@pytest.mark.parametrize(
    ("program", "good", "bad"),
    [("wipefs", (0,), (1, 124)), ("blkid", (0, 2, 8), (1, 3, 4, 7, 9)), ("mdadm", (0, 1, 2), (3, 124)),
     ("lsblk", (0,), (1,))],
)  # fmt: skip
def test_a_program_that_does_not_answer_well_ends_it(
    machine: Machine, program: str, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    machine.said["wipefs"] = (0, MEMBER if program == "mdadm" else "0x0,,,atari\n", "")
    for status in good:
        machine.said[program] = (status, machine.said.get(program, (0, "", ""))[1], "")
        assert machine.node.volume(str(machine.path))["device"] == "/dev/sda"
    for status in bad:
        machine.said[program], machine.node.labels = (status, "", "first\nlast words\n"), None
        with pytest.raises(state.CannotRead, match=f"^{program} .*: last words$"):
            machine.node.volume(str(machine.path))


def test_a_program_without_a_word_is_told_with_its_status_or_what_is_on_its_output(machine: Machine) -> None:
    for said, words in ((((124, "", " \n")), "status 124"), ((1, "one\ntwo\n", ""), "two")):
        machine.said["x"] = said
        with pytest.raises(state.CannotRead) as refused:
            machine.node.ask(["x", "-y"])
        assert str(refused.value) == f"x -y: {words}"


def test_a_user_s_mount_whose_name_is_no_text_hides_no_other(machine: Machine) -> None:
    machine.mounts.write_bytes(
        b"20 1 0:45 / /tmp/\xff\xfe rw - fuse.sshfs me:/ rw\n21 1 8:0 / /all rw - xfs /dev/sda rw\n"
    )
    assert machine.node.uses("sda") == ["mounted at /all"]


def test_what_uses_a_disk_or_its_partitions_is_told(machine: Machine) -> None:
    assert machine.node.uses("sda") == []
    machine.mounts.write_text(
        "21 1 8:0 / /all rw - xfs /dev/sda rw\n22 1 8:1 / /scratch rw - xfs /dev/sda1 rw\n"
        "23 1 8:1 / /other rw - xfs /dev/sda1 rw\n24 1 8:16 / /none rw - xfs /dev/sdb rw\nshort 1 8:0 /\n"
    )
    link = machine.folder / "link"
    link.symlink_to(machine.folder / "sda1")
    machine.swaps.write_text(f"Filename Type\n{link} partition\n")
    machine.write("block/sda/holders/md127/x", "")
    machine.write("block/sda/holders/md126/x", "")
    assert machine.node.uses("sda") == [
        "mounted at /all", "held by md126", "held by md127", "mounted at /scratch", "mounted at /other", "swap",
    ]  # fmt: skip
    assert machine.node.uses("sdb") == []
    machine.swaps.write_text(f"{link} first\n{machine.folder}/sda partition\n")
    assert machine.node.uses("sda1")[2:] == [], "the first line has the names of columns"


def test_an_array_is_what_the_kernel_says_and_its_name_what_mdadm_says(machine: Machine) -> None:
    for name, text in {
        "level": "raid1", "chunk_size": "65536", "raid_disks": "2 (3)", "degraded": "1", "array_state": "clean",
        "sync_action": "recover", "sync_completed": "1 / 2", "dev-sda/slot": "0", "dev-sda/state": "in_sync",
    }.items():  # fmt: skip
        machine.write(f"block/md127/md/{name}", text + "\n")
    machine.said["mdadm"] = (0, "MD_NAME=data01:x\nMD_UUID=1:2\n", "")
    wanted = {
        "name": "data01:x", "uuid": "1:2", "level": "raid1", "chunk_kb": 64, "raid_disks": 2, "degraded": 1,
        "state": "clean", "action": "recover", "done": "1 / 2", "members": {"sda": {"slot": "0", "state": "in_sync"}},
        "uses": [],
    }  # fmt: skip
    for status in (0, 1, 4):
        machine.said["mdadm"] = (status, *machine.said["mdadm"][1:])
        assert machine.node.arrays() == {"md127": wanted}
    assert machine.told == ["mdadm --detail --export /dev/md127"] * 3
    for status in (2, 3, 5):
        machine.said["mdadm"] = (status, "", "")
        with pytest.raises(state.CannotRead):
            machine.node.arrays()
    machine.said["mdadm"] = (0, "", "")
    for name in ("chunk_size", "raid_disks", "degraded"):
        machine.write(f"block/md127/md/{name}", "\n")
    assert machine.node.array("md127") == {
        **wanted, "name": "", "uuid": "", "chunk_kb": 0, "raid_disks": 0, "degraded": 0,
    }  # fmt: skip


def test_links_are_the_stable_names_of_whole_disks(machine: Machine) -> None:
    names = ("wwn-0x50", "wwn-0x50-part1", "nvme-eui.00", "nvme-uuid.1", "nvme-nvme.1", "ata-M_S", "nvme-M_S", "wwn-1x")
    for name in names:
        (machine.by_id / name).symlink_to("../sda")
    assert machine.node.links() == {
        "sda": [str(machine.by_id / name) for name in ("nvme-eui.00", "nvme-nvme.1", "nvme-uuid.1", "wwn-0x50")]
    }
    assert state.Node(machine.call, str(machine.block), str(machine.folder / "none")).links() == {}


def test_a_volume_is_read_once_and_only_when_it_is_asked_for(machine: Machine) -> None:
    declared = [{"disks": [{"path": str(machine.path)}], "arrays": [{"path": str(machine.folder / "md127")}]}]
    found = state.state_of(machine.node, declared)
    assert found["kernel_names"] == {str(machine.path): "sda", str(machine.folder / "md127"): None}
    assert (found["arrays"], machine.told) == ({}, [])
    first = found["volumes"].get(str(machine.path))
    told = list(machine.told)
    assert found["volumes"].get(str(machine.path)) is first
    assert (machine.told, found["volumes"].get("/nosuch")) == (told, None)


def test_a_program_is_run_with_nothing_to_read_and_a_path_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("LC_ALL", "de_DE")
    status, out, err = state.run(["sh", "-c", 'cat; echo "$LC_ALL $PATH"; echo said >&2; exit 3'])
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert (status, out, err) == (3, f"C {path}\n", "said\n")
    assert state.run(["printf", "\\377"])[1] == "�"
    assert state.run(["sh", "-c", "printf '\\377' >&2"])[2] == "�"
    assert state.run(["/no/such"]) == (127, "", "/no/such: [Errno 2] No such file or directory: '/no/such'")


# --------------------------------------------------------------------------------------------------------- the program
STRIPED = f"data     =   {' ' * 20}bsize=4096   blocks=1\n         =   {' ' * 20}" + "sunit={}     swidth={} blks\n"


@pytest.fixture
def program(machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function: what, sets -> status, lines of the output, what is on stderr."""
    monkeypatch.setattr(state, "Node", lambda: machine.node)

    def program(what: str, *sets: dict[str, Any]) -> tuple[int, list[str], str]:
        status = state.main([what, json.dumps({"sets": sets, "disks": []})])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err

    return program


def test_another_stripe_than_declared_is_named(machine: Machine, program: Any) -> None:
    wanted = {"name": "data", "mount": "/data", "stripe": {"su_kb": 64, "sw": 8}}
    watched = {"name": "raw", "mount": None, "stripe": None}
    machine.said["xfs_info /data"] = (0, STRIPED.format(16, 128), "")
    assert program("stripe", wanted, watched) == (0, [], "")
    assert machine.told == ["xfs_info /data"]
    machine.said["xfs_info /data"] = (0, STRIPED.format(32, 128), "")
    assert program("stripe", wanted) == (0, ["data: stripe is su=128k,sw=4, declared su=64k,sw=8"], "")
    machine.said["xfs_info /data"] = (0, STRIPED.format(0, 0), "")
    assert program("stripe", wanted) == (0, ["data: stripe is none, declared su=64k,sw=8"], "")
    machine.said["xfs_info /data"] = (1, "", "not XFS\n")
    assert program("stripe", wanted) == (3, [], "xfs_info /data: not XFS\n")


def test_each_set_is_compared_with_what_runs(machine: Machine, program: Any) -> None:
    array = {"name": "x", "path": str(machine.folder / "md127"), "level": "raid1", "chunk_kb": 0, "members": []}
    sets = [{"name": name, "disks": [], "arrays": [{**array, "name": name}]} for name in ("a", "b")]
    assert program("sets", *sets) == (0, ["a does not run", "b does not run"], "")


def test_a_set_that_is_only_watched_is_told_of_by_the_array_of_its_disks(machine: Machine, program: Any) -> None:
    machine.said["mdadm"] = (0, EXPORT, "")
    for name, text in {
        "level": "raid1", "raid_disks": "2", "degraded": "1", "array_state": "clean", "sync_action": "idle",
        "dev-sda1/slot": "none", "dev-sda1/state": "spare", "dev-sdb/slot": "1", "dev-sdb/state": "in_sync",
    }.items():  # fmt: skip
        machine.write(f"block/md9/md/{name}", text + "\n")
        machine.write(f"block/md8/md/{name.replace('sda1', 'sdc')}", text + "\n")
    (machine.block / "sda1/partition").unlink()
    (machine.block / "sda1/dev").unlink()
    (machine.block / "sda1/size").unlink()
    (machine.block / "sda1").rmdir()
    (machine.block / "sda1").symlink_to("sda/sda1")
    watched = {"name": "data", "disks": [{"name": "bay01", "path": str(machine.path)}], "arrays": []}
    assert program("sets", watched) == (
        0,
        ["data: md9: bay01 (sda) is a spare", "data: md9 lacks 1 of 2 disks, and nothing is being rebuilt"],
        "",
    )
    assert program("sets", {**watched, "disks": [{"name": "bay02", "path": str(machine.folder / "sdq")}]}) == (
        0,
        ["data: disk bay02 (sdq) is not in the machine"],
        "",
    )


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ("250 / 1000", ", 25 % done"),
        ("1 / 3", ", 33 % done"),
        ("7 / 0", ", 700 % done"),
        ("none", ""),
        ("1 / 2 / 3", ""),
    ],
)
def test_how_far_a_rebuild_is_stands_in_whole_percent(done: str, words: str) -> None:
    assert state.progress({"action": "recover", "done": done}) == ", one is being rebuilt" + words


def test_disks_that_the_model_does_not_have_are_named_with_their_serial(machine: Machine) -> None:
    for name, kernel in (("wwn-0x1", "sda"), ("wwn-0x2", "sdb"), ("wwn-0x3", "sdc")):
        (machine.by_id / name).symlink_to(f"../{kernel}")
    known = [str(machine.by_id / "wwn-0x3")]
    assert state.instead(machine.node, known) == (
        "; there is sda (wwn-0x1, serial S) and sdb (wwn-0x2, serial ?), which the model does not have"
    )
    assert state.instead(machine.node, [str(machine.by_id / f"wwn-0x{number}") for number in (1, 2, 3)]) == ""
    assert state.unknown(machine.node, "sdb") == "sdb (wwn-0x2)"
    assert state.unknown(machine.node, "sdq") == "sdq"
