"""What hal-pgi sees, notes and refuses, each by itself: readings, hosts, the node's gcc, members of an archive."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.compilers.test_steps import pgi_install, pgi_tree, version

NOW = 1_790_000_000


def finished(one: Any, **record: Any) -> Path:
    """The installation of a version, with a record and loaded; nothing of it is wrong."""
    prefix = Path(one.prefix)
    (prefix / "linuxpower/19.10/bin").mkdir(parents=True)
    (prefix / "linuxpower/19.10/bin/pgcc").touch(0o755)
    (prefix / ".hal.json").write_text(json.dumps({"files": {}, "installed_at": NOW, **record}))
    Path(one.folder, pgi_tree.MARK).touch()
    Path(one.current).symlink_to(prefix.name)
    return prefix


@pytest.fixture
def refused() -> Callable[..., str]:
    """A function: calls something that has to be refused -> its words."""

    def call(function: Callable[..., Any], *words: Any) -> str:
        with pytest.raises(pgi_tree.Problem) as found:
            function(*words)
        return str(found.value)

    return call


def test_a_reading_is_noted_and_one_that_ends_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    one = version(tmp_path)
    assert refused(pgi_install.verify, one) == "pgi/19.10 is not installed"
    files = {"gone": [1, "x"], "linuxpower/19.10/bin/pgcc": [0, pgi_tree.sha256_of(os.devnull)]}
    prefix = finished(one, files=files)
    monkeypatch.setattr(pgi_install.time, "time", lambda: NOW + 0.7)
    for path in (prefix, *prefix.rglob("*")):
        path.chmod(0o755)
    (prefix / ".hal.verified.json.new").write_text("left")
    assert pgi_install.verify(one) == "1 missing (gone)"
    noted = prefix / ".hal.verified.json"
    assert json.loads(noted.read_text()) == {"words": "1 missing (gone)", "time": NOW, "at": pgi_tree.moment(NOW)}
    assert not Path(f"{noted}.new").exists()
    (prefix / "gone").write_bytes(b"y")
    files["gone"] = [1, pgi_tree.sha256_of(str(prefix / "gone"))]
    (prefix / ".hal.json").write_text(json.dumps({"files": files, "installed_at": NOW}))
    assert pgi_install.verify(one) == ""
    assert json.loads(noted.read_text())["words"] == ""

    def compare(*_: Any) -> Any:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(pgi_install, "compare", compare)
    assert refused(pgi_install.verify, one) == "pgi/19.10: cannot be read: [Errno 5] broken"
    assert json.loads(noted.read_text())["words"] == ""


@pytest.mark.parametrize(
    ("days", "late"), [(-1, True), (-0.9, False), (0, False), (14.9, False), (15, False), (15.1, True)]
)
def test_a_reading_counts_for_so_many_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: float, late: bool
) -> None:
    one = version(tmp_path)
    assert one.late() == ""
    finished(one)
    monkeypatch.setattr(pgi_tree, "time", SimpleNamespace(
        time=lambda: NOW + days * 86400, strftime=pgi_tree.time.strftime, localtime=pgi_tree.time.localtime
    ))  # fmt: skip
    since = f"not since {pgi_tree.moment(NOW)}: systemctl start hal-pgi-verify.service, on the node that installs"
    assert one.late() == (since if late else "")


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node hal01.x with gcc 4.8.5."""
    monkeypatch.setattr(pgi_tree.socket, "gethostname", lambda: "hal01.x")
    monkeypatch.setattr(pgi_tree, "gcc_version", lambda: "4.8.5")


@pytest.mark.usefixtures("node")
def test_settings_for_a_host_are_those_of_its_gcc(tmp_path: Path) -> None:
    one = version(tmp_path)
    assert one.localrc_wrong() == "pgi/19.10 is not installed"
    folder = finished(one) / "linuxpower/19.10/bin"
    assert one.localrc_wrong() == f"{folder} has no localrc.hal01: the compilers do not know this node's gcc"
    for name, text, words in (
        ("hal01.x", "set A=1;\n# GCC version 4.8.5\n", ""),
        ("hal01.x", "# GCC version 7.3\n", "{} is for gcc 7.3, and this node has 4.8.5"),
        ("hal01", "# GCC version 4.8.5 (Red Hat)\n", ""),
        ("hal01", "#\n# GCC version 4.8.4\n", "{} is for gcc 4.8.4, and this node has 4.8.5"),
        ("hal01", "x # GCC version 4.8.5\n", "{} is for gcc an unknown version, and this node has 4.8.5"),
    ):
        path = folder / f"localrc.{name}"
        path.write_text(text)
        assert one.localrc_wrong() == words.format(path)
    Path(one.current).unlink()
    assert one.localrc_wrong() == "pgi/19.10 is not installed"
    Path(one.current).symlink_to(Path(one.prefix).name)
    (Path(one.prefix) / ".hal.json").unlink()
    assert one.localrc_wrong() == "pgi/19.10 is not installed"


@pytest.mark.parametrize(("name", "names"), [("hal01", ["hal01"]), ("hal01.x.y", ["hal01", "hal01.x.y"])])
def test_a_host_has_its_short_name_first(monkeypatch: pytest.MonkeyPatch, name: str, names: list[str]) -> None:
    monkeypatch.setattr(pgi_tree.socket, "gethostname", lambda: name)
    assert pgi_tree.hosts() == names


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ([(0, b" 7.3.0\n")], "7.3.0"), ([(1, b"7"), (0, b"4.8.5\n")], "4.8.5"), ([(0, b""), (0, b"4.8.5")], "4.8.5"),
        ([(1, b""), (1, b"4")], "none"), ([None], "none"),
    ],
)  # fmt: skip
def test_the_system_s_gcc_is_asked_in_the_newer_way_first(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], found: str
) -> None:
    asked: list[Any] = []
    left = list(answers)

    def popen(words: list[str], **_: Any) -> Any:
        asked.append(words)
        answer = left.pop(0)
        if answer is None:
            raise OSError(errno.ENOENT, "no gcc")
        return SimpleNamespace(communicate=lambda: (answer[1], b""), returncode=answer[0])

    monkeypatch.setattr(pgi_tree.subprocess, "Popen", popen)
    assert pgi_tree.gcc_version() == found
    assert asked == [["/usr/bin/gcc", option] for option in ("-dumpfullversion", "-dumpversion")][: len(answers)]


@pytest.mark.usefixtures("node")
def test_compilers_are_told_of_a_host_by_their_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    one, said = version(tmp_path), list[str]()
    asked: list[Any] = []
    answers: list[Any] = []

    def run(*given: Any) -> tuple[int, str]:
        asked.append(given)
        status, words, text = answers.pop(0)
        if text:
            (folder / "localrc.hal01").write_text(text)
        return status, words

    monkeypatch.setattr(pgi_install, "run", run)
    assert refused(pgi_install.localrc, one, said.append) == "pgi/19.10 is not installed"
    folder = finished(one) / "linuxpower/19.10/bin"
    program = folder / "add_network_host"
    assert refused(pgi_install.localrc, one, said.append) == f"pgi/19.10: there is no {program}"
    program.touch(0o755)
    missing = f"{folder} has no localrc.hal01: the compilers do not know this node's gcc"
    right = "# GCC version 4.8.5\n"
    for status, words, text, why in (
        (0, "done\n", "", "ended with 0: done"), (3, "no gcc\n", "", "ended with 3: no gcc"),
        (3, "late\n", right, "ended with 3: late"),
    ):  # fmt: skip
        answers.append((status, words, text))
        assert one.localrc_wrong() == missing
        assert refused(pgi_install.localrc, one, said.append) == f"pgi/19.10: {program} {why}"
    assert said == []
    pgi_install.localrc(one, said.append)
    assert (said, len(asked)) == ([], 3), "it knows this host"
    (folder / "localrc.hal01").unlink()
    answers.append((0, "", right))
    pgi_install.localrc(one, said.append)
    assert said == ["pgi/19.10: knows the compiler of this node"]
    environment = {
        "PATH": f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "PGI": str(one.prefix),
    }  # fmt: skip
    assert asked == [([str(program)], environment, "/", 300)] * 4


def archive(one: Any, *members: tuple[str, bytes, int]) -> str:
    """An archive of (name, kind, mode); its checksum is declared then."""
    with tarfile.open(one.archive, "w:gz") as tar:
        for name, kind, mode in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.gid, member.uname = kind, mode, 921, 1004, "nobody"
            member.size, member.linkname = (3 if kind == tarfile.REGTYPE else 0), "x"
            tar.addfile(member, io.BytesIO(b"abc"))
    one.sha256 = pgi_tree.sha256_of(one.archive)
    return str(one.sha256)


@pytest.mark.parametrize("name", ["/etc/x", "a/../../x", "..", "../x"])
def test_a_member_outside_of_the_folder_ends_it(tmp_path: Path, name: str) -> None:
    one = version(tmp_path)
    archive(one, ("a", tarfile.DIRTYPE, 0o755), (name, tarfile.REGTYPE, 0o644), ("b", tarfile.REGTYPE, 0o644))
    (tmp_path / "to").mkdir()
    with pytest.raises(tarfile.TarError) as refused:
        pgi_install._unpack(one, str(tmp_path / "to"))
    assert str(refused.value) == f"the archive's member {name} leads out of it"
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == [".archive", "a"]


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_a_device_ends_it(tmp_path: Path, kind: bytes) -> None:
    one = version(tmp_path)
    archive(one, ("null", kind, 0o644))
    (tmp_path / "to").mkdir()
    with pytest.raises(tarfile.TarError) as refused:
        pgi_install._unpack(one, str(tmp_path / "to"))
    assert str(refused.value) == "the archive's member null is a device"


@pytest.mark.root  # who alone gives files to others
def test_what_is_unpacked_is_root_s_alone_to_write(tmp_path: Path) -> None:
    one = version(tmp_path)
    modes = {"a": 0o000, "b": 0o4777, "c": 0o555, "..d": 0o1644}
    archive(one, ("sub", tarfile.DIRTYPE, 0o3777), *((name, tarfile.REGTYPE, mode) for name, mode in modes.items()))
    (tmp_path / "to").mkdir()
    pgi_install._unpack(one, str(tmp_path / "to"))
    found = {path.name: path.stat() for path in (tmp_path / "to").iterdir()}
    assert {name: oct(stat.S_IMODE(seen.st_mode)) for name, seen in found.items()} == {
        "a": "0o200", "b": "0o755", "c": "0o755", "..d": "0o644", "sub": "0o755",
    }  # fmt: skip
    assert {(seen.st_uid, seen.st_gid) for seen in found.values()} == {(os.geteuid(), os.getegid())}
    assert (tmp_path / "to/b").read_bytes() == b"abc"
    assert os.path.exists(one.archive)


@pytest.mark.parametrize("brought", [False, True])
def test_another_archive_than_declared_is_not_unpacked(
    tmp_path: Path, refused: Callable[..., str], brought: bool
) -> None:
    one = version(tmp_path, "pgi.tar.gz" if brought else "")
    Path(one.archive).parent.mkdir(parents=True, exist_ok=True)
    found = archive(one, ("a", tarfile.REGTYPE, 0o644))
    one.sha256 = "0" * 64
    (tmp_path / "to").mkdir()
    again = ", and is removed: the next time it is brought again" if brought else ""
    assert refused(pgi_install._unpack, one, str(tmp_path / "to")) == (
        f"pgi/19.10: {one.archive} has the sha256 {found}, declared is {'0' * 64}; it was not unpacked{again}"
    )
    assert os.listdir(tmp_path / "to") == [".archive"]
    assert os.path.exists(one.archive) is not brought


def test_a_program_that_ends_is_not_waited_for_any_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    def timer(seconds: float, _: Any) -> Any:
        done.append(seconds)
        return SimpleNamespace(start=lambda: done.append("start"), cancel=lambda: done.append("cancel"))

    monkeypatch.setattr(pgi_install.threading, "Timer", timer)
    monkeypatch.setenv("HAL_PGI_LOG", str(tmp_path / "log"))
    assert pgi_install.run([sys.executable, "-c", "print('größe')"], {"LC_ALL": "C.UTF-8"}, "/", 9) == (0, "größe\n")
    assert done == [9, "start", "cancel"]
    with pytest.raises(OSError, match="no-such-program"):
        pgi_install.run([str(tmp_path / "no-such-program")], {}, "/", 9)


@pytest.mark.root  # to give a folder away
def test_an_installation_is_made_when_there_is_none_or_it_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    one, said, made = version(tmp_path, "pgi.tar.gz"), list[str](), list[str]()
    Path(one.archive).parent.mkdir(parents=True)

    def make(*_: Any) -> str:
        made.append("made")
        return str(one.prefix)

    def switch(_: Any, prefix: str, __: Any) -> None:
        made.append(f"switched to {prefix}")

    monkeypatch.setattr(pgi_install, "_make", make)
    monkeypatch.setattr(pgi_install, "_switch", switch)
    Path(one.archive).touch()
    (tmp_path / "pgi").chmod(0o777)
    pgi_install.install(one, said.append)
    switched = f"switched to {one.prefix}"
    assert made == ["made", switched]
    assert said == [f"pgi/19.10: {tmp_path}/pgi can be written by root alone again"]
    assert stat.S_IMODE((tmp_path / "pgi").stat().st_mode) == 0o755
    assert not os.path.exists(one.archive), "a copy that was brought"
    assert Path(one.folder, ".hal").read_text() == ""
    Path(one.archive).touch()
    prefix = finished(one)
    os.chown(one.folder, 4711, 4712)
    made.clear()
    pgi_install.install(one, said.append)
    assert made == [switched]
    assert said[1:] == [f"pgi/19.10: {one.folder} can be written by root alone again"]
    assert (os.stat(one.folder).st_uid, os.stat(one.folder).st_gid) == (os.geteuid(), os.getegid())
    for name, text in ((".hal.verified.json", '{"words": "1 changed (x)"}'), (".hal.json", "")):
        Path(one.archive).touch()
        made.clear()
        (prefix / name).write_text(text)
        pgi_install.install(one, said.append)
        assert made == ["made", switched]
    one = version(tmp_path)
    assert refused(pgi_install.install, one, said.append).startswith("pgi/19.10 is declared and its archive is not")
    Path(one.archive).touch()
    os.unlink(Path(one.folder, ".hal"))
    assert refused(pgi_install.install, one, said.append) == one.foreign()
    Path(one.folder, ".hal").touch()
    made.clear()
    pgi_install.install(one, said.append)
    assert (made, os.path.exists(one.archive)) == (["made", f"switched to {one.prefix}"], True)
