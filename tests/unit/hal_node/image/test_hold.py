"""Who builds, in which folder, with what mounted; and how a build ends. No root needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_node.image.image_parts import ImageError, hold, run


def test_only_a_folder_of_ours_is_cleared(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "root").mkdir(parents=True)
    (theirs / "root" / "precious").touch()
    with pytest.raises(ImageError, match="has files of others in it: give the build a folder of its own"):
        hold.clear(run, str(theirs))
    assert (theirs / "root" / "precious").exists()
    ours = tmp_path / "ours"
    hold.clear(run, str(ours))
    assert ours.stat().st_mode & 0o777 == 0o700
    for name in ("root", "keys"):
        (ours / name).mkdir()
    (ours / "rootfs.tar.gz").touch()
    (ours / "notes").touch()
    hold.clear(run, str(ours))
    assert sorted(os.listdir(ours)) == [".hal-image-build", "notes"]
    assert (ours / ".hal-image-build").read_text().startswith("Images are built here, by playbooks/image.yml; ")


class Systemd:
    """systemctl and systemd-run with one unit, which is there or not."""

    def __init__(self, owner: str = "") -> None:
        self.owner, self.calls = owner, []  # type: tuple[str, list[str]]

    def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
        self.calls.append(" ".join(argv[:2]))
        if argv[0] == "systemctl" and argv[1] == "show":
            state = "active" if self.owner else "inactive"
            return 0, f"ActiveState={state}\nMainPID=0\nDescription={self.owner or 'hal-image.service'}\n", ""
        if argv[0] == "systemctl" and argv[1] == "stop":
            self.owner = ""
        if argv[0] == "systemd-run":
            return 1, "", "Failed to start transient service unit: Unit hal-image.service already exists.\n"
        return (0, "", "") if argv[0] != "rm" else run(argv)


def test_the_keeper_is_told_to_systemd_as_it_is() -> None:
    assert "$$" not in hold.KEEPER
    assert "${" not in hold.KEEPER
    assert subprocess.run(["sh", "-n", "-c", hold.KEEPER], check=False).returncode == 0


def test_a_second_build_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    hold.clear(run, str(tmp_path / "b"))
    (tmp_path / "b" / "root").mkdir()
    with pytest.raises(ImageError, match=r"^another build is under way: image x by y$"):
        hold.begin(Systemd("image x by y"), str(tmp_path / "b"), "image z by me", 60, [])
    assert (tmp_path / "b" / "root").is_dir()
    with pytest.raises(ImageError, match=r"the unit hal-image\.service does not start: Failed to start"):
        hold.begin(Systemd(), str(tmp_path / "b"), "image z by me", 60, [])


def test_a_build_that_cannot_begin_holds_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "RUN", str(tmp_path))
    (tmp_path / "held").write_text("1\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "precious").touch()

    class Starts(Systemd):
        def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
            if argv[0] == "systemd-run":
                self.owner = "image z by me"
                return 0, "", ""
            status, output, errors = super().__call__(argv)
            return status, output.replace("MainPID=0", "MainPID=1"), errors

    systemd = Starts()
    with pytest.raises(ImageError, match="has files of others in it"):
        hold.begin(systemd, str(tmp_path / "theirs"), "image z by me", 60, [])
    assert systemd.owner == ""


def test_a_build_ends_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "RUN", str(tmp_path / "run"))
    hold.clear(run, str(tmp_path / "b"))
    (tmp_path / "b" / "root").mkdir()
    systemd = Systemd("image x by y")
    assert hold.end(systemd, str(tmp_path / "b"), "image z by me") is False
    assert systemd.owner
    assert (tmp_path / "b" / "root").is_dir()
    assert hold.end(systemd, str(tmp_path / "b"), "image x by y") is True
    assert not systemd.owner
    assert not (tmp_path / "b" / "root").exists()
    assert hold.end(systemd, str(tmp_path / "b"), "image x by y") is False
    # What an interrupted build left, with nobody building.
    (tmp_path / "b" / "rootfs.tar.gz").touch()
    assert hold.end(systemd, str(tmp_path / "b"), "image z by me") is True
    assert os.listdir(tmp_path / "b") == [".hal-image-build"]


def test_a_keeper_that_has_no_namespace_of_its_own_takes_no_program_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All programs of the machine would be in it."""
    assert hold.own_namespace(0) is None
    assert hold.own_namespace(os.getpid()) is None
    monkeypatch.setattr(hold, "_link", lambda path: "mnt:[2]" if path == "/proc/4711/ns/mnt" else "mnt:[1]")
    assert hold.own_namespace(4711) == "mnt:[2]"
    monkeypatch.undo()
    asked: list[Any] = []

    def programs(namespace: Any, *_: Any) -> list[int]:
        asked.append(namespace)
        return []

    monkeypatch.setattr(hold, "RUN", str(tmp_path / "run"))
    monkeypatch.setattr(hold, "programs", programs)

    class Here(Systemd):
        def __call__(self, argv: Sequence[str], **_: Any) -> tuple[int, str, str]:
            status, output, errors = super().__call__(argv)
            return status, output.replace("MainPID=0", f"MainPID={os.getpid()}"), errors

    hold.end(Here("image x by y"), str(tmp_path / "b"), "image x by y")
    assert asked
    assert set(asked) == {None}


class Keeper:
    """systemd with a keeper that runs as `pid`; `answers` are of other commands, by how they begin."""

    def __init__(self, pid: int = 1, state: str = "active", **answers: tuple[int, str, str]) -> None:
        self.pid, self.state, self.answers = pid, state, answers
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str], **more: Any) -> tuple[int, str, str]:
        self.calls.append(list(argv))
        if "show" in argv:
            assert more == {"environ_update": {"LC_ALL": "C"}}
        if argv[:2] == ["systemctl", "show"] and "show" not in self.answers:
            return 0, f"ActiveState={self.state}\nMainPID={self.pid}\nDescription=image x = y\n", ""
        return self.answers.get(argv[1] if argv[0] == "systemctl" else argv[0], (0, "", ""))


@pytest.mark.parametrize("state", ["active", "activating", "deactivating"])
def test_who_builds_is_asked_of_systemd(state: str) -> None:
    assert hold.state(Keeper(7, state)) == {"running": True, "owner": "image x = y", "pid": 7}
    for over in ("inactive", "failed"):
        assert hold.state(Keeper(7, over)) == {"running": False, "owner": "", "pid": 0}
    for answer in ((1, "", "no bus\n"), (1, "no bus\n", "")):
        with pytest.raises(ImageError, match=r"^systemctl does not say whether an image is built here: no bus$"):
            hold.state(Keeper(show=answer))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The keeper's folder, in which process 1 has said that it is there."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "held").write_text("1\n")
    monkeypatch.setattr(hold, "RUN", str(run))
    return run


def test_a_build_begins_with_an_empty_folder_and_a_keeper_of_its_own(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    keeper = Keeper()
    assert hold.begin(keeper, str(folder), "image z by me", 60, ["/srv/a", "/srv/b"]) == 1
    assert oct((folder / "root").stat().st_mode) == "0o40755"
    begun = next(call for call in keeper.calls if call[0] == "systemd-run")
    assert begun[begun.index("unshare") :] == [
        *("unshare", "--mount", "/bin/sh", "-c", hold.KEEPER, "hal-image", f"{folder}/root", "60", "/srv/a", "/srv/b")
    ]
    assert {"--unit=hal-image.service", "--description=image z by me"} < set(begun)
    assert ["systemctl", "reset-failed", "hal-image.service"] in keeper.calls[: keeper.calls.index(begun)]


def test_programs_find_what_they_need_mounted_and_nothing_is_mounted_over_what_is_no_folder(
    place: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "dev").mkdir(mode=0o700)
    (place / "ready").touch()
    assert hold.enter(Keeper(), str(root)) == 1
    assert sorted(path.name for path in root.iterdir()) == ["dev", "proc", "run", "sys"]
    assert oct((root / "proc").stat().st_mode) == "0o40755"
    assert oct((root / "dev").stat().st_mode) == "0o40700", "as it was"
    assert (place / "go").exists()
    assert hold.inside(1) == ["nsenter", "--mount=/proc/1/ns/mnt", "--"]
    (root / "sys").rmdir()
    for to in (tmp_path, Path("/dev/null")):
        (root / "sys").symlink_to(to)
        (place / "go").unlink(missing_ok=True)
        with pytest.raises(ImageError, match=rf"^{root}/sys is not a folder; nothing is mounted there$"):
            hold.enter(Keeper(), str(root))
        assert not (place / "go").exists()
        (root / "sys").unlink()


@pytest.mark.parametrize(
    ("keeper", "held", "words"),
    [
        (Keeper(state="failed"), "1", "the unit hal-image.service ended at once: journalctl -u hal-image says why"),
        (Keeper(pid=2), "1", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
        (Keeper(pid=0), "0", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
        (Keeper(), "", "the unit hal-image.service is not ready after -1 s: journalctl -u hal-image"),
    ],
)
def test_only_the_keeper_that_runs_now_is_waited_for(
    place: Path, monkeypatch: pytest.MonkeyPatch, keeper: Keeper, held: str, words: str
) -> None:
    """What an older one said is in the folder, too."""
    monkeypatch.setattr(hold, "START_SECONDS", -1)
    (place / "held").write_text(held) if held else (place / "held").unlink()
    with pytest.raises(ImageError) as error:
        hold.wait(keeper, "held" if held else "")
    assert str(error.value) == words


def test_nothing_is_removed_where_something_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "b"
    hold.clear(run, str(folder))
    (folder / "root").mkdir()
    mounts = tmp_path / "mounts"

    def opened(path: str, mode: str = "r") -> Any:
        return open(mounts if path == "/proc/self/mounts" else path, mode)

    monkeypatch.setattr(hold, "open", opened, raising=False)
    mounts.write_bytes(b"me:/ /tmp/\xff\xfe fuse.sshfs rw 0 0\n" + f"proc {folder}/root/proc proc rw 0 0\n".encode())
    with pytest.raises(ImageError, match=rf"^{folder}/root/proc: is mounted, and nothing below {folder} may be$"):
        hold.clear(run, str(folder))
    assert (folder / "root").is_dir()
    mounts.write_text(f"x {folder} ext4 rw 0 0\nx {folder}-other/root ext4 rw 0 0\n")
    hold.clear(run, str(folder))
    assert os.listdir(folder) == [".hal-image-build"]


def test_what_cannot_be_removed_or_stopped_is_said(place: Path, tmp_path: Path) -> None:
    keeper = Keeper(rm=(1, "", "rm: cannot remove 'a'\nrm: cannot remove 'b'\n"))
    with pytest.raises(ImageError, match=rf"^{tmp_path} cannot be cleared: rm: cannot remove 'a'$"):
        hold.remove(keeper, str(tmp_path))
    (call,) = keeper.calls
    assert call[:4] == ["rm", "-rf", "--one-file-system", "--"]
    assert call[4:] == [f"{tmp_path}/{name}" for name in (
        "root", "keys", "check", "base.tar", "yum.conf", "names", "rootfs.tar.gz"
    )]  # fmt: skip
    with pytest.raises(ImageError, match=r"^the unit hal-image\.service cannot be stopped: no bus$"):
        hold.end(Keeper(stop=(1, "", "no bus\n")), str(tmp_path), "image x = y")


def test_a_folder_without_our_mark_keeps_its_files_when_a_build_ends(place: Path, tmp_path: Path) -> None:
    (tmp_path / "b/root").mkdir(parents=True)
    keeper = Keeper(state="inactive")
    assert hold.end(keeper, str(tmp_path / "b"), "image x = y") is False
    assert [call for call in keeper.calls if call[0] == "rm"] == [["rm", "-rf", "--one-file-system", "--", str(place)]]


def test_programs_in_the_root_of_an_image_are_asked_to_end_and_then_made_to(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "END_SECONDS", -1)  # nobody is waited for
    heard: list[tuple[int, int]] = []
    left = {4711, 4712}

    def sent(pid: int, sign: int) -> None:
        heard.append((pid, sign))
        if (pid, sign) in ((4711, signal.SIGTERM), (4712, signal.SIGKILL)):
            left.discard(pid)

    monkeypatch.setattr(hold, "_signal", sent)
    monkeypatch.setattr(hold, "programs", lambda *_: sorted(left))
    assert hold.end(Keeper(), str(tmp_path / "b"), "image x = y") is True
    assert heard == [(4711, signal.SIGTERM), (4712, signal.SIGTERM), (4712, signal.SIGKILL)]
    left.add(4713)
    keeper = Keeper()
    with pytest.raises(ImageError, match=r"^programs of an older build do not end: process 4713$"):
        hold.end(keeper, str(tmp_path / "b"), "image x = y")
    assert not [call for call in keeper.calls if "stop" in call], "what is mounted is still used"


def test_programs_of_a_build_are_known_by_their_namespace(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert sleeper.stdout is not None
        assert sleeper.stdin is not None
        sleeper.stdout.readline()
        namespace = os.readlink(f"/proc/{sleeper.pid}/ns/mnt")
        assert sleeper.pid in hold.programs(namespace, str(tmp_path), 0)
        assert sleeper.pid not in hold.programs(namespace, str(tmp_path), sleeper.pid)  # the keeper is no program
        assert sleeper.pid not in hold.programs("mnt:[1]", str(tmp_path), 0)
        assert sleeper.pid not in hold.programs(None, str(tmp_path), 0)
        hold._signal(sleeper.pid, signal.SIGTERM)
        over = os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
        assert over is not None
        assert over.si_status == signal.SIGTERM
        assert sleeper.pid not in hold.programs(namespace, str(tmp_path), 0)  # over, and nobody has looked yet
    finally:
        sleeper.kill()
        sleeper.wait()
    hold._signal(sleeper.pid, signal.SIGTERM)  # which is nobody's any more
