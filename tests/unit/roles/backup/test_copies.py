"""A copy has mode, time, owner and kind of what it is a copy of; what could not be copied is named."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def owners(programs: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Whoever is given to whom, as at a node, where root does it."""
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(programs.sources.os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs.sources.os, "lchown", lambda *words: given.append(words))
    own = "/proc/self/fd/{}".format
    monkeypatch.setattr(
        programs.sources.os, "fchown", lambda handle, *words: given.append((os.readlink(own(handle)), *words))
    )
    return given


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def saved(programs: Any, tmp_path: Path, *paths: Path, **more: Any) -> Path:
    """The copy of what these paths have."""
    source = {"name": "a_source", "kind": "files", "paths": [str(path) for path in paths], **more}
    assert programs.sources.save(source, str(tmp_path / "copy")) == {}
    return tmp_path / "copy" / str(tmp_path)[1:]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with all that a folder can have."""
    tree = tmp_path / "deep" / "tree"
    (tree / "below" / "out").mkdir(parents=True)
    (tree / "out").mkdir()
    (tree / "file").write_text("content")
    (tree / "out" / "file").touch()
    (tree / "below" / "out" / "file").touch()
    (tree / "link").symlink_to("nowhere")
    (tree / "linked").symlink_to("below")
    os.mkfifo(tree / "pipe")
    (tree / "file").chmod(0o640)
    (tree / "below").chmod(0o750)
    tree.chmod(0o711)
    (tmp_path / "deep").chmod(0o705)
    for path, at in ((tree / "file", 1000), (tree / "below", 2000), (tree, 3000)):
        os.utime(path, (at, at))
    return tree


def test_a_folder_is_copied_as_it_is(
    programs: Any, tree: Path, tmp_path: Path, owners: list[tuple[str, int, int]]
) -> None:
    (tree / "below" / "next").mkdir()
    os.utime(tree / "below", (2000, 2000))
    copy = saved(programs, tmp_path, tree, left_out=["out", "below/next", "link/x"]) / "deep" / "tree"
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == [
        *("below", "below/out", "below/out/file", "file", "link", "linked")
    ]
    assert [os.readlink(copy / name) for name in ("link", "linked")] == ["nowhere", "below"]
    assert (copy / "file").read_text() == "content"
    assert [mode(path) for path in (copy.parent, copy, copy / "below", copy / "file")] == [0o705, 0o711, 0o750, 0o640]
    assert [path.stat().st_mtime for path in (copy, copy / "below", copy / "file")] == [3000, 2000, 1000]
    me = (tree.stat().st_uid, tree.stat().st_gid)
    below = [copy, copy / "below", copy / "below/out", copy / "below/out/file", copy / "file", copy / "link"]
    assert {(str(path), *me) for path in [*below, copy / "linked", copy.parent]} <= set(owners)


def test_each_gets_the_owner_of_its_own(programs: Any, tmp_path: Path, owners: list[tuple[str, int, int]]) -> None:
    seen = os.stat_result((0, 0, 0, 0, 12, 34, 0, 0, 0, 0))
    programs.sources.give("/x", seen)
    assert owners == [("/x", 12, 34)]


def test_an_ordinary_user_keeps_what_he_copies(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.sources.os, "geteuid", lambda: 1)
    monkeypatch.delattr(programs.sources.os, "lchown")
    programs.sources.give("/x", os.stat("/"))


def test_files_of_several_folders_keep_their_paths(programs: Any, tree: Path, tmp_path: Path) -> None:
    """Also a link to nowhere, and one beside what was copied before."""
    (tree / "second").write_text("2")
    copy = saved(programs, tmp_path, tree / "file", tree / "second", tree / "link") / "deep" / "tree"
    assert sorted(os.listdir(copy)) == ["file", "link", "second"]
    assert mode(copy) == 0o711


def test_what_vanishes_meanwhile_was_temporary(
    programs: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def vanishes(path: Any, *words: Any) -> int:
        if os.path.realpath(path) == str(tree / "file"):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return opened(path, *words)

    monkeypatch.setattr(programs.sources.os, "open", vanishes)
    copy = saved(programs, tmp_path, tree) / "deep" / "tree"
    assert sorted(os.listdir(copy)) == ["below", "link", "linked", "out"]


@pytest.mark.parametrize("named", ["/some/file", None])
def test_what_cannot_be_copied_is_named(
    programs: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    def broken(content: Any, copy: Any) -> None:
        raise OSError(errno.EIO, "Input/output error", named)

    monkeypatch.setattr(programs.sources.shutil, "copyfileobj", broken)
    with pytest.raises(programs.common.Problem) as failed:
        saved(programs, tmp_path, tree)
    assert str(failed.value) == f"a_source: {named or tmp_path / 'copy'}: Input/output error"


def test_a_folder_that_becomes_a_link_is_not_read(
    programs: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write above it would find in the archive what only root may read."""
    is_folder = programs.sources._is_folder
    out = tree / "below" / "out"

    def exchanged(path: str) -> bool:
        found = bool(is_folder(path))
        if path.endswith("/out") and not out.is_symlink():
            out.rename(tmp_path / "moved")
            out.symlink_to(tmp_path)
        return found

    monkeypatch.setattr(programs.sources, "_is_folder", exchanged)
    with pytest.raises(programs.common.Problem) as failed:
        saved(programs, tmp_path, tree)
    assert str(failed.value) in [f"a_source: {out}: {why}" for why in ("Not a directory", os.strerror(errno.ELOOP))]
    assert not list((tmp_path / "copy").rglob("moved"))


def test_a_declared_folder_may_be_a_link_itself(programs: Any, tree: Path, tmp_path: Path) -> None:
    """What is there belongs to the administrator."""
    (tmp_path / "named").symlink_to("deep/tree")
    copy = saved(programs, tmp_path, tmp_path / "named") / "named"
    assert not copy.is_symlink()
    assert (mode(copy), (copy / "file").read_text()) == (0o711, "content")


def test_a_copy_is_a_file_of_its_own(programs: Any, tmp_path: Path) -> None:
    """Nothing is written through what is there: a link, a second name, or a file that somebody holds open."""
    (tmp_path / "source").write_text("content")
    (tmp_path / "source").chmod(0o640)
    os.utime(tmp_path / "source", (1000, 1000))
    (tmp_path / "precious").write_text("precious")
    for name in ("link", "hard"):
        target = tmp_path / name
        target.symlink_to("precious") if name == "link" else target.hardlink_to(tmp_path / "precious")
        programs.sources.copy_file(str(tmp_path / "source"), str(target))
        assert (target.read_text(), mode(target), target.stat().st_mtime) == ("content", 0o640, 1000)
        assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_that_became_something_else_is_not_copied(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the copy: a link to another's file is refused, a pipe is not waited for."""
    (tmp_path / "file").write_text("content")
    (tmp_path / "secret").write_text("secret")
    lstat, seen = os.lstat, os.lstat(tmp_path / "file")
    (tmp_path / "file").unlink()
    (tmp_path / "file").symlink_to("secret")
    former = str(tmp_path / "file")
    monkeypatch.setattr(programs.sources.os, "lstat", lambda path: seen if path == former else lstat(path))
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        programs.sources.copy_file(str(tmp_path / "file"), str(tmp_path / "copy"))
    (tmp_path / "file").unlink()
    os.mkfifo(tmp_path / "file")
    programs.sources.copy_file(str(tmp_path / "file"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == ""


def test_what_becomes_a_link_while_it_is_written_leads_nowhere(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who owns the folder exchanges the copy: mode, owner and time are those of what was opened."""
    precious, target, folder = tmp_path / "precious", tmp_path / "copy", tmp_path / "folder"
    precious.touch(0o600)
    os.utime(precious, (5, 5))
    (tmp_path / "source").touch(0o755)
    fchmod, mkdir = os.fchmod, os.mkdir

    def exchanged(*words: Any) -> None:
        fchmod(*words)
        target.unlink()
        target.symlink_to(precious)

    def replaced(path: str) -> None:
        mkdir(path)
        os.rmdir(path)
        os.symlink(tmp_path / "source", path)

    monkeypatch.setattr(programs.sources.os, "fchmod", exchanged)
    programs.sources.copy_file(str(tmp_path / "source"), str(target))
    monkeypatch.setattr(programs.sources.os, "mkdir", replaced)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        programs.sources.make_like(str(tmp_path), str(folder))
    assert (mode(precious), precious.stat().st_mtime) == (0o600, 5)
    assert mode(tmp_path / "source") == 0o755


def test_a_setting_is_found_among_bytes_that_are_no_text(programs: Any, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_bytes(b"# \xff Gr\xc3\xb6\xc3\x9fe\nStateSaveLocation=/gr\xc3\xb6\xc3\x9fe\n")
    assert programs.sources.setting(str(conf), "StateSaveLocation") == "/größe"


def test_the_last_setting_counts_however_it_is_written(programs: Any, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("# StateSaveLocation=/no\nStateSaveLocation=/first\n  statesavelocation = /last  # x\nOther=1\n")
    assert programs.sources.setting(str(conf), "StateSaveLocation") == "/last"
    with pytest.raises(programs.common.Problem) as lacks:
        programs.sources.setting(str(conf), "SlurmUser")
    assert str(lacks.value) == f"{conf} has no SlurmUser"
    with pytest.raises(programs.common.Problem) as gone:
        programs.sources.setting(str(tmp_path / "no.conf"), "SlurmUser")
    assert str(gone.value) == f"{tmp_path}/no.conf cannot be read: No such file or directory"


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "slurmctld").mkdir()
    (tmp_path / "slurm.conf").write_text(f"StateSaveLocation={tmp_path}/slurmctld\n")
    (tmp_path / "slurmctld" / "clustername").touch()
    return {"name": "slurm_state", "kind": "slurm_state", "conf": str(tmp_path / "slurm.conf")}


def test_a_state_keeps_its_mode_time_and_owner(
    programs: Any, slurm: dict[str, Any], tmp_path: Path, owners: list[tuple[str, int, int]]
) -> None:
    state = tmp_path / "slurmctld"
    state.chmod(0o750)
    os.utime(state, (1000, 1000))
    programs.sources.save(slurm, str(tmp_path / "copy"))
    copy = tmp_path / "copy" / "state"
    assert (mode(copy), copy.stat().st_mtime) == (0o750, 1000)
    assert owners[-1] == (str(copy), state.stat().st_uid, state.stat().st_gid)


def test_a_state_has_nothing_that_a_link_leads_to(programs: Any, slurm: dict[str, Any], tmp_path: Path) -> None:
    """The account slurm would get it from a restore, which gives it the whole state: the keys of root."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "key").write_text("secret")
    (tmp_path / "slurmctld" / "hash.1").symlink_to(tmp_path / "root")
    programs.sources.save(slurm, str(tmp_path / "copy"))
    assert sorted(os.listdir(tmp_path / "copy" / "state")) == ["clustername", "hash.1"]
    assert (tmp_path / "copy" / "state" / "hash.1").is_symlink()


def test_a_state_that_is_not_there_is_no_backup(programs: Any, slurm: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "slurmctld" / "clustername").unlink()
    (tmp_path / "slurmctld").rmdir()
    with pytest.raises(programs.common.Problem) as gone:
        programs.sources.save(slurm, str(tmp_path / "copy"))
    assert str(gone.value) == (
        f"slurm_state: {tmp_path}/slurmctld, the StateSaveLocation of {tmp_path}/slurm.conf, is not there"
    )


@pytest.mark.parametrize(("beside", "looks"), [("node_state.old", 40), ("node_state.new", 1)])
def test_a_file_that_is_away_is_waited_for_only_while_it_may_come_back(
    programs: Any, slurm: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, looks: int
) -> None:
    """Two seconds, when there is a former one."""
    (tmp_path / "slurmctld" / beside).touch()
    tried: list[str] = []
    waited: list[float] = []
    copy_file = programs.sources.copy_file

    def noted(source: str, target: str) -> None:
        tried.append(os.path.basename(source))
        copy_file(source, target)

    monkeypatch.setattr(programs.sources, "copy_file", noted)
    monkeypatch.setattr(programs.sources.time, "sleep", waited.append)
    programs.sources.save(slurm, str(tmp_path / "copy"))
    assert tried == ["clustername"] + ["node_state"] * looks
    assert waited == [0.05] * (40 if looks == 40 else 0)
    assert os.listdir(tmp_path / "copy" / "state") == ["clustername"]


def test_a_state_that_cannot_be_read_is_no_backup(
    programs: Any, slurm: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(source: str, target: str) -> None:
        raise OSError(errno.EIO, "Input/output error", source)

    monkeypatch.setattr(programs.sources, "copy_file", broken)
    with pytest.raises(programs.common.Problem) as failed:
        programs.sources.save(slurm, str(tmp_path / "copy"))
    assert str(failed.value) == f"slurm_state: {tmp_path}/slurmctld/clustername: Input/output error"


@pytest.mark.parametrize(
    ("dump", "tables"),
    [
        (b"-- Dump completed\n", 0),
        (b"CREATE TABLE `a` (\n x);\nCREATE TABLE `b` (\n-- CREATE TABLE\n-- Dump completed" + b"\n" * 183, 2),
        (b"CREATE TABLE `a` (\n-- Dump completed" + b"\n" * 184, None),
    ],
)
def test_a_dump_ends_with_its_last_line(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dump: bytes, tables: int | None
) -> None:
    """Within its last 200 bytes."""
    told: list[list[str]] = []

    def run(argv: list[str], stdout: Any) -> None:
        told.append(argv)
        stdout.write(dump)

    monkeypatch.setattr(programs.sources, "run", run)
    source = {"name": "db", "kind": "mariadb", "database": "slurm_acct_db", "socket": "/run/x"}
    if tables is None:
        with pytest.raises(programs.common.Problem, match=r"^db: mysqldump ended early: its last line is missing$"):
            programs.sources.save(source, str(tmp_path / "copy"))
    else:
        assert programs.sources.save(source, str(tmp_path / "copy")) == {"tables": tables}
    assert (tmp_path / "copy" / "dump.sql").read_bytes() == dump
    options = ["--single-transaction", "--quick", "--hex-blob"]
    assert told == [["mysqldump", "--socket=/run/x", "--user=root", *options, "slurm_acct_db"]]
