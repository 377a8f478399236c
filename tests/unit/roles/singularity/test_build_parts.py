"""A build's own steps: whose account it may be, where there is room, what runs as whom, and what is left of it."""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import importlib
import os
import pwd
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.root  # files are given away, and programs run as somebody else

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "roles/singularity/files"), str(ROOT / "plugins/module_utils")]

common: Any = importlib.import_module("container_common")
parts: Any = importlib.import_module("container_build")

UID = 1_890_000_000 + os.getpid()
GID = UID + 1
NOW = 1_600_000_000
DECLARED = {"name": "builder", "uid": UID, "slot": 9, "start": 3_000_000_000, "count": 65536, "enabled": True}
OWN = f"builder:{DECLARED['start']}:65536\n"


def account(shell: str = "/sbin/nologin", home: str = "/nonexistent", uid: int = UID) -> Any:
    return pwd.struct_passwd(("builder", "x", uid, GID, "", home, shell))


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where builds are, that everybody may enter; the account and its ranges are declared and there."""
    folder = Path(tempfile.mkdtemp(prefix="hal-build-parts-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "builds").mkdir()
    for name in ("subuid", "subgid"):
        (folder / name).write_text(OWN)
    monkeypatch.setattr(parts, "RANGES", (str(folder / "subuid"), str(folder / "subgid")))
    known = {"builder": account()}
    monkeypatch.setattr(parts.pwd, "getpwnam", lambda name: known[name])
    yield folder
    shutil.rmtree(folder)


# ---------------------------------------------------------------- whose account
def test_an_account_that_is_not_there_is_nobody_s(place: Path) -> None:
    parts.check_nobodys("nobody-at-all", 1, str(place))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uid": 0}, "is root: what a definition does would be done as root"),
        ({"uid": 7}, f"has uid 7 here, and {UID} in users.yml"),
        ({"shell": "/bin/bash"}, "is somebody's: it has the login shell /bin/bash"),
        ({"shell": ""}, "is somebody's: it has the login shell /bin/sh"),
        ({"home": "/etc"}, "is somebody's: it has the home /etc, with something in it"),
    ],
    ids=["root", "uid", "bash", "sh", "home"],
)
def test_an_account_that_may_be_somebody_s_is_refused_with_the_way_out(
    place: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(parts.pwd, "getpwnam", lambda _: account(**changes))
    way = ("The account that builds images does nothing else: all that it runs is ended after a build; name an account"
           " of its own (singularity_build_user)")  # fmt: skip
    with pytest.raises(common.Problem, match=f"^{re.escape(f'builder {said}. {way}')}$"):
        parts.check_nobodys("builder", UID, str(place))


def test_these_accounts_are_nobody_s(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "link").symlink_to(place)
    for shell in ("/bin/false", "/usr/sbin/nologin"):
        for home in ("/nonexistent", "/etc/passwd/x", str(place), str(place / "link"), str(place / "builds")):
            made = account(shell, home)
            monkeypatch.setattr(parts.pwd, "getpwnam", lambda _, made=made: made)
            parts.check_nobodys("builder", UID, str(place))


@pytest.mark.parametrize(
    ("number", "holds"),
    [(errno.ENOENT, False), (errno.ENOTDIR, False), (errno.EACCES, True), (errno.ESTALE, True)],
)
def test_a_home_that_cannot_be_read_may_hold_something(
    monkeypatch: pytest.MonkeyPatch, number: int, *, holds: bool
) -> None:
    def refused(_: str) -> list[str]:
        raise OSError(number, "x")

    monkeypatch.setattr(parts.os, "listdir", refused)
    assert parts._holds_something("/home/x") is holds


# ---------------------------------------------------------------- his ranges
def test_the_account_is_told_with_the_range_that_is_declared_for_it(place: Path) -> None:
    others = [{**DECLARED, "name": "other"}, {**DECLARED, "uid": 7}, {**DECLARED, "enabled": False}]
    assert parts.check_user("builder", [*others, DECLARED], str(place)) == (account(), DECLARED)
    (place / "subgid").write_text(f"# {OWN}other:1:65536\nbuilder:x:y\n{UID}:{DECLARED['start']}:65536\n{OWN}")
    assert parts.check_user("builder", [DECLARED], str(place)) == (account(), DECLARED)
    with pytest.raises(common.Problem, match=rf"^builder has uid {UID} here, and no slot for it in users\.yml: give"):
        parts.check_user("builder", others, str(place))
    with pytest.raises(common.Problem, match=r"^nobody-at-all, who builds images, has no account here: give it a slot"):
        parts.check_user("nobody-at-all", [DECLARED], str(place))


@pytest.mark.parametrize("name", ["subuid", "subgid"])
def test_each_of_the_two_files_has_to_have_his_range_and_no_other(place: Path, name: str) -> None:
    path = place / name
    for text in ("", f"other:{DECLARED['start']}:65536\n", f"builder:{DECLARED['start']}:65535\n", "builder:x:y\n"):
        path.write_text(text)
        with pytest.raises(common.Problem, match=f"^{path}: no range for builder: give it a slot in users.yml and"):
            parts.check_user("builder", [DECLARED], str(place))
    for number, text in ((2, f"{OWN}{UID}:5:10\n"), (1, f"builder:5:10\n{OWN}")):
        path.write_text(text)
        said = "builder has a second range, and what a build starts there would go on: remove the line"
        with pytest.raises(common.Problem, match=f"^{path}:{number}: {said}$"):
            parts.check_user("builder", [DECLARED], str(place))


# ---------------------------------------------------------------- room
def test_room_is_enough_when_it_is_just_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "file_system_of", lambda path: ("/local", "xfs"))
    monkeypatch.setattr(
        parts.os, "statvfs", lambda path: SimpleNamespace(f_bavail=3, f_bfree=9, f_frsize=1_000_000, f_bsize=4)
    )
    parts.check_scratch("/local/builds", 3_000_000)
    with pytest.raises(common.Problem, match=r"^/local/builds has 3\.0 MB left, and a build may need 3\.1 MB$"):
        parts.check_scratch("/local/builds", 3_100_000)
    with pytest.raises(common.Problem, match="left"):
        parts.check_scratch("/local/builds", 3_000_001)


@pytest.mark.parametrize("kind", ["nfs4", "gpfs", "fuse.sshfs", "unknown"])
def test_a_folder_that_does_not_keep_ids_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(parts, "file_system_of", lambda path: ("/far", kind))
    said = f"/far/x is on /far ({kind}): files there do not keep the ids of a build; name a folder of a local disk"
    with pytest.raises(common.Problem, match=f"^{re.escape(said)}$"):
        parts.check_scratch("/far/x", 0)


# ---------------------------------------------------------------- what is left
def test_what_is_older_than_two_days_is_cleared_away(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, gone = place / "builds", list[str]()
    for name, age in (("build-a", 2 * 86400 + 1), ("build-b", 2 * 86400), ("other", 9 * 86400), ("build-c", 10**6)):
        (folder / name).mkdir()
        os.utime(folder / name, (NOW, NOW - age))
    (folder / "build-d").symlink_to("nothing")
    os.utime(folder / "build-d", (0, 0), follow_symlinks=False)
    monkeypatch.setattr(parts.time, "time", lambda: NOW)
    monkeypatch.setattr(parts, "remove", gone.append)
    parts.forget_stale(str(folder))
    assert sorted(gone) == [str(folder / f"build-{one}") for one in "acd"]


def test_what_cannot_be_removed_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = []

    def call(argv: list[str], **more: Any) -> int:
        told.append((argv, more["stdin"].name, more["stdin"].mode, more["close_fds"]))
        return len(told) - 1

    monkeypatch.setattr(parts.subprocess, "call", call)
    parts.remove("-x")
    assert capsys.readouterr() == ("", "")
    parts.remove("-x")
    assert capsys.readouterr() == ("", "-x could not be removed: look at what is in it\n")
    assert told == [(["rm", "-rf", "--one-file-system", "--", "-x"], "/dev/null", "r", True)] * 2


def test_the_folder_of_a_build_becomes_root_s_and_a_link_is_not_followed(place: Path) -> None:
    folder = place / "builds"
    os.chown(folder, UID, GID)
    folder.chmod(0o777)
    before = os.listdir("/proc/self/fd")
    parts._take(str(folder))
    status = folder.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, 0, 0o700)
    assert os.listdir("/proc/self/fd") == before
    (place / "link").symlink_to(folder)
    (place / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(OSError, match="Not a directory"):
            parts._take(str(place / name))


def test_the_release_is_what_the_program_says_or_unknown(place: Path) -> None:
    program = place / "program"
    for script, said in (('echo " $1-3.5.3 "', "version-3.5.3"), ("echo 3.5; exit 1", "unknown")):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        assert parts._version(str(program)) == said
    assert parts._version(str(place / "none")) == "unknown"


# ---------------------------------------------------------------- the build's own process
def run(place: Path, *argv: str, seconds: str = "600") -> None:
    parts._run({"build_timeout_seconds": seconds}, account(), str(place), list(argv))


def test_a_build_has_an_environment_of_its_own(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(place, "/usr/bin/env")
    assert dict(line.split("=", 1) for line in capfd.readouterr().out.splitlines()) == {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LC_ALL": "C", "USER": "builder",
        "LOGNAME": "builder", "HOME": f"{place}/home", "TMPDIR": f"{place}/tmp",
        "SINGULARITY_TMPDIR": f"{place}/tmp", "SINGULARITY_CACHEDIR": f"{place}/cache",
        "APPTAINER_TMPDIR": f"{place}/tmp", "APPTAINER_CACHEDIR": f"{place}/cache",
    }  # fmt: skip


def test_a_build_has_the_ids_and_groups_of_its_user_and_nothing_that_is_open_here(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [grp.struct_group(("a", "x", 70001, ["other", "builder"])), grp.struct_group(("b", "x", 70002, ["other"]))]
    monkeypatch.setattr(parts.grp, "getgrall", lambda: groups)
    script = "id -u; id -g; id -G; umask; pwd; readlink /proc/$$/fd/0; read a b c d e sid f </proc/$$/stat"
    script += "; [ $sid = $$ ] && echo alone; ls /proc/$$/fd; grep ^[UG]id /proc/$$/status; echo bad >&2"
    shown = os.open("/dev/null", os.O_RDONLY)
    high = fcntl.fcntl(shown, fcntl.F_DUPFD, 57)  # dup2 would close what this process has there
    try:
        run(place, "/bin/sh", "-c", script)
    finally:
        os.close(shown)
        os.close(high)
    said = capfd.readouterr()
    words = said.out.split()
    assert words[:9] == [str(UID), str(GID), str(GID), "70001", "0022", str(place), "/dev/null", "alone", "0"]
    assert str(high) not in words
    assert [words.count(str(one)) for one in (UID, GID)] == [5, 6]
    assert (words[-1], said.err) == ("bad", "")


def test_how_a_build_ended_is_said(place: Path) -> None:
    for script, status in (("exit 3", 3), ("kill -9 $$", -9)):
        said = f"the build failed (exit status {status}, its words are above); nothing was published"
        with pytest.raises(common.Problem, match=f"^{re.escape(said)}$"):
            run(place, "/bin/sh", "-c", script)
    with pytest.raises(common.Problem, match=r"^/no/such cannot be started as builder: No such file or directory$"):
        run(place, "/no/such")


def test_a_build_that_takes_too_long_is_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = threading.Timer, list[Any]()

    def at_once(seconds: int, stop: Any) -> threading.Timer:
        timer = real(0 if seconds == 17 else seconds, stop)
        made.append((seconds, timer))
        return timer

    monkeypatch.setattr(parts.threading, "Timer", at_once)
    said = "^the build took longer than 17 s and was stopped; nothing was published$"
    with pytest.raises(common.Problem, match=said):
        run(place, "/bin/sleep", "600", seconds="17")
    run(place, "/bin/true", seconds="500")
    assert [(seconds, timer.daemon, timer.is_alive()) for seconds, timer in made] == [
        (17, True, False),
        (500, True, False),
    ]


# ---------------------------------------------------------------- the whole
@pytest.fixture
def steps(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a build did, in order; its process writes who may read what it is given."""
    done: list[Any] = []

    def process(_: Any, user: Any, scratch: str, argv: list[str]) -> None:
        names = {name: os.lstat(os.path.join(scratch, name)) for name in [".", *sorted(os.listdir(scratch))]}
        kept = {name: (one.st_uid, one.st_gid, stat.S_IMODE(one.st_mode)) for name, one in names.items()}
        done.append(("run", user.pw_name, [one.replace(scratch, "X") for one in argv], kept))
        done.append(Path(argv[-1]).read_bytes())
        Path(argv[-1]).write_text("changed by the build")
        if (place / "fail").exists():
            raise common.Problem("failed")

    def remove(scratch: str) -> None:
        done.append("remove")
        shutil.rmtree(scratch)

    monkeypatch.setattr(parts, "_run", process)
    monkeypatch.setattr(parts, "end_all", lambda *given: done.append(("end", *given)))
    monkeypatch.setattr(parts, "forget_stale", lambda folder: done.append(("forget", folder)))
    monkeypatch.setattr(parts, "check_scratch", lambda *given: done.append(("room", *given)))
    monkeypatch.setattr(parts, "_take", lambda scratch: done.append("take"))
    monkeypatch.setattr(parts, "remove", remove)
    monkeypatch.setattr(parts, "_version", lambda program: f"{program} 3.5.3")
    monkeypatch.setattr(parts.time, "time", lambda: NOW + 0.9)
    return done


def settings(place: Path) -> dict[str, Any]:
    return {"program": "/bin/singularity", "build_user": "builder", "build_dir": str(place / "builds"),
            "build_room_mb": "3", "users": [DECLARED]}  # fmt: skip


END = ("end", UID, DECLARED["start"], 65536)
RUN = ("run", "builder", ["/bin/singularity", "build", "--fakeroot", "X/image.sif", "X/definition.def"],
       {".": (UID, GID, 0o700), "cache": (UID, GID, 0o700), "definition.def": (UID, GID, 0o600),
        "home": (UID, GID, 0o700), "tmp": (UID, GID, 0o700)})  # fmt: skip


def test_nothing_is_given_away_in_a_folder_that_is_the_builder_s_already(
    place: Path, steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There he could lay a link to a file of root's in its place."""
    given: list[tuple[str, int]] = []
    chown = os.chown

    def noted(path: str, uid: int, gid: int) -> None:
        given.append((Path(path).name.partition("-")[0], os.stat(os.path.dirname(path)).st_uid))
        chown(path, uid, gid)

    (place / "x.def").touch()
    with monkeypatch.context() as watched:
        watched.setattr(parts.os, "chown", noted)
        parts.build(settings(place), str(place / "x.def"), lambda *_: None)
    assert sorted(given) == [(name, 0) for name in ("build", "cache", "definition.def", "home", "tmp")]


def test_a_build_goes_these_steps_and_tells_where_the_image_is_from(place: Path, steps: list[Any]) -> None:
    content = "Bootstrap: docker\n# f\xfcr\n".encode("latin-1")
    (place / "x.def").write_bytes(content)
    got: list[Any] = []

    def publish(image: str, version: dict[str, Any]) -> str:
        steps.append("publish")
        got.append((Path(image).name, Path(image).parent.parent, Path(image).parent.name[:6], version))
        return "published"

    assert parts.build(settings(place), str(place / "x.def"), publish) == "published"
    before = [("room", str(place / "builds"), 3 * 2**20), END, ("forget", str(place / "builds"))]
    assert steps == [*before, RUN, content, END, "take", "publish", "remove"]
    version = {
        "definition": "Bootstrap: docker\n# f�r\n", "definition_sha256": hashlib.sha256(content).hexdigest(),
        "built_at": NOW, "built_by": "builder", "on": os.uname()[1], "singularity": "/bin/singularity 3.5.3",
    }  # fmt: skip
    assert got == [("image.sif", place / "builds", "build-", version)]
    assert os.listdir(place / "builds") == []


def test_a_build_that_fails_is_ended_and_taken_and_removed_too(place: Path, steps: list[Any]) -> None:
    (place / "x.def").touch()
    (place / "fail").touch()
    with pytest.raises(common.Problem, match=r"^failed$"):
        parts.build(settings(place), str(place / "x.def"), lambda *_: pytest.fail("published"))
    assert steps[2:] == [("forget", str(place / "builds")), RUN, b"", END, "take", "remove"]


def test_a_build_begins_only_with_a_definition_and_a_folder(place: Path, steps: list[Any]) -> None:
    with pytest.raises(common.Problem, match=f"^{place}/x.def: no such definition$"):
        parts.build(settings(place), str(place / "x.def"), lambda *_: None)
    (place / "x.def").touch()
    (place / "builds").rmdir()
    with pytest.raises(common.Problem, match=f"^{place}/builds is not there: roll the role out$"):
        parts.build(settings(place), str(place / "x.def"), lambda *_: None)
    assert steps == []


def test_all_that_builds_started_is_ended_for_the_declared_user_only(place: Path, steps: list[Any]) -> None:
    parts.end_builds(settings(place))
    assert steps == [END]
    with pytest.raises(common.Problem, match=r"no slot for it in users\.yml"):
        parts.end_builds({**settings(place), "users": []})
    assert steps == [END]
