"""A full disk: the users without whose files the room would suffice are named, and nobody can make that take long."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest

from tests.unit.alike import SHIPPED
from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import PROJECT, Installed

sys.path.insert(0, str(PROJECT / "roles/node_health/files"))
if str(SHIPPED) not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(str(SHIPPED))
space = importlib.import_module("node_health_space")

HEALTHY, NOT_HEALTHY, NOT_KNOWN = 0, 1, 2
MB = 2**20
TB = 2**31  # in blocks, as find prints them


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which anybody may write."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o1777)
    return place


def more_than_free(folder: Path, more: int) -> int:
    """Return so many MB more than are free there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize // MB + more


@pytest.fixture
def full(hal01: Installed, shared: Path) -> Installed:
    """A node on whose shared folder 512 GB are missing: what others write on this machine meanwhile does not count.

    Who has what there is said by a find of its own.
    """
    wanted = more_than_free(shared, 512 * 1024)
    hal01.plant("df", "#!/bin/sh\necho Avail; echo '   13M'\n")
    command = {"argv": ["df", "--output=avail", "--block-size=M", str(shared)], "select": r"\s*([0-9]+)M"}
    question = {"command": command, "at_least": str(wanted)}
    hal01.asks({"id": "space is left [/tmp]", "words": "disk full: /tmp", "question": question})
    return hal01


def finds(node: Installed, *lines: str) -> None:
    """Plant a find that notes how it was called, and prints."""
    text = "\n".join(f"echo '{line}'" for line in lines)
    node.plant("find", f'#!/bin/sh\nprintf "%s\\n" "$*" >>{node.folder}/asked\n{text}\n')


def reason(node: Installed) -> str:
    """The reason of the last drain."""
    return str(next(call[-1] for call in reversed(node.node["calls"]) if call[0] == "update"))


# ---------------------------------------------------------------- the node
@pytest.mark.parametrize("version", EVERY)
def test_who_fills_a_disk_is_named_in_a_drain_that_ends_by_itself(full: Installed, version: str) -> None:
    finds(full, f"f 1004 {TB} 1 11", f"f 0 {4 * TB} 1 12", "d 1004 0 3 13")
    done = full.run("--act", python=interpreter(version))
    wanted = full.checks[0]["question"]["at_least"]
    words = f"space is left (/tmp): is 13, declared at least {wanted}; uid 1004 (eve) has 1048576 MB"
    assert reason(full) == f"Reason=health: disk full: /tmp ({words})", done.stderr
    full.plant("df", f"#!/bin/sh\necho '{wanted}M'\n")
    assert "given back" in full.run("--act", python=interpreter(version)).stdout


def test_a_disk_that_nobody_stands_out_on_is_said_as_before(full: Installed) -> None:
    finds(full, *(f"f {uid} {TB // 7} 1 {uid}" for uid in range(1004, 1014)))
    full.run("--act")
    assert reason(full).endswith(f"declared at least {full.checks[0]['question']['at_least']})")


def test_find_leaves_no_file_system_follows_no_link_and_prints_no_name(full: Installed, shared: Path) -> None:
    finds(full)
    full.run()
    places, options = (full.folder / "asked").read_text().split(" -", 1)
    assert str(shared) in places.split()
    assert options == "xdev -printf %y %U %b %n %i\\n\n"


def test_a_disk_that_is_well_and_one_that_cannot_be_read_are_not_counted(full: Installed) -> None:
    finds(full)
    for answer in ("echo '999999999999M'", "exit 1"):
        full.plant("df", f"#!/bin/sh\n{answer}\n")
        full.run("--act")
    assert not (full.folder / "asked").exists()


def test_where_no_time_is_left_the_disk_is_full_all_the_same(full: Installed) -> None:
    finds(full, f"f 1004 {TB} 1 11")
    full.seconds = 50  # less than counting may take, on this node
    full.run("--act")
    assert not (full.folder / "asked").exists()
    assert reason(full).startswith("Reason=health: disk full: /tmp (")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("/", "much"), "invalid literal for int() with base 10: 'much'"),
        (("/nowhere", "1"), "[Errno 2] No such file or directory: '/nowhere'"),
    ],
)
def test_what_cannot_be_counted_is_one_line(hal01: Installed, arguments: tuple[str, str], words: str) -> None:
    done = hal01.run("--who-fills", *arguments)
    assert done.returncode == NOT_KNOWN
    hint = "give a directory, and 1024 for MB or 95% for what may be in use"
    assert done.stderr == f"hal-node-health: --who-fills: {words}; {hint}\n"


# ---------------------------------------------------------------- whose it is
@pytest.mark.parametrize(
    ("question", "given"),
    [
        ({"command": {"argv": ["df", "--output=avail", "/tmp"]}, "at_least": 1024}, ["/tmp", "1024"]),
        ({"command": {"argv": ["df", "--output=pcent", "/scratch"]}, "at_most": "95"}, ["/scratch", "95%"]),
        ({"command": {"argv": ["df", "/tmp"]}, "equal": 1}, []),
        ({"command": {"argv": ["du", "/tmp"]}, "at_least": 1}, []),
        ({"file": {"path": "/tmp"}, "at_least": 1}, []),
    ],
)
def test_what_asks_df_for_room_can_have_somebody_named(question: dict[str, Any], given: list[str]) -> None:
    assert space.asked(question) == given


class Disk:
    """What statvfs says: 1000 blocks of 1 MB, 40 of them root's alone."""

    f_blocks, f_frsize = 1000, MB

    def __init__(self, free: int) -> None:
        self.f_bfree, self.f_bavail = free, max(0, free - 40)


@pytest.mark.parametrize(
    ("left", "free", "missing"),
    [(50, "10", 0), (50, "11", 1), (0, "100", 100), (50, "98%", 9), (50, "50%", 470), (0, "95%", 50)],
)
def test_what_is_missing_is_counted_as_df_does(left: int, free: str, missing: int) -> None:
    assert space._missing(Disk(left), free) // MB == missing


@pytest.mark.parametrize(
    ("missing", "size", "files", "counted", "words"),
    [
        (100, {1004: 100}, {}, True, "uid 1004 has 100 MB"),
        (100, {1004: 99}, {}, True, ""),
        (100, {1004: 60, 1005: 50, 1006: 55}, {}, True, "uid 1004 has 60 MB and uid 1006 has 55 MB"),
        (100, {1004: 30, 1005: 30, 1006: 30, 1007: 30}, {}, True, ""),
        (100, {0: 500, 999: 500}, {0: 9}, False, "not counted to the end"),
        (100, {1004: 100}, {1005: 9}, False, "uid 1004 has at least 100 MB, not counted to the end"),
        (100, {1005: 9}, {1004: 9, 0: 8}, False, "uid 1004 has at least 9 files, not counted to the end"),
        (100, {1005: 9}, {1004: 9, 1005: 9}, False, "not counted to the end"),
        (100, {1005: 9}, {1004: 9}, True, ""),
        (0, {1004: 100}, {1004: 9}, False, ""),
        (-1, {1004: 100}, {1004: 9}, True, ""),
    ],
)
def test_users_stand_out_when_without_their_files_the_room_would_suffice(
    monkeypatch: pytest.MonkeyPatch,
    missing: int,
    size: dict[int, int],
    files: dict[int, int],
    counted: bool,
    words: str,
) -> None:
    monkeypatch.setattr(space, "named", lambda uids: {uid: f"uid {uid}" for uid in uids})
    monkeypatch.setattr(space, "_missing", lambda found, free: missing * MB)
    held = {uid: amount * MB for uid, amount in size.items()}
    monkeypatch.setattr(space, "_count", lambda places: (held, files, counted))
    assert space.who_fills("/", "1") == words


def test_users_write_where_anybody_may_on_the_same_file_system(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(shared)
    (tmp_path / "own").mkdir(mode=0o755)
    places = (str(tmp_path / "link"), str(tmp_path / "own"), str(tmp_path / "none"), "/proc")
    monkeypatch.setattr(space, "PLACES", places)
    assert space._places(str(tmp_path / "own")) == [str(shared)]
    assert space._places(str(shared)) == [str(shared)]
    assert space._places("/proc") == []


# ---------------------------------------------------------------- counting
@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting has all the time it needs."""
    monkeypatch.setattr(space, "SECONDS", 600)


@pytest.mark.usefixtures("patient")
def test_everything_below_is_counted_once_and_links_lead_nowhere(tmp_path: Path, shared: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(b"x" * 4 * MB)
    (shared / "deep" / "er").mkdir(parents=True)
    (shared / "deep/er/a\nf 0 99999999 1 1\n").write_bytes(b"x" * 3 * MB)
    os.link(shared / "deep/er/a\nf 0 99999999 1 1\n", shared / "again")
    (shared / "file").symlink_to(outside / "big")
    (shared / "folder").symlink_to(outside)
    size, files, counted = space._count([str(shared)])
    assert counted is True
    assert set(size) == {os.getuid()}
    assert 3 * MB <= size[os.getuid()] < 4 * MB
    assert files == {os.getuid(): 6}


@pytest.mark.usefixtures("patient")
def test_a_file_without_a_name_is_counted_while_a_process_has_it(shared: Path) -> None:
    with tempfile.TemporaryFile(dir=shared) as stream:
        stream.write(b"x" * 2 * MB)
        stream.flush()
        beside = os.dup(stream.fileno())
        assert 2 * MB <= space._count([str(shared)])[0][os.getuid()] < 3 * MB
        os.close(beside)
    assert space._count([str(shared)])[0].get(os.getuid(), 0) < MB


def test_nothing_is_counted_where_users_cannot_write() -> None:
    assert space._count([]) == ({}, {}, True)


@pytest.mark.usefixtures("patient")
def test_it_ends_after_so_many_entries(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (shared / str(number)).touch()
    monkeypatch.setattr(space, "ENTRIES", 51)
    assert space._count([str(shared)])[1:] == ({os.getuid(): 51}, False)
    monkeypatch.setattr(space, "ENTRIES", 52)
    assert space._count([str(shared)])[1:] == ({os.getuid(): 51}, True)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A find that finds one file and then hangs; the file that says its process."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "find").write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\necho 'f 1004 2048 1 7'\nexec sleep 600\n")
    (programs / "find").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path / "pid"


def test_what_hangs_is_ended_and_what_it_had_counts(slow: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr(space.time, "time", lambda: now[0])
    select = space.select.select

    def once(streams: list[Any], *rest: Any) -> Any:
        """It waits for the first line; then the time is over."""
        assert 0 < rest[-1] <= space.SECONDS
        found = select(streams, [], [], 600)
        now[0] += space.SECONDS
        return found

    monkeypatch.setattr(space.select, "select", once)
    assert space._count([str(shared)]) == ({1004: MB}, {1004: 1}, False)
    ended(int(slow.read_text()))


@pytest.mark.parametrize(
    ("below", "options", "hangs"),
    [
        ("/eve", "rw,user_id=1004,group_id=1004,allow_other", True),
        ("/eve", "rw,user_id=1004,group_id=1004", False),
        ("/eve", "rw,user_id=1004,x=allow_other", False),
        ("", "rw,allow_other", False),
        ("-2", "rw,allow_other", False),
    ],
)
def test_a_user_s_file_system_that_may_keep_root_waiting_is_not_come_near(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, below: str, options: str, hangs: bool
) -> None:
    (tmp_path / "mounts").write_text(
        f"36 35 0:45 / {shared}{below} rw,nosuid shared:1 - fuse.sshfs me:/ {options}\nx\n"
    )
    monkeypatch.setattr(space, "MOUNTS", str(tmp_path / "mounts"))
    asked: list[str] = []

    def found(places: list[str], *_: Any) -> bool:
        asked.extend(places)
        return True

    monkeypatch.setattr(space, "_found", found)
    monkeypatch.setattr(space, "_open_without_name", lambda *_: True)
    assert space._count([str(shared)])[2] is not hangs
    assert asked == [str(shared)] * (not hangs)


def test_who_opens_many_files_keeps_nobody_waiting(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "_found", lambda *_: True)
    monkeypatch.setattr(space, "SECONDS", 0)
    assert space._count([str(shared)])[2] is False


def ended(pid: int) -> None:
    """Wait until a process has ended."""
    end = time.monotonic() + 600
    while Path(f"/proc/{pid}/exe").exists():
        assert time.monotonic() < end, "it goes on after 600 s"
        time.sleep(0.05)


@pytest.mark.root
@pytest.mark.usefixtures("patient")
def test_a_file_is_its_owner_s_whoever_looks(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, uid, size in (("a", 1004, 3), ("b", 1005, 2), ("c", 1005, 2), ("d", 0, 9)):
        (shared / name).write_bytes(b"x" * size * MB)
        os.chown(shared / name, uid, uid)
    monkeypatch.setattr(space, "PLACES", ())
    monkeypatch.setattr(space, "named", lambda uids: {uid: f"uid {uid}" for uid in uids})
    assert space.who_fills(str(shared), "1") == ""
    monkeypatch.setattr(space, "_missing", lambda found, free: 4 * MB)
    assert space.who_fills(str(shared), "1") == "uid 1005 has 4 MB"
