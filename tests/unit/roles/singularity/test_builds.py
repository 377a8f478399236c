"""hal-container build: it runs as its user, and all that it started has ended before it is published."""

from __future__ import annotations

import importlib
import os
import pwd
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.root  # files are given to its user


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
late = time.time() + 3600
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
threading.Thread(target=time.sleep, args=(3600,)).start()
ctypes.CDLL(None).syscall(60 if __import__("platform").machine() == "x86_64" else 93, 0)
PYTHON
env -i setsid /usr/bin/python3 tmp/thread.py sleep {nap} >/dev/null 2>&1 &
""",
}


@pytest.mark.parametrize("how", ESCAPES)
@pytest.mark.parametrize("end", ["exit 0", "exit 3", "sleep 3600"])
def test_what_a_build_started_has_ended_before_anything_is_published(
    parts: Any, settings: dict[str, Any], tmp_path: Path, alive: Any, how: str, end: str
) -> None:
    if "python3" in ESCAPES[how] and not Path("/usr/bin/python3").exists():
        pytest.skip("needs /usr/bin/python3: that of the tests may be where other users may not go")
    settings["build_timeout_seconds"] = 1 if end == "sleep 3600" else 600
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


def test_a_signal_ends_the_build_that_it_reaches(
    parts: Any, registry: Any, settings: dict[str, Any], tmp_path: Path, alive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that closes is SIGHUP; kill, and a reboot, SIGTERM. A playbook that is interrupted sends none."""
    program: Any = importlib.import_module("hal_container")
    monkeypatch.setattr(program, "LOCK", str(tmp_path / "lock"))
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def hang_up() -> None:
        late = time.monotonic() + 600
        while not alive() and not ended.is_set() and time.monotonic() < late:
            time.sleep(0.05)
        if ended.is_set():  # without a build nobody is there to be stopped
            return
        os.kill(os.getpid(), signal.SIGHUP)

    ended = threading.Event()
    sender = threading.Thread(target=hang_up)
    # Else a program without an answer takes the tests with it.
    signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        sender.start()
        with pytest.raises(parts("common").Problem, match="stopped by signal 1"):
            program.make(registry, settings, ["tool", definition(tmp_path, "touch $IMAGE; sleep 3600\n")])
    finally:
        ended.set()
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
        (
            {"pw_shell": "/bin/bash"},
            "builder is somebody's: it has the login shell /bin/bash. The account that builds images",
        ),
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
        with program.locked(program.LOCK, parts("common").Problem, 0, "images"):
            program.clear_away(settings)
            assert folder.exists()
            assert alive() == [call.pid]
        program.clear_away(settings)
        assert not folder.exists()
        assert alive() == []
    finally:
        call.kill()
        call.wait()
