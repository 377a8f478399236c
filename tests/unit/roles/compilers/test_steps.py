"""Steps of an installation of PGI, each by itself: what they refuse, what they leave, what they say."""

from __future__ import annotations

import errno
import hashlib
import importlib
import io
import json
import os
import stat
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(PROJECT / "roles/compilers/files"), str(PROJECT / "plugins/module_utils")]

pgi_install: Any = importlib.import_module("pgi_install")
pgi_tree: Any = importlib.import_module("pgi_tree")
hal_pgi: Any = importlib.import_module("hal_pgi")

GET = "get it from PGI's download page (www.pgroup.com, now NVIDIA's; it needs an account and the acceptance of its"


@pytest.fixture
def said() -> list[str]:
    return []


def version(folder: Path, source: str = "", **settings: Any) -> Any:
    """The one declared version of a table."""
    one = {"version": "19.10", "source": source or str(folder / "pgi.tar.gz"), "sha256": "0" * 64, "nvidia": True,
           "mpi": False, "mpi_gpu": False}  # fmt: skip
    table = {
        "root": str(folder / "pgi"), "mount": "/", "target": "linuxpower", "local_dir": "/local", "accept_eula": True,
        "timeout_minutes": 2, "installer": True, "verify_max_days": 15, "versions": [one], **settings,
    }  # fmt: skip
    (folder / "table.json").write_text(json.dumps(table))
    return pgi_tree.Table(str(folder / "table.json")).versions[0]


def test_what_cannot_be_installed_is_said_before_anything_is_unpacked(tmp_path: Path) -> None:
    one = version(tmp_path, accept_eula=False)
    assert pgi_install.refusals(one) == (
        "pgi/19.10: its licence is not accepted: read it, and set compilers_pgi_accept_eula to true; nothing was"
        " unpacked"
    )
    one = version(tmp_path)
    words = f"pgi/19.10 is declared and its archive is not at {tmp_path}/pgi.tar.gz: {GET}"
    assert pgi_install.refusals(one).startswith(words)
    (tmp_path / "pgi.tar.gz").touch()
    assert pgi_install.refusals(one) == ""
    assert pgi_install.refusals(version(tmp_path, "https://x/pgi.tar.gz")) == ""
    assert pgi_install.refusals(version(tmp_path, "http://x/pgi.tar.gz")) == ""
    assert f"not at {tmp_path}/pgi/.archives/pgi.tar.gz" in pgi_install.refusals(version(tmp_path, "files/pgi.tar.gz"))


def test_an_archive_is_brought_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = version(tmp_path, "https://x/pgi.tar.gz")
    asked: list[Any] = []

    def urlopen(address: str, timeout: int) -> Any:
        asked.append((address, timeout))
        assert not part.exists()
        return io.BytesIO(b"archive")

    monkeypatch.setattr(pgi_install, "urlopen", urlopen)
    archive = Path(one.archive)
    part = archive.with_name("pgi.tar.gz.part")
    archive.parent.mkdir(parents=True)
    part.symlink_to(tmp_path / "somebody's")
    pgi_install.fetch(one)
    pgi_install.fetch(one)
    assert asked == [("https://x/pgi.tar.gz", 60)]
    assert archive.read_bytes() == b"archive"
    assert os.listdir(archive.parent) == ["pgi.tar.gz"]
    assert not (tmp_path / "somebody's").exists()
    archive.unlink()

    class Broken(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(pgi_install, "urlopen", lambda *_, **__: Broken())
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install.fetch(one)
    assert str(refused.value).startswith(f"pgi/19.10: https://x/pgi.tar.gz cannot be fetched: [Errno 5] lost; {GET}")
    assert os.listdir(archive.parent) == []


def test_links_that_somebody_laid_are_not_installed_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    one, victim = version(tmp_path, "https://x/pgi.tar.gz"), tmp_path / "victim"
    victim.mkdir()
    (victim / ".hal").touch()
    monkeypatch.setattr(pgi_install, "_make", lambda *_: pytest.fail("it went on"))
    for path in (Path(one.folder), Path(one.archive).parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(victim)
        with pytest.raises(pgi_tree.Problem) as refused:
            pgi_install.install(one, said.append)
        assert str(refused.value) == f"{path} is a link, which hal-pgi did not make; move it away"
        path.unlink()
    assert (os.listdir(victim), said) == ([".hal"], [])


def test_a_folder_of_archives_that_others_may_write_is_root_s_alone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    one = version(tmp_path, "https://x/pgi.tar.gz")
    archives = Path(one.archive).parent
    archives.mkdir(parents=True)
    archives.chmod(0o777)
    monkeypatch.setattr(pgi_install, "_make", lambda *_: (_ for _ in ()).throw(pgi_tree.Problem("made")))
    with pytest.raises(pgi_tree.Problem, match="made"):
        pgi_install.install(one, said.append)
    assert said == [f"pgi/19.10: {archives} can be written by root alone again"]
    assert stat.S_IMODE(archives.stat().st_mode) == 0o755


@pytest.mark.parametrize(("free", "fits"), [(40, True), (39, False)])
def test_room_for_four_archives_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], free: int, fits: bool
) -> None:
    one = version(tmp_path)
    (tmp_path / "pgi/19.10").mkdir(parents=True)
    (tmp_path / "pgi.tar.gz").write_bytes(b"x" * 10)
    monkeypatch.setattr(pgi_install, "_free", lambda folder: free if folder == one.folder else 0)
    digest = hashlib.sha256(b"x" * 10).hexdigest()
    stays = "; what was there before is as it was"
    words = (
        f"pgi/19.10: {one.archive} has the sha256 {digest}, declared is {'0' * 64}; it was not unpacked{stays}"
        if fits else f"pgi/19.10: 0.0 GB are free on {one.folder}, 0.0 GB are needed"
    )  # fmt: skip
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install._make(one, said.append)
    assert str(refused.value) == words
    assert os.listdir(one.folder) == []
    assert os.path.exists(one.archive)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "x"), "pgi/19.10: the file system is full"),
        (OSError(errno.EDQUOT, "x"), "pgi/19.10: the file system is full"),
        (OSError(errno.EIO, "x"), "pgi/19.10: [Errno 5] x"),
        (tarfile.TarError("torn"), "pgi/19.10: torn"),
        (pgi_tree.Problem("own words"), "own words"),
    ],
)
def test_what_fails_on_the_way_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], error: Exception, words: str
) -> None:
    one = version(tmp_path)
    folder = Path(one.folder)
    for name, finished in ((one.digest, True), (f"{one.digest}.1", False), (f"{one.digest}.4", True)):
        (folder / name).mkdir(parents=True)
        if finished:
            (folder / name / ".hal.json").write_text("{}")
    (folder / f".unpack-{one.digest}/left").mkdir(parents=True)
    (folder / "ffffffffffff").mkdir()
    (tmp_path / "pgi.tar.gz").touch()
    unpacked: list[Any] = []

    def unpack(_: Any, where: str) -> None:
        unpacked.append((where, stat.S_IMODE(os.stat(where).st_mode), os.listdir(where)))

    def run(_: Any, where: str, prefix: str) -> None:
        unpacked.append(prefix)
        os.mkdir(prefix)
        raise error

    monkeypatch.setattr(pgi_install, "_unpack", unpack)
    monkeypatch.setattr(pgi_install, "_run", run)
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install._make(one, said.append)
    assert str(refused.value) == f"{words}; what was there before is as it was"
    assert unpacked == [(f"{folder}/.unpack-{one.digest}", 0o700, []), f"{folder}/{one.digest}.5"]
    assert sorted(os.listdir(folder)) == sorted([one.digest, f"{one.digest}.4", "ffffffffffff"])
    assert said == []


def test_the_installer_gets_what_is_declared_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = version(tmp_path)
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install._run(one, str(tmp_path), "/p")
    assert str(refused.value) == f"pgi/19.10: {one.archive} has no program ./install; it is not an archive of PGI"
    (tmp_path / "install").touch(0o755)
    asked: list[Any] = []
    answers = [(0, ""), (3, "first\n  last \n\n")]

    def run(*given: Any) -> tuple[int, str]:
        asked.append(given)
        return answers.pop(0)

    monkeypatch.setattr(pgi_install, "run", run)
    monkeypatch.setenv("TMPDIR", "/fast")
    pgi_install._run(one, str(tmp_path), "/p")
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "TMPDIR": "/fast",
        "PGI_SILENT": "true", "PGI_ACCEPT_EULA": "accept", "PGI_INSTALL_DIR": "/p", "PGI_INSTALL_TYPE": "network",
        "PGI_INSTALL_LOCAL_DIR": "/local", "PGI_INSTALL_NVIDIA": "true", "PGI_INSTALL_MPI": "false",
        "PGI_MPI_GPU_SUPPORT": "false",
    }  # fmt: skip
    assert asked == [([f"{tmp_path}/install"], environment, str(tmp_path), 120)]
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install._run(one, str(tmp_path), "/p")
    assert str(refused.value) == "pgi/19.10: its installer ended with 3: last; more in /var/log/hal-pgi.log"


def test_a_program_s_words_are_kept_and_one_without_an_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("HAL_PGI_LOG", str(log))
    environment = {"PATH": os.environ["PATH"]}
    script = "cat; pwd; echo error >&2; exit 3"
    said = (3, f"{tmp_path}\nerror\n")
    assert pgi_install.run(["sh", "-c", script], environment, str(tmp_path), 60) == said
    assert log.read_text().split("\n", 1)[0].endswith(f" sh -c {script}")
    assert log.read_text().split("\n", 1)[1] == f"{said[1]}\n"
    status, words = pgi_install.run(["sh", "-c", "cut -d' ' -f6 /proc/$$/stat; echo $$"], environment, "/", 60)
    session, process = words.split()
    assert (status, session) == (0, process), "all that it starts is killed with it"
    log.unlink()
    begun, limits = tmp_path / "begun", []

    class Timer(threading.Thread):
        """It is over as soon as the program has begun."""

        def __init__(self, seconds: float, end: Callable[[], None]) -> None:
            super().__init__()
            limits.append(seconds)
            self._end = end

        def run(self) -> None:
            while not begun.exists():
                time.sleep(0.01)
            self._end()

        def cancel(self) -> None:
            self.join()

    monkeypatch.setattr(pgi_install.threading, "Timer", Timer)
    hangs = f"echo a; (sleep 600; :) & touch '{begun}'; sleep 600"
    assert pgi_install.run(["sh", "-c", hangs], environment, "/", 119) == ("no end after 1 minutes", "a\n")
    assert limits == [119]
    monkeypatch.undo()
    monkeypatch.setenv("HAL_PGI_LOG", str(log))
    assert log.read_text().count(" sh -c ") == 1
    monkeypatch.setenv("HAL_PGI_LOG", str(tmp_path / "none/log"))
    assert pgi_install.run(["true"], environment, "/", 60) == (0, "")


@pytest.mark.parametrize(
    ("mode", "after"), [(0o600, 0o644), (0o777, 0o755), (0o700, 0o744), (0o4666, 0o4644)]
)  # fmt: skip
def test_what_was_installed_can_be_read_by_all_and_written_by_root_alone(tmp_path: Path, mode: int, after: int) -> None:
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/sub/file").touch()
    (tmp_path / "top/sub/link").symlink_to("/nowhere")
    (tmp_path / "top/sub/file").chmod(mode)
    (tmp_path / "top/sub").chmod(0o722)
    (tmp_path / "top").chmod(0o700)
    pgi_install._own(str(tmp_path / "top"))
    found = [oct(stat.S_IMODE((tmp_path / "top" / name).stat().st_mode)) for name in ("", "sub", "sub/file")]
    assert found == ["0o755", "0o755", oct(after)]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'pgcc 19.10-0 LLVM'", ""), ("echo 'pgcc 19.10-0'; exit 3", "pgcc 19.10-0"),
        ("echo 'pgcc 19.1-0'", "pgcc 19.1-0"), ("echo 'pgcc 119.10-0'", "pgcc 119.10-0"), ("true", "nothing"),
        ('[ "$*" = -V ] && echo " 19.10-$PATH$HOME$LC_ALL"; pwd', ""),
    ],
)  # fmt: skip
def test_a_compiler_has_to_say_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setenv("HAL_PGI_LOG", str(tmp_path / "log"))
    one = version(tmp_path)
    driver = tmp_path / "p/linuxpower/19.10/bin/pgcc"
    with pytest.raises(pgi_tree.Problem, match=rf"^pgi/19\.10: after its installation there is no {driver}; is the "):
        pgi_install._check(one, str(tmp_path / "p"))
    driver.parent.mkdir(parents=True)
    driver.write_text(f"#!/bin/sh\n{script}\n")
    driver.chmod(0o755)
    if words:
        with pytest.raises(pgi_tree.Problem) as refused:
            pgi_install._check(one, str(tmp_path / "p"))
        assert str(refused.value) == f"pgi/19.10: {driver} -V says {words}"
    else:
        pgi_install._check(one, str(tmp_path / "p"))


def test_modules_are_led_to_an_installation_which_knows_the_hosts_at_once(tmp_path: Path, said: list[str]) -> None:
    one = version(tmp_path)
    folder = Path(one.folder)
    for name, files in (("old", {"localrc": "o", "localrc.a": "old", "localrc.b": "old", "siterc": "s", "pgcc": "o"}),
                        ("new", {"localrc.b": "new"})):  # fmt: skip
        place = folder / name / "linuxpower/19.10/bin"
        place.mkdir(parents=True)
        for file, text in files.items():
            (place / file).write_text(text)
    (folder / "current.new").symlink_to("left")
    pgi_install._switch(one, str(folder / "old"), said.append)
    pgi_install._switch(one, str(folder / "new"), said.append)
    pgi_install._switch(one, str(folder / "new"), said.append)
    assert said == [f"pgi/19.10: modules load {name} from now on" for name in ("old", "new")]
    assert os.readlink(one.current) == "new"
    found = {path.name: path.read_text() for path in (folder / "new/linuxpower/19.10/bin").iterdir()}
    assert found == {"localrc.a": "old", "localrc.b": "new", "siterc": "s"}
    os.unlink(one.current)
    os.mkdir(one.current)
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install._switch(one, str(folder / "new"), said.append)
    assert str(refused.value) == f"{one.current} is there and is not a link; move it away"


def test_the_last_words_of_a_program_are_said() -> None:
    assert pgi_install._last(" a \n\n b  \n \n") == "b"
    assert pgi_install._last(" \n") == "nothing"
    assert pgi_install._last("x" * 201) == "x" * 200


def test_one_that_fails_keeps_no_other_from_being_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = version(tmp_path).table
    made: list[str] = []

    def install(one: Any, say: Any) -> None:
        made.append(one.label)
        if one.label == "a":
            raise pgi_tree.Problem("no a")
        say(f"{one.label} is there")

    table.versions = [SimpleNamespace(label=name, repair=lambda name=name: name and "why") for name in ("a", "b", "")]
    monkeypatch.setattr(pgi_install, "install", install)
    monkeypatch.setattr(pgi_install, "refusals", lambda one: "no archive" if one.label == "a" else "")
    asked = SimpleNamespace(command="install", check=True)
    assert hal_pgi.run(table, asked) == 0
    assert capsys.readouterr().out == "a: would be installed, for why; but no archive\nb: would be installed, for why\n"
    assert made == []
    asked.check = False
    assert hal_pgi.run(table, asked) == 1
    told = capsys.readouterr()
    assert (told.out, told.err, made) == ("b is there\n", "hal-pgi: no a\n", ["a", "b"])
    table.installer = False
    for command in ("install", "prune", "verify"):
        with pytest.raises(pgi_tree.Problem, match=r"^this node does not install to the shared tree "):
            hal_pgi.run(table, SimpleNamespace(command=command, check=False))
