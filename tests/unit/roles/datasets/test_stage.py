"""What has come is not fetched again, what is damaged is refused by name, and users see all of it or nothing."""

from __future__ import annotations

import grp
import hashlib
import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.addresses import address
from tests.unit.roles.datasets.conftest import Server, Site, manifest_of

pytestmark = pytest.mark.root  # who alone moves a folder that nobody may write

SMALL = {"train/a.bin": b"a" * 3000, "train/größe b.bin": b"b" * 2000, "labels.txt": b"1 2 3\n", "empty": b""}
RSYNC = 14873  # at an address that no other test has
LARGE = {"large.bin": bytes(range(256)) * 4096}


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def test_a_data_set_is_brought_checked_and_shown(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    assert site.state()["state"] == "not staged"
    site.done("stage", "digits")
    folder = site.root / "digits" / "1.0"
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == SMALL
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {"0444"}
    assert {mode(folder), mode(folder / "train")} == {"0555"}
    assert os.readlink(site.root / "digits" / "default") == "1.0"
    state = site.state()
    assert (state["state"], state["files"], state["bytes"], state["wrong"]) == ("published", 4, 5006, "")
    assert state["is_default"] is True
    assert state["verified_days"] < 1
    assert sorted(path.name for path in (site.hidden / "digits").iterdir()) == ["1.0", "1.0.lock"]
    assert sorted(path.name for path in (site.hidden / "digits/1.0").iterdir()) == ["manifest", "state.json"]

    before = len(server.asked)
    assert "is published already" in site.done("stage", "digits/1.0")
    assert len(server.asked) == before


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_is_gone_on_with(site: Site, server: Server, ranges: bool) -> None:
    server.files, server.ranges = LARGE, ranges
    server.ends_after["large.bin"] = [400_000, 300_000] if ranges else [400_000]
    site.declare(LARGE, source=server.url)
    site.done("stage", "digits")
    wanted = ["", "bytes=400000-", "bytes=700000-"] if ranges else ["", "bytes=400000-"]
    assert server.requests("large.bin") == wanted
    size = len(LARGE["large.bin"])
    assert server.sent["large.bin"] == (size if ranges else size + 400_000)


def test_a_server_that_sends_another_range_is_not_believed(site: Site, server: Server) -> None:
    server.files, server.wrong_range = LARGE, True
    server.ends_after["large.bin"] = [500_000]
    site.declare(LARGE, source=server.url)
    site.done("stage", "digits")
    assert server.requests("large.bin") == ["", "bytes=500000-", ""]


def test_a_killed_call_is_gone_on_with(site: Site, server: Server) -> None:
    """Twelve files, killed in the middle: what had come is not asked for again, a part is continued."""
    server.files = {f"{number:02}.bin": os.urandom(200_000) for number in range(12)}
    site.settings["streams"] = "1"
    site.declare(server.files, source=server.url)
    # The eighth never comes whole: each answer is one byte more.
    server.ends_after["07.bin"] = [100_000] + [1] * 1000
    call = subprocess.Popen(site.command("stage", "digits"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 600
    while len(server.requests("07.bin")) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    call.send_signal(signal.SIGKILL)
    call.wait()
    assert not (site.root / "digits").exists(), "users see nothing"
    assert site.state()["state"] == "half staged"
    server.ends_after = {}
    first, server.asked = server.asked, []
    said = site.done("stage", "digits")
    assert "7 files are here already and are not fetched again" in said
    assert [name for name, _ in server.asked] == ["07.bin", "08.bin", "09.bin", "10.bin", "11.bin"]
    assert server.requests("07.bin")[0].startswith("bytes=1000"), "the part was continued"
    assert len(first) >= 9


def test_a_part_that_was_complete_is_used(site: Site, server: Server) -> None:
    """Killed between the last byte and the rename: the server answers 416."""
    server.files = LARGE
    site.declare(LARGE, source=server.url)
    folder = site.hidden / "digits/1.0/parts"
    folder.mkdir(parents=True)
    part = folder / hashlib.sha1(b"large.bin").hexdigest()
    part.write_bytes(LARGE["large.bin"])
    site.done("stage", "digits")
    assert server.requests("large.bin") == [f"bytes={len(LARGE['large.bin'])}-"]
    assert server.sent == {}


def test_a_part_that_is_longer_than_the_file_is_dropped(site: Site, server: Server) -> None:
    server.files = LARGE
    site.declare(LARGE, source=server.url)
    folder = site.hidden / "digits/1.0/parts"
    folder.mkdir(parents=True)
    (folder / hashlib.sha1(b"large.bin").hexdigest()).write_bytes(LARGE["large.bin"] + b"x")
    site.done("stage", "digits")
    assert server.requests("large.bin")[1:] == [""]


def test_a_damaged_file_comes_once_more_then_is_refused_by_name(site: Site, server: Server) -> None:
    server.files = SMALL
    server.damages = {"train/a.bin": 1}
    site.declare(SMALL, source=server.url)
    site.done("stage", "digits")
    assert server.requests("train/a.bin") == ["", ""]

    server.damages = {"train/a.bin": 99}
    server.asked = []
    site.declare(SMALL, source=server.url, version="2.0", default=False)
    said = site.refused("stage", "digits/2.0")
    assert "train/a.bin: what comes is not what the manifest says, twice" in said
    assert "digits/2.0 is not complete: 1 files were refused" in said
    assert server.requests("train/a.bin") == ["", ""]
    assert not (site.root / "digits/2.0").exists()
    # The others are kept; the source is repaired.
    server.damages, server.asked = {}, []
    site.done("stage", "digits/2.0")
    assert [name for name, _ in server.asked] == ["train/a.bin"]


def test_what_the_source_does_not_have_is_named(site: Site, server: Server) -> None:
    server.files = {name: content for name, content in SMALL.items() if name != "labels.txt"}
    site.declare(SMALL, source=server.url)
    assert "labels.txt: HTTP 404" in site.refused("stage", "digits")


def test_a_busy_server_is_asked_again(site: Site, server: Server) -> None:
    server.files = SMALL
    server.says = {"labels.txt": [503, 500]}
    site.declare(SMALL, source=server.url)
    site.done("stage", "digits")
    assert len(server.requests("labels.txt")) == 3


def test_the_manifest_has_to_be_the_declared_one(site: Site, server: Server) -> None:
    server.files = {**SMALL, "SHA256SUMS": manifest_of(SMALL).encode()}
    digest = hashlib.sha256(server.files["SHA256SUMS"]).hexdigest()
    site.declare(SMALL, source=server.url, checksums="", manifest_sha256="0" * 64)
    said = site.refused("stage", "digits")
    assert f"has the checksum {digest}, declared is {'0' * 64}: nothing was fetched" in said
    assert [name for name, _ in server.asked] == ["SHA256SUMS"]
    site.declare(SMALL, source=server.url, checksums="", manifest_sha256=digest)
    site.done("stage", "digits")


def test_a_folder_is_a_source(site: Site, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "train").mkdir(parents=True)
    for name, content in SMALL.items():
        (disk / name).write_bytes(content)
    site.declare(SMALL, source=str(disk))
    (disk / "labels.txt").unlink()
    os.mkfifo(disk / "labels.txt")
    assert "labels.txt: is not a file" in site.refused("stage", "digits"), "a FIFO is not waited for"
    (disk / "labels.txt").unlink()
    (disk / "labels.txt").write_bytes(SMALL["labels.txt"])
    site.done("stage", "digits")
    assert (site.root / "digits/default/labels.txt").read_bytes() == SMALL["labels.txt"]


def test_no_room_is_said_before_anything_is_fetched(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url, size_gb=10**9)
    assert "no room for digits/1.0" in site.refused("stage", "digits")
    assert server.asked == []
    site.settings["reserve_gb"] = 10**9
    site.declare(SMALL, source=server.url)
    assert "have to stay free" in site.refused("stage", "digits")


def test_a_full_disk_keeps_what_has_come(site: Site, server: Server, tmp_path: Path) -> None:
    """A file system of 1 MB; its size is declared too small, so that it is noticed late."""
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(site.root)], check=False)
    if mount.returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        server.files = {f"{number}.bin": os.urandom(300_000) for number in range(5)}
        site.settings["streams"] = "1"
        site.declare(server.files, source=server.url, size_gb=0)
        said = site.refused("stage", "digits")
        assert "the disk is full; what has come is kept: make room, then call again" in said
        assert (site.hidden / "digits/1.0/data/0.bin").stat().st_size == 300_000
        subprocess.run(["mount", "-o", "remount,size=4m", str(site.root)], check=True)
        site.done("stage", "digits")
    finally:
        subprocess.run(["umount", str(site.root)], check=True)


def test_two_calls_do_not_work_on_one_version(site: Site, server: Server) -> None:
    server.files = LARGE
    server.ends_after["large.bin"] = [1] * 1000
    site.declare(LARGE, source=server.url)
    call = subprocess.Popen(site.command("stage", "digits"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 600
        while not server.asked:
            assert time.monotonic() < end
            time.sleep(0.05)
        said = site.refused("stage", "digits")
        assert said.startswith(f"digits/1.0: process {call.pid} on {socket.gethostname()} (hal_dataset.py --table ")
        assert " stage digits), by " in said
        assert f" holds the lock {site.hidden}/digits/1.0.lock. " in said
    finally:
        call.kill()
        call.wait()


def test_a_file_that_changed_on_disk_before_it_was_shown_is_noticed(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "--no-publish", "digits")
    assert site.state()["state"] == "staged"
    assert not (site.root / "digits").exists()
    arrived = site.hidden / "digits/1.0/data/labels.txt"
    arrived.chmod(0o644)
    arrived.write_bytes(b"1 2 4\n")
    arrived.chmod(0o444)
    assert "1 changed (labels.txt)" in site.refused("publish", "digits")
    assert not (site.root / "digits").exists()
    site.done("stage", "digits")
    assert (site.root / "digits/1.0/labels.txt").read_bytes() == SMALL["labels.txt"]


def test_what_came_with_another_access_is_gone_on_with(site: Site, server: Server) -> None:
    """Its owner says `group` when half of it is here, and takes it back later."""
    own = grp.getgrgid(os.getgid()).gr_name
    server.files = {name: content for name, content in SMALL.items() if name != "labels.txt"}
    site.declare(SMALL, source=server.url)
    site.refused("stage", "digits")
    site.declare(SMALL, source=server.url, access="group", owner=own)
    server.files = SMALL
    site.done("stage", "digits")
    folder, hidden = site.root / "digits/1.0", site.hidden / "digits/1.0"
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {"0440"}
    assert (mode(folder), mode(hidden)) == ("0550", "0750")

    site.declare(SMALL, source=server.url, retired="not for all", default=False)
    (site.root / "digits/default").unlink()
    site.done("retire", "digits/1.0")
    site.declare(SMALL, source=server.url)
    server.asked = []
    site.done("stage", "digits/1.0")
    assert server.asked == []
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {"0444"}
    assert (mode(folder), mode(hidden)) == ("0555", "0755")
    site.done("verify")


CHANGED = {"train/a.bin": b"A" * 3000, "train/größe b.bin": SMALL["train/größe b.bin"], "empty": b"", "labels": b"1\n"}


def test_another_manifest_keeps_what_is_the_same(site: Site, server: Server) -> None:
    server.files = {name: content for name, content in SMALL.items() if name != "empty"}
    server.files["old/notes.txt"] = b"x"
    site.declare({**SMALL, "old/notes.txt": b"x"}, source=server.url)
    site.refused("stage", "digits")
    server.files, server.asked = CHANGED, []
    site.declare(CHANGED, source=server.url)
    said = site.done("stage", "digits")
    assert (
        "digits/1.0 has another manifest than what had come: 1 files have another checksum and come again,"
        " 2 files are not in it and were removed"
    ) in said
    assert sorted(name for name, _ in server.asked) == ["empty", "labels", "train/a.bin"]
    folder = site.root / "digits/1.0"
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == CHANGED
    assert not (folder / "old").exists()


def test_another_manifest_is_not_shown_as_the_declared_one(site: Site, server: Server) -> None:
    """What is staged comes anew in part; what users see already is an error until somebody decides."""
    words = "digits/1.0 came by another manifest than the one that is declared now"
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "--no-publish", "digits")
    site.declare(CHANGED, source=server.url)
    assert f"{words}: hal-dataset stage digits/1.0" in site.refused("publish", "digits")
    server.files = {name: content for name, content in CHANGED.items() if name != "labels"}
    site.refused("stage", "digits")
    assert site.state()["state"] == "half staged"
    assert "is not staged" in site.refused("publish", "digits")
    server.files = CHANGED
    site.done("stage", "digits")
    assert site.state()["wrong"] == ""

    site.declare(SMALL, source=server.url)
    assert f"{words}: declare it as a new version" in site.refused("stage", "digits")
    assert site.state()["wrong"] == "came by another manifest than the one that is declared now"


def test_what_somebody_else_put_there_is_not_called_published(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url, version="2.0", default=False)
    site.done("stage", "digits/2.0")
    site.declare(SMALL, source=server.url)
    (site.root / "digits/1.0").mkdir()
    (site.root / "digits/1.0/mine").write_text("x")
    assert "digits/1.0 was not brought by hal-dataset: " in site.refused("stage", "digits/1.0")
    assert site.state()["wrong"] == "was not brought by hal-dataset"
    assert "digits/1.0: there is no manifest of it" in site.refused("verify")
    assert "digits/2.0: every file is what the manifest says" in site.call("verify").stdout
    assert (site.root / "digits/1.0/mine").read_text() == "x"


def test_a_manifest_that_cannot_be_read_does_not_take_the_place_of_one_that_can(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "--no-publish", "digits")
    site.declare(SMALL, source=server.url, checksums="what is this\n")
    assert "not a line of sha256sum" in site.refused("stage", "digits")
    site.declare(SMALL, source=server.url)
    server.asked = []
    site.done("stage", "digits")
    assert server.asked == []


def test_all_that_was_damaged_on_disk_comes_again_at_the_next_call(site: Site, server: Server) -> None:
    """More than are named; and a file that somebody put there is said to be theirs to take away."""
    server.files = {f"{number:03}.bin": b"%d" % number for number in range(150)}
    site.declare(server.files, source=server.url)
    site.done("stage", "--no-publish", "digits")
    arrived = site.hidden / "digits/1.0/data"
    for path in arrived.iterdir():
        path.chmod(0o644)
        path.write_bytes(b"x")
        path.chmod(0o444)
    (arrived / "notes").write_text("mine")
    said = site.refused("stage", "digits").splitlines()[-1]
    assert "digits/1.0: on disk, of what has come: 150 changed (" in said
    assert said.endswith(
        f" ...); 1 extra (notes). What changed was removed: call again. Take away what is extra in {arrived}"
    )
    (arrived / "notes").unlink()
    site.done("stage", "digits")
    assert {path.name: path.read_bytes() for path in (site.root / "digits/1.0").iterdir()} == server.files


def test_rsync_brings_what_is_missing_and_no_more(site: Site, tmp_path: Path) -> None:
    """A real rsync daemon, which says what it sent."""
    disk = tmp_path / "disk"
    (disk / "train").mkdir(parents=True)
    for name, content in SMALL.items():
        (disk / name).write_bytes(content)
    conf, log = tmp_path / "rsyncd.conf", tmp_path / "rsyncd.log"
    conf.write_text(
        f"use chroot = no\nlog file = {log}\ntransfer logging = yes\nlog format = sent %f %b\n[pub]\npath = {disk}\n"
        + ("uid = 0\ngid = 0\n" if os.getuid() == 0 else "")
    )
    at = address()
    words = ["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--address={at}", f"--port={RSYNC}"]
    daemon = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 600
        with socket.socket() as asks:
            while asks.connect_ex((at, RSYNC)) != 0:
                assert daemon.poll() is None, "it ended"
                assert time.monotonic() < end, "it does not listen"
                time.sleep(0.02)
        (disk / "labels.txt").write_bytes(b"1 2 4\n")
        site.declare(SMALL, source=f"rsync://{at}:{RSYNC}/pub")
        said = site.refused("stage", "digits")
        assert "labels.txt: what comes is not what the manifest says, twice" in said
        assert log.read_bytes().count(b"a.bin") == 1
        (disk / "labels.txt").unlink()
        assert "labels.txt: the source does not have it" in site.refused("stage", "digits")
        (disk / "labels.txt").write_bytes(SMALL["labels.txt"])
        site.done("stage", "digits")
        assert log.read_bytes().count(b"a.bin") == 1, "what had come was not sent again"
        assert (site.root / "digits/1.0/train/größe b.bin").read_bytes() == SMALL["train/größe b.bin"]
    finally:
        daemon.kill()
        daemon.wait()
