"""hal-container: a build is published in one step or not at all, what was there stays, and what changed is named."""

from __future__ import annotations

import importlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.root  # files are given to it

SIF = b"\0" * 32 + b"SIF_MAGIC\0"
VERSION = {"definition": "Bootstrap: localimage\n", "definition_sha256": "0", "built_at": 0, "built_by": "hal-build",
           "on": "hal-login", "singularity": "3.5.3"}  # fmt: skip


@pytest.fixture
def registry(parts: Any, tmp_path: Path) -> Any:
    return parts("registry").Registry(str(tmp_path / "containers"), "")


def built(folder: Path, content: bytes = SIF) -> str:
    path = folder / "image.sif"
    path.write_bytes(content)
    os.utime(path, (time.time(), time.time()))
    return str(path)


def publish(registry: Any, folder: Path, content: bytes = SIF, built_at: float | None = None) -> Any:
    return registry.publish("tool", built(folder, content), {**VERSION, "built_at": built_at or time.time()})


def test_an_image_is_root_s_and_read_only(registry: Any, tmp_path: Path) -> None:
    path, older = publish(registry, tmp_path)
    status = os.stat(path)
    assert (Path(path).name, older) == ("tool.sif", None)
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, 0, 0o555)
    assert registry.images() == ["tool"]
    assert registry.verify() == {}
    assert sorted(os.listdir(registry.root)) == [".hal", "tool.sif"]
    assert os.stat(registry.root).st_mode & 0o7777 == 0o755


def test_a_new_version_keeps_the_old_one_under_its_date(registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path)
    os.utime(path, (1600000000, 1600000000))
    known = json.loads(Path(registry.record).read_text())
    known["images"]["tool"][0]["mtime"] = 1600000000
    Path(registry.record).write_text(json.dumps(known))
    _, older = publish(registry, tmp_path, SIF + b"new")
    assert Path(older).name == "tool--20200913-122640.sif"
    assert Path(older).read_bytes() == SIF
    assert Path(path).read_bytes() == SIF + b"new"
    assert registry.images() == ["tool", "tool--20200913-122640"]
    assert registry.verify() == {}


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", SIF[:36]])
def test_what_is_no_image_is_not_published(registry: Any, parts: Any, tmp_path: Path, content: bytes) -> None:
    publish(registry, tmp_path)
    with pytest.raises(parts("common").Problem, match=r"is no image of Singularity"):
        publish(registry, tmp_path, content)
    assert Path(registry.path("tool")).read_bytes() == SIF
    assert os.listdir(registry.hidden).count("incoming.sif") == 0


def test_a_link_of_the_build_user_is_not_followed(registry: Any, parts: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SIF)
    (tmp_path / "image.sif").symlink_to(secret)
    with pytest.raises(parts("common").Problem, match="not published"):
        registry.publish("tool", str(tmp_path / "image.sif"), VERSION)
    assert registry.images() == []


def test_a_full_disk_half_way_publishes_nothing(
    registry: Any, parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)

    def full(reader: Any, writer: Any, size: int) -> None:
        writer.write(reader.read(20))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts("registry").shutil, "copyfileobj", full)
    with pytest.raises(parts("common").Problem, match="tool: not published: No space left on device"):
        publish(registry, tmp_path, SIF + b"new")
    assert Path(registry.path("tool")).read_bytes() == SIF
    assert sorted(os.listdir(registry.hidden)) == ["registry.json", "retired"]
    assert registry.verify() == {}


def change(path: Path) -> None:
    path.chmod(0o755)
    path.write_bytes(SIF + b"changed")
    path.chmod(0o555)


def change_quietly(path: Path) -> None:
    before = path.stat()
    path.chmod(0o755)
    path.write_bytes(SIF[:-1] + b"x")
    path.chmod(0o555)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("plant", "words", "only_read"),
    [
        (change, "is not what was published", False),
        (change_quietly, "has another content than was published", True),
        (lambda path: path.chmod(0o777), "has mode 0777, not 0555", False),
        (lambda path: os.chown(path, 5001, 0), "belongs to uid 5001, gid 0, not to root", False),
    ],
)
def test_what_was_changed_by_hand_is_named(
    registry: Any, tmp_path: Path, plant: Any, words: str, only_read: bool
) -> None:
    path, _ = publish(registry, tmp_path)
    plant(Path(path))
    assert registry.verify() == {"tool": words}
    assert registry.wrong("tool", registry.versions()) == ("" if only_read else words)


def test_what_somebody_put_there_is_named(registry: Any, tmp_path: Path) -> None:
    registry.setup()
    Path(registry.path("mine")).write_bytes(SIF)
    Path(registry.path("led")).symlink_to("/etc/passwd")
    assert registry.verify() == {"mine": "was published by nobody", "led": "is no file of its own"}


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".hidden", "x.sif", "Tool", "tool--20200101", "x" * 64, "a b", "-x"]
)
def test_names_that_would_lead_elsewhere_are_refused(parts: Any, filters: Any, name: str) -> None:
    with pytest.raises(parts("common").Problem, match="is no name of an image"):
        parts("common").check_name(name)
    assert filters.hal_container_problem(name)


@pytest.mark.parametrize("name", ["pytorch", "tf-2.1", "a", "x_1.0", "x" * 63])
def test_names_that_are_fine(parts: Any, filters: Any, name: str) -> None:
    parts("common").check_name(name)
    assert filters.hal_container_problem(name) == ""


def test_nothing_is_done_where_the_file_system_is_missing(parts: Any, tmp_path: Path) -> None:
    registry = parts("registry").Registry(str(tmp_path / "home/apps/containers"), str(tmp_path / "home"))
    with pytest.raises(parts("common").Problem, match=r"home is not mounted: nothing is done"):
        registry.setup()
    assert not (tmp_path / "home").exists()


def test_a_damaged_record_is_said(registry: Any, parts: Any) -> None:
    registry.setup()
    Path(registry.record).write_text("{")
    with pytest.raises(parts("common").Problem, match="is damaged"):
        registry.versions()


# ---------------------------------------------------------------- builds
@pytest.fixture
def settings(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A build user whose numbers are nobody's, a folder that he may enter, a program that does what definitions say.

    All that runs with his numbers is ended, so each process that runs tests has its own.
    """
    uid, start = 1_900_000_000 + os.getpid(), 3_000_000_000 + os.getpid() % 10_000 * 65_536
    account = pwd.struct_passwd(("builder", "x", uid, uid, "", "/nonexistent", "/sbin/nologin"))
    known = {"builder": account, "root": pwd.getpwnam("root")}
    monkeypatch.setattr(parts("build").pwd, "getpwnam", lambda name: known[name])
    place = Path(tempfile.mkdtemp(prefix="hal-container-", dir="/tmp"))
    place.chmod(0o755)
    folder = place / "builds"
    folder.mkdir()
    program = place / "singularity"
    program.write_text("#!/bin/sh\n[ $1 = version ] && { echo 3.5.3; exit; }\nIMAGE=$3 exec sh $4\n")
    program.chmod(0o755)
    (place / "ranges").write_text(f"{uid}:{start}:65536\n")
    monkeypatch.setattr(parts("build"), "RANGES", (str(place / "ranges"),))
    monkeypatch.setattr(parts("processes"), "SPOOLS", (str(place / "cron"),))
    monkeypatch.setattr(
        parts("build"), "LOCAL", parts("build").LOCAL | {parts("common").file_system_of(str(folder))[1]}
    )
    yield {
        "program": str(program), "build_user": "builder", "build_dir": str(folder), "build_room_mb": 1,
        "build_timeout_seconds": 20,
        "users": [{"name": "builder", "uid": uid, "slot": 9, "start": start, "count": 65536, "enabled": True}],
    }  # fmt: skip
    shutil.rmtree(place)


def definition(folder: Path, text: str) -> str:
    path = folder / "x.def"
    path.write_text(text)
    return str(path)


def test_a_build_runs_as_its_user_and_leaves_nothing(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_ROOT", "1")
    text = definition(tmp_path, "id -u >$IMAGE; env >>$IMAGE; ls -ld . >>$IMAGE\n")
    said, version = parts("build").build(settings, text, lambda path, version: (Path(path).read_text(), version))
    assert said.startswith(f"{settings['users'][0]['uid']}\n")
    assert "SECRET_OF_ROOT" not in said
    assert "drwx------" in said
    assert version["built_by"] == "builder"
    assert version["singularity"] == "3.5.3"
    assert version["definition"].startswith("id -u >")
    assert os.listdir(settings["build_dir"]) == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo half >$IMAGE; exit 3\n", r"the build failed \(exit status 3"),
        ("kill -9 $$\n", r"the build failed \(exit status -9"),
    ],
)
def test_a_build_that_fails_publishes_nothing(
    parts: Any, settings: dict[str, Any], tmp_path: Path, script: str, said: str
) -> None:
    with pytest.raises(parts("common").Problem, match=said):
        parts("build").build(settings, definition(tmp_path, script), lambda *_: pytest.fail("published"))
    assert os.listdir(settings["build_dir"]) == []


# How a program that wants to live on leaves what it was started in. The words of `sleep` are how the test finds it.
ESCAPES = {
    "another session": "setsid sleep {nap} >/dev/null 2>&1 &\n",
    "no environment": "env -i setsid sleep {nap} >/dev/null 2>&1 &\n",
    "no parent": "(env -i setsid sh -c 'sleep {nap} & exit' >/dev/null 2>&1 &)\n",
    "a chain that forks and exits": """\
cat >tmp/chain.py <<'PYTHON'
import os, time
late = time.time() + 60
while time.time() < late:
    if os.fork():
        os._exit(0)
    os.environ["X"] = "sleep {nap}"
PYTHON
env -i setsid /usr/bin/python3 tmp/chain.py sleep {nap} >/dev/null 2>&1 &
""",
    "a thread of a process that has ended": """\
cat >tmp/thread.py <<'PYTHON'
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(60 if __import__("platform").machine() == "x86_64" else 93, 0)
PYTHON
env -i setsid /usr/bin/python3 tmp/thread.py sleep {nap} >/dev/null 2>&1 &
""",
}


@pytest.fixture
def alive(settings: dict[str, Any]) -> Any:
    """A function: -> numbers of processes that have a number of the build user, threads of an ended leader too."""
    user = settings["users"][0]

    def found() -> list[int]:
        tasks = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            text = _read(f"/proc/{pid}/status").decode(errors="replace")
            ids = [int(one) for one in (re.findall(r"^Uid:(.*)", text, re.MULTILINE) or [""])[0].split()]
            ended = re.search(r"^State:\s+Z", text, re.MULTILINE) and not re.search(r"^Threads:\s+[^01]", text, re.M)
            if not ended and any(one == user["uid"] or 0 <= one - user["start"] < 65536 for one in ids):
                tasks.append(int(pid))
        return tasks

    return found


@pytest.mark.parametrize("how", ESCAPES)
@pytest.mark.parametrize("end", ["exit 0", "exit 3", "sleep 60"])
def test_what_a_build_started_has_ended_before_anything_is_published(
    parts: Any, settings: dict[str, Any], tmp_path: Path, alive: Any, how: str, end: str
) -> None:
    if "python3" in ESCAPES[how] and not Path("/usr/bin/python3").exists():
        pytest.skip("needs /usr/bin/python3: that of the tests may be where other users may not go")
    settings["build_timeout_seconds"] = 1 if end == "sleep 60" else 600
    text = definition(tmp_path, ESCAPES[how].format(nap=4321) + f"sleep 0.3\ntouch $IMAGE\n{end}\n")
    at_publication: list[list[int]] = []
    try:
        parts("build").build(settings, text, lambda *_: at_publication.append(alive()))
    except parts("common").Problem:
        assert end != "exit 0"
    assert at_publication == ([[]] if end == "exit 0" else [])
    assert alive() == []
    assert os.listdir(settings["build_dir"]) == []


@pytest.mark.parametrize(
    ("off", "instead", "how"),
    [
        ("running", lambda *_: [], "another session"),
        ("_end_at_once", lambda _: None, "another session"),
        ("_end_at_once", lambda _: None, "a thread of a process that has ended"),
    ],
)
def test_each_of_the_two_ways_ends_them_by_itself(
    parts: Any, settings: dict[str, Any], tmp_path: Path, alive: Any, monkeypatch: pytest.MonkeyPatch, off: str,
    instead: Any, how: str,
) -> None:  # fmt: skip
    """A list of processes misses those that fork and exit; the kernel's step misses ids of other namespaces."""
    if "python3" in ESCAPES[how] and not Path("/usr/bin/python3").exists():
        pytest.skip("needs /usr/bin/python3")
    monkeypatch.setattr(parts("processes"), off, instead)
    text = definition(tmp_path, ESCAPES[how].format(nap=4321) + "sleep 0.3\ntouch $IMAGE\n")
    parts("build").build(settings, text, lambda *_: None)
    late = time.monotonic() + 600
    while alive():  # a killed process goes when the kernel gets round to it
        assert time.monotonic() < late, alive()
        time.sleep(0.05)


def test_what_runs_with_an_id_of_the_range_has_ended_too(
    parts: Any, settings: dict[str, Any], tmp_path: Path, alive: Any
) -> None:
    """Root of a container may become any id of it. Two neighbours of the range stay."""
    user = settings["users"][0]
    ids = [user["start"] - 1, user["start"], user["start"] + 65535, user["start"] + 65536]

    def become(number: int) -> Callable[[], None]:
        return lambda: os.setresuid(number, number, number)

    calls = [subprocess.Popen(["sleep", "3600"], preexec_fn=become(number)) for number in ids]
    try:
        parts("build").build(settings, definition(tmp_path, "touch $IMAGE\n"), lambda *_: None)
        assert alive() == []
        assert [call.poll() for call in calls] == [None, -9, -9, None]
    finally:
        for call in calls:
            call.kill()
            call.wait()


def test_jobs_of_the_build_user_are_forgotten_and_nobody_s_else(
    parts: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Else cron would start it again, when the build is long over."""
    spool = Path(parts("processes").SPOOLS[0])
    spool.mkdir(mode=0o777)
    spool.chmod(0o777)
    (spool / "alice").write_text("* * * * * true\n")
    parts("build").build(settings, definition(tmp_path, f"echo >{spool}/builder; touch $IMAGE\n"), lambda *_: None)
    assert os.listdir(spool) == ["alice"]


def test_what_cannot_be_ended_is_said_and_nothing_is_published(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts("processes"), "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(parts("processes"), "running", lambda *_: [2**22 + 1])
    with pytest.raises(parts("common").Problem, match=r"cannot be ended: 4194305; nothing was published"):
        parts("build").build(settings, definition(tmp_path, "touch $IMAGE\n"), lambda *_: pytest.fail("published"))


def test_nobody_else_may_exchange_what_is_published(parts: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    def look(path: str, _: Any) -> tuple[int, int]:
        status = os.stat(os.path.dirname(path))
        return status.st_uid, status.st_mode & 0o777

    opened = definition(tmp_path, "chmod 777 .; touch $IMAGE\n")
    assert parts("build").build(settings, opened, look) == (0, 0o700)


def test_removal_follows_no_link(parts: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    place = Path(settings["build_dir"]).parent
    (place / "precious").mkdir()
    (place / "precious" / "file").touch()
    text = f"mkdir -p tmp/a; ln -s {place}/precious tmp/a/led; chmod 0 tmp/a; touch $IMAGE\n"
    parts("build").build(settings, definition(tmp_path, text), lambda *_: None)
    assert os.listdir(settings["build_dir"]) == []
    assert (place / "precious" / "file").exists()


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def test_a_signal_ends_the_build_that_it_reaches(
    parts: Any, registry: Any, settings: dict[str, Any], tmp_path: Path, alive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that closes is SIGHUP; kill, and a reboot, SIGTERM. A playbook that is interrupted sends none."""
    program: Any = importlib.import_module("hal_container")
    monkeypatch.setattr(program, "LOCK", str(tmp_path / "lock"))
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    sender = threading.Timer(1, os.kill, (os.getpid(), signal.SIGHUP))
    # Else a program without an answer takes the tests with it.
    signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        sender.start()
        with pytest.raises(parts("common").Problem, match="stopped by signal 1"):
            program.make(registry, settings, ["tool", definition(tmp_path, "touch $IMAGE; sleep 8\n")])
    finally:
        sender.join()
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert alive() == []
    assert os.listdir(settings["build_dir"]) == []
    assert registry.images() == []


def test_what_a_killed_build_left_goes_after_two_days(parts: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    folder = Path(settings["build_dir"])
    for name, age in (("build-old", 3), ("build-new", 1), ("other", 9)):
        (folder / name / "locked").mkdir(parents=True)
        (folder / name / "locked").chmod(0)
        os.utime(folder / name, (time.time() - age * 86400,) * 2)
    parts("build").build(settings, definition(tmp_path, "touch $IMAGE\n"), lambda *_: None)
    assert sorted(os.listdir(folder)) == ["build-new", "other"]


def test_what_a_build_needs_is_asked_first(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, text = parts("common").Problem, definition(tmp_path, "")

    def said(match: str, **changes: Any) -> None:
        with pytest.raises(problem, match=match):
            parts("build").build({**settings, **changes}, changes.pop("definition", text), lambda *_: None)

    said("no such definition", definition=str(tmp_path / "none.def"))
    said("root is root", build_user="root")
    said("has no account here: give it a slot in users.yml", build_user="hal-nobody-at-all")
    user = settings["users"][0]
    said(r"builder has uid \d+ here, and no slot for it in users.yml", users=[])
    said(r"builder has uid \d+ here, and no slot for it in users.yml", users=[{**user, "uid": 5001}])
    said(r"builder has uid \d+ here, and no slot for it in users.yml", users=[{**user, "enabled": False}])
    said("no range for builder: give it a slot", users=[{**user, "start": user["start"] + 1}])
    ranges = Path(parts("build").RANGES[0])
    alone = ranges.read_text()
    ranges.write_text(alone + "builder:0:65536\n")
    said(r"ranges:2: builder has a second range, and what a build starts there would go on")
    ranges.write_text("")
    said("no range for builder: give it a slot")
    ranges.write_text(alone)
    said(r"left, and a build may need", build_room_mb=10**9)
    monkeypatch.setattr(parts("build"), "LOCAL", frozenset())
    said("files there do not keep the ids of a build")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pw_shell": "/bin/bash"}, "builder is somebody's: it has the login shell /bin/bash. Who builds images does"),
        ({"pw_shell": ""}, "builder is somebody's: it has the login shell /bin/sh"),
        ({"pw_dir": "HOME"}, r"builder is somebody's: it has the home .*/home, with something in it"),
        ({"pw_uid": 0}, "builder is root"),
    ],
)
def test_nothing_is_built_as_somebody(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Any, said: str
) -> None:
    """Neither at a build, nor would a rollout make the account its own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").touch()
    account = parts("build").pwd.getpwnam("builder")
    names = ("pw_name", "pw_passwd", "pw_uid", "pw_gid", "pw_gecos", "pw_dir", "pw_shell")
    values = {**dict(zip(names, account, strict=True)), **changes}
    values["pw_dir"] = str(home) if values["pw_dir"] == "HOME" else values["pw_dir"]
    monkeypatch.setattr(parts("build").pwd, "getpwnam", lambda _: pwd.struct_passwd(tuple(values.values())))
    ask, uid = parts("build").check_nobodys, settings["users"][0]["uid"]
    with pytest.raises(parts("common").Problem, match=said):
        parts("build").build(settings, definition(tmp_path, ""), lambda *_: pytest.fail("published"))
    with pytest.raises(parts("common").Problem, match=said):
        ask("builder", uid, settings["build_dir"])


def test_an_account_that_the_role_has_made_is_its_own(
    parts: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home is the folder of builds, with or without what a build left; an earlier one is empty."""
    ask, uid, folder = parts("build").check_nobodys, settings["users"][0]["uid"], Path(settings["build_dir"])
    (folder / "build-x").mkdir()
    earlier = folder.parent / "earlier"
    earlier.mkdir()
    for home in (folder, earlier, "/nonexistent"):
        made = pwd.struct_passwd(("builder", "!!", uid, uid, "", str(home), "/sbin/nologin"))
        monkeypatch.setattr(parts("build").pwd, "getpwnam", lambda _, made=made: made)
        ask("builder", uid, str(folder))
    with pytest.raises(parts("common").Problem, match=rf"builder has uid {uid} here, and 5001 in users.yml"):
        ask("builder", 5001, str(folder))


def test_of_mounts_the_last_above_a_path_counts(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("/", "xfs"), ("/home", "gpfs"), ("/home/x y", "tmpfs")]
    monkeypatch.setattr(parts("common"), "mounts", lambda: rows)
    assert parts("common").file_system_of("/home/apps") == ("/home", "gpfs")
    assert parts("common").file_system_of("/homes") == ("/", "xfs")
    assert parts("common").file_system_of("/home/x y/z") == ("/home/x y", "tmpfs")


# ---------------------------------------------------------------- while somebody publishes, or takes away
def test_what_was_published_since_the_record_was_read_is_no_fault(registry: Any, tmp_path: Path) -> None:
    publish(registry, tmp_path)
    known = registry.versions()
    publish(registry, tmp_path, SIF + b"new")
    assert registry.wrong("tool", known) == ""


def test_a_publication_while_an_image_is_read_is_no_fault(
    registry: Any, parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)
    real, again = parts("registry").digest_of, [SIF + b"new"]

    def exchanged(stream: Any) -> str:
        if again:
            publish(registry, tmp_path, again.pop())
        found: str = real(stream)
        return found

    monkeypatch.setattr(parts("registry"), "digest_of", exchanged)
    assert registry.verify() == {}
    assert not again


def test_an_image_that_is_taken_away_meanwhile_is_no_fault(
    registry: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)
    monkeypatch.setattr(type(registry), "images", lambda _: ["gone", "tool"])
    assert registry.verify() == {}
    assert registry._changed("gone") == ""
    assert json.loads(told("status")[1])["wrong"] == []
    assert [row.split()[0] for row in told("list")[1].splitlines()] == ["IMAGE", "tool"]


def test_what_was_found_is_no_fault_of_what_was_published_since(told: Any, registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path, built_at=time.time() - 100)
    change_quietly(Path(path))
    assert told("verify")[0] == 1
    assert json.loads(told("status")[1])["wrong"] == [f"{path} has another content than was published"]
    publish(registry, tmp_path, SIF + b"new", built_at=time.time() + 1)
    assert json.loads(told("status")[1])["wrong"] == []


def test_verification_takes_nothing_from_a_build_at_work(
    settings: dict[str, Any], parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: Any
) -> None:
    """However long it takes: its folder may be older than two days."""
    program: Any = importlib.import_module("hal_container")
    monkeypatch.setattr(program, "LOCK", str(tmp_path / "lock"))
    user, folder = settings["users"][0], Path(settings["build_dir"]) / "build-x"
    folder.mkdir()
    os.utime(folder, (0, 0))
    call = subprocess.Popen(["sleep", "3600"], preexec_fn=lambda: os.setuid(user["uid"]))
    try:
        with parts("common").lock(program.LOCK):
            program.clear_away(settings)
            assert folder.exists()
            assert alive() == [call.pid]
        program.clear_away(settings)
        assert not folder.exists()
        assert alive() == []
    finally:
        call.kill()
        call.wait()


# ---------------------------------------------------------------- what users and the audit are told
@pytest.fixture
def told(parts: Any, registry: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function: a command of hal-container -> exit status, standard output, standard error."""
    program: Any = importlib.import_module("hal_container")
    builds = tmp_path / "no-builds"
    settings = {
        "registry": registry.root, "mount": "", "verified": str(tmp_path / "verified.json"), "verify_max_days": "15",
        "build_dir": str(builds), "users": [],
    }  # fmt: skip
    (tmp_path / "containers.json").write_text(json.dumps(settings))
    program.CONFIG = str(tmp_path / "containers.json")

    def run(*words: str) -> tuple[int, str, str]:
        status = program.main(list(words))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_the_status_is_what_stands_there_and_what_was_last_read(told: Any, registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path)
    assert json.loads(told("status")[1]) == {"images": ["tool"], "wrong": [], "late": ""}
    change_quietly(Path(path))
    assert json.loads(told("status")[1])["wrong"] == []
    assert told("verify")[::2] == (1, f"{path} has another content than was published\n")
    assert json.loads(told("status")[1])["wrong"] == [f"{path} has another content than was published"]


def test_an_image_that_nobody_read_for_weeks_is_late(told: Any, registry: Any, tmp_path: Path) -> None:
    publish(registry, tmp_path, built_at=time.time() - 20 * 86400)
    assert json.loads(told("status")[1])["late"] == "not read again for 20 days"
    assert told("verify")[0] == 0
    assert json.loads(told("status")[1])["late"] == ""


def test_users_are_shown_what_there_is_and_where_it_is_from(told: Any, registry: Any, tmp_path: Path) -> None:
    assert told("list") == (0, f"no images in {registry.root} yet\n", "")
    publish(registry, tmp_path)
    assert told("list")[1].splitlines()[1].split()[0] == "tool"
    shown = told("show", "tool")[1]
    assert "by hal-build on hal-login with Singularity 3.5.3" in shown
    assert shown.endswith("Bootstrap: localimage\n")
    assert told("show", "none")[::2] == (1, "hal-container: none: no such image; hal-container list\n")


@pytest.mark.parametrize(
    ("words", "status"), [([], 2), (["frob"], 2), (["show"], 2), (["--help"], 0), (["list", "x"], 2)]
)
def test_wrong_use_is_said(told: Any, words: list[str], status: int) -> None:
    assert told(*words)[0] == status
