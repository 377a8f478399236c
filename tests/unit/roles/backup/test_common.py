"""What the programs of the backup share: files that are whole or not there, room on a disk, and other programs."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FILES = Path(__file__).resolve().parents[4] / "roles" / "backup" / "files"


def test_numbers_of_a_configuration_are_numbers_however_they_were_written(programs: Any, tmp_path: Path) -> None:
    written = {"reserve_mb": "1", "max_age_hours": "2", "keep_daily": "3", "keep_weekly": "4", "node": "5", "x": ["6"]}
    written["quota_mb"] = "7"
    (tmp_path / "config.json").write_text(json.dumps(written))
    assert programs.common.configuration(str(tmp_path / "config.json")) == {
        "reserve_mb": 1,
        "max_age_hours": 2,
        "keep_daily": 3,
        "keep_weekly": 4,
        "quota_mb": 7,
        "node": "5",
        "x": ["6"],
    }


def test_a_name_says_when_an_archive_was_made(programs: Any) -> None:
    made_at = programs.common.made_at
    assert made_at("hal-mgmt1", programs.common.archive_name("hal-mgmt1", 1764000000)) == 1764000000
    name = "hal01-20261121T023001Z.tar.gz.gpg"
    assert made_at("hal01", name) == 1795228201
    others = ["HAL01-20261121T023001Z.tar.gz.gpg", f"{name}\n", f"{name}.json", name.replace("1121T", "1321T"), ""]
    others += ["hal01-20261121T023061Z.tar.gz.gpg", "hal01-2026112T0230010Z.tar.gz.gpg", name.replace("2026", "0000")]
    assert [made_at("hal01", other) for other in others] == [None] * len(others)
    assert made_at("hal0", name) is None


def test_a_file_that_cannot_be_read_is_named(programs: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(programs.common.Problem) as gone:
        programs.common.load(str(path))
    assert str(gone.value) == f"{path} cannot be read: [Errno 2] No such file or directory: '{path}'"
    path.write_text("{")
    with pytest.raises(programs.common.Problem) as broken:
        programs.common.load(str(path))
    assert str(broken.value).startswith(f"{path} cannot be read: Expecting property name")


def test_what_is_written_is_on_the_disk_before_it_has_its_name(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "x.json", []
    path.write_text("former")
    monkeypatch.setattr(
        programs.common.os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.read_text()))
    )
    programs.common.save(str(path), {"b": 1, "a": [2]})
    assert path.read_text() == '{\n "a": [\n  2\n ],\n "b": 1\n}\n'
    assert seen == [(len(path.read_text()), "former")]
    assert path.stat().st_mode & 0o777 == 0o600
    programs.common.save(str(path), {}, 0o644)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["x.json"]


def test_what_cannot_be_written_changes_nothing(programs: Any, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("former")
    with pytest.raises(TypeError):
        programs.common.save(str(tmp_path / "x.json"), {"no JSON": object()})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.json", "former")]


def test_a_name_is_the_same_text_whatever_it_was_read_as(programs: Any) -> None:
    assert [programs.common.text(name) for name in ("é", "é".encode(), b"a\xff", "a\udcff")] == ["é", "é", "a�", "a�"]
    assert programs.common.native({"a": ["b", 1], "c": None}) == {"a": ["b", 1], "c": None}
    assert programs.common.native("a\ud800") == "a?", "no file has half a character in its name"


def test_names_are_the_same_in_json_and_on_disk_whatever_the_locale(programs: Any, tmp_path: Path) -> None:
    """In the locale C, which a unit of systemd has, Python 3.6 takes names for ASCII; here one that is told to."""
    content = {"größe": ["ü\u2028", 1, True, None, ("ß",)]}
    path = tmp_path / "x.json"
    programs.common.save(str(path), content)
    assert path.read_bytes().isascii()
    assert (
        programs.common.load(str(path)) == json.loads(path.read_text()) == {"größe": ["ü\u2028", 1, True, None, ["ß"]]}
    )
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import backup_common as common\n"
        "there = common.load(sys.argv[2]); (name,) = there; open(sys.argv[3] + name, 'w').close()\n"
        "common.save(sys.argv[2], there); sys.stdout.write(common.shown(name) + common.dumped(name))\n"
    )
    argv = [sys.executable, "-B", "-X", "utf8=0", "-c", script, str(FILES), str(path), f"{tmp_path}/"]
    environment = {**os.environ, "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(argv, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == 'größe"gr\\u00f6\\u00dfe"'
    assert (tmp_path / "größe").exists()
    assert programs.common.load(str(path)) == {"größe": ["ü\u2028", 1, True, None, ["ß"]]}


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("größe 5", "größe 5"),
        ("a\x1b[2J\n\r\t\x7f", r"a\x1b[2J\x0a\x0d\x09\x7f"),
        ("\u202eexe.txt\u2028\xa0\u200b", r"\u202eexe.txt\u2028\u00a0\u200b"),
        (b"a\xff", r"a\xff"),
        ("\u3164\u115f\u2800\u034f\ufe0f\U000e0061", r"\u3164\u115f\u2800\u034f\ufe0f\U000e0061"),
    ],
)
def test_a_name_is_shown_without_what_a_terminal_obeys(programs: Any, name: Any, seen: str) -> None:
    assert programs.common.shown(name) == seen


def test_a_lock_is_held_by_one(programs: Any, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with programs.common.locked(str(path), "held"):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(programs.common.Problem, match=r"^held$"), programs.common.locked(str(path), "held"):
            pytest.fail("two hold it")
    with programs.common.locked(str(path), "held"):
        path.unlink()  # as what came does, when it gets its name
        with programs.common.locked(str(path), "held"):
            pass
    path.unlink()
    path.symlink_to("elsewhere")
    with pytest.raises(programs.common.Problem) as refused, programs.common.locked(str(path), "held"):
        pytest.fail("it leads elsewhere")
    assert str(refused.value) == f"{path} cannot be opened: Too many levels of symbolic links"
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_that_went_away_meanwhile_is_not_taken(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening it and holding it its owner gave it another name: it is then another file's."""
    flock = programs.common.fcntl.flock

    def renamed(handle: int, how: int) -> None:
        (tmp_path / "lock").rename(tmp_path / "archive")
        flock(handle, how)

    monkeypatch.setattr(programs.common.fcntl, "flock", renamed)
    with (
        pytest.raises(programs.common.Problem, match=r"^held$"),
        programs.common.locked(str(tmp_path / "lock"), "held"),
    ):
        pytest.fail("it is another file's")


@pytest.mark.parametrize(("blocks", "megabytes"), [(256000, 1000), (255999, 999), (0, 0)])
def test_room_is_counted_in_whole_megabytes(
    programs: Any, monkeypatch: pytest.MonkeyPatch, blocks: int, megabytes: int
) -> None:
    """Those that an ordinary user may still write: f_bavail, of f_frsize bytes each."""
    disk = SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_bfree=10**9, f_bsize=1)
    monkeypatch.setattr(programs.common.os, "statvfs", lambda path: disk)
    assert programs.common.free_mb("/x") == megabytes


@pytest.mark.parametrize(("size", "needed"), [(0, 1), (1024**2 - 1, 1), (1024**2, 2), (5 * 1024**2 + 7, 6)])
def test_what_has_no_room_is_not_begun(programs: Any, monkeypatch: pytest.MonkeyPatch, size: int, needed: int) -> None:
    monkeypatch.setattr(programs.common, "free_mb", lambda path: 100 + needed)
    programs.common.need_room("/x", size, 100, "an archive")
    with pytest.raises(programs.common.Problem) as full:
        programs.common.need_room("/x", size, 101, "an archive")
    assert str(full.value) == (
        f"no room for an archive in /x: {100 + needed} MB are free, it needs {needed} MB and 101 MB have to stay free"
    )


def test_a_program_gets_what_it_is_given_and_speaks_english(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("KEPT", "yes")
    run, (path, target) = programs.common.run, (tmp_path / "in", tmp_path / "out")
    path.write_text("of a file")
    assert run(["sh", "-c", "echo $LC_ALL $KEPT; cat"], stdin=b"bytes\xff") == "C yes\nbytes�"
    assert run(["cat"]) == ""
    with open(path, "rb") as source, open(target, "wb") as sink:
        assert run(["cat"], stdin=source, stdout=sink) == ""
    assert target.read_text() == "of a file"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo first >&2; echo '  last  ' >&2; echo ' ' >&2; exit 3", "sh: last"),
        ("echo 'sh: said by itself' >&2; exit 1", "sh: said by itself"),
        ("echo ignored; exit 3", "sh: exit status 3"),
        ("kill -9 $$", "sh: exit status -9"),
        ("printf 'near \\033[2Jx\\n' >&2; exit 1", r"sh: near \x1b[2Jx"),
        (r"printf 'near \\x1b[2Jx\n' >&2; exit 1", r"sh: near \x1b[2Jx"),
    ],
)
def test_a_program_that_fails_is_told_in_its_last_words(programs: Any, script: str, said: str) -> None:
    with pytest.raises(programs.common.Problem) as failed:
        programs.common.run(["/bin/sh", "-c", script])
    assert str(failed.value) == said


def test_a_program_that_is_not_there_is_named(programs: Any) -> None:
    with pytest.raises(programs.common.Problem, match=r"^/no/program cannot be started: No such file or directory$"):
        programs.common.run(["/no/program", "x"])


def test_a_problem_is_one_line_and_exit_status_1(
    programs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And whatever the program writes is nobody else's."""
    masks: list[int] = []
    monkeypatch.setattr(programs.common.os, "umask", masks.append)
    monkeypatch.setattr(sys, "argv", ["program", "one", "two"])

    def refuse(arguments: list[str]) -> int:
        raise programs.common.Problem("no " + " ".join(arguments))

    def fail(arguments: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/x")

    def drive(arguments: list[str]) -> int:
        raise programs.common.Problem("no \x1b[2J\u202e\u3164\n\udcff größe, \\x1b")

    for function, said in (
        (refuse, "no one two\n"),
        (fail, "[Errno 28] No space left on device: '/x'\n"),
        (drive, r"no \x1b[2J\u202e\u3164\x0a\xff größe, \x1b" + "\n"),
    ):
        with pytest.raises(SystemExit) as refused:
            programs.common.main(function)
        assert (refused.value.code, capsys.readouterr().err, masks.pop()) == (1, said, 0o077)
    with pytest.raises(SystemExit) as done:
        programs.common.main(len)
    assert (done.value.code, capsys.readouterr().err) == (2, "")
