"""Files in a restore: what differs is put beside its place and renamed into it, never through a link of the node."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

OWN = {"user": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}


def words_of(stamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


@pytest.fixture
def files(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A folder of three files and a link, and what an archive of it has, unpacked."""
    home = tmp_path / "home"
    (home / "below").mkdir(parents=True)
    (home / "out").mkdir()
    for number, name in enumerate(("one", "two", "below/three", "out/left")):
        (home / name).write_text(name)
        (home / name).chmod(0o640)
        os.utime(home / name, (1000 + number, 1000 + number))
    (home / "link").symlink_to("one")
    source = {"name": "home", "kind": "files", "paths": [str(home)], "left_out": ["out"]}
    monkeypatch.setattr(programs.contents, "NEVER", str(tmp_path / "never"))
    stage = tmp_path / "stage"
    programs.sources.save(source, str(stage / "home"))
    # Archives from before `left_out` was declared have it.
    (stage / "home" / str(home)[1:] / "out").mkdir()
    (stage / "home" / str(home)[1:] / "out" / "left").write_text("then")
    said = {"site": "hal", "node": "x", "made": 1002, "sources": [source]}
    packed = programs.archive.pack(str(stage), said, str(tmp_path / "x.tar.gz"))
    (source,) = programs.contents.chosen(*packed, [source], [])
    (home / "link").unlink()
    return SimpleNamespace(home=home, source=source, copy=str(stage / "home"))


def look(programs: Any, files: SimpleNamespace) -> Any:
    return programs.restore_files.look(files.source, 1002)[:2]


def plan(programs: Any, files: SimpleNamespace) -> list[str]:
    """Its lines, with paths in the folder."""
    lines = programs.restore_files.look(files.source, 1002)[2]
    return [line.replace(f"{files.home}/", "") for line in lines]


def refused(programs: Any, files: SimpleNamespace, said: str) -> None:
    """The plan and the restore say so, and nothing is left."""
    for step, words in ((programs.restore_files.look, 1002), (programs.restore_files.prepare, files.copy)):
        with pytest.raises(programs.common.Problem) as problem:
            step(files.source, words)
        assert str(problem.value) == said
        assert prepared(files) == []


def test_files_that_differ_are_counted_and_the_newest_named(programs: Any, files: SimpleNamespace) -> None:
    """What is left out of archives counts nowhere, and a link may lead elsewhere now."""
    assert look(programs, files) == ("3 files, the same as in the archive", False)
    for name, stamp, newer in (("one", 1001, False), ("two", 1001.5, False), ("below/three", 1002, True)):
        (files.home / name).write_text("another")
        os.utime(files.home / name, (stamp, stamp))
        count = ["one", "two", "below/three"].index(name) + 1
        assert look(programs, files) == (f"{count} files differ, the newest of {words_of(stamp)}", newer)
    (files.home / "out" / "left").write_text("changed today")
    (files.home / "link").symlink_to("nowhere")
    os.utime(files.home / "link", (1500, 1500), follow_symlinks=False)
    assert look(programs, files) == (f"4 files differ, the newest of {words_of(1500)}", True)


def test_several_paths_of_a_source_are_looked_at(programs: Any, files: SimpleNamespace) -> None:
    files.source["paths"] = [str(files.home / name) for name in ("one", "below", "gone")]
    assert look(programs, files) == ("2 files, the same as in the archive", False)
    files.source["paths"] = [str(files.home / "gone")]
    assert look(programs, files) == ("nothing is there", False)
    (files.home / "gone").symlink_to("nowhere")
    assert look(programs, files)[0].startswith("1 files differ")


def test_the_plan_has_each_path_and_what_happens_to_it(programs: Any, files: SimpleNamespace) -> None:
    own = "{user}:{group}".format(**OWN)
    assert plan(programs, files) == ["link: new, a link to one"]
    (files.home / "one").write_text("another")
    (files.home / "two").write_text("another")
    (files.home / "two").chmod(0o604)
    (files.home / "below" / "three").unlink()
    (files.home / "below").rmdir()
    (files.home / "link").symlink_to("two")
    (files.home / "more").touch()
    assert plan(programs, files) == [
        f"below: made, 0755 {own}",
        f"below/three: new, 0640 {own}",
        "link: replaced, a link to one",
        f"one: replaced, 0640 {own}",
        f"two: replaced, 0640 {own} instead of 0604 {own}",
    ]
    (files.home / "one").unlink()
    (files.home / "one").symlink_to("two")
    assert f"one: replaced, 0640 {own}" in plan(programs, files)


def test_a_plan_shows_no_name_that_a_terminal_obeys(programs: Any, files: SimpleNamespace) -> None:
    name = f"home{files.home}/\x1b[2J"
    files.source["entries"] = {name: {"type": "link", "target": "\u202e", "mode": "0777", "user": 0, "group": 0}}
    assert plan(programs, files) == [r"\x1b[2J: new, a link to \u202e"]


def test_an_owner_without_a_name_is_a_number(programs: Any, files: SimpleNamespace) -> None:
    for entry in files.source["entries"].values():
        entry.update(user=4000000001, group=4000000002)
    (files.home / "one").unlink()
    assert "one: new, 0640 4000000001:4000000002" in plan(programs, files)


@pytest.mark.parametrize("kind", ["user", "group"])
def test_who_is_not_there_owns_nothing(programs: Any, files: SimpleNamespace, kind: str) -> None:
    """By the number that comes with the name it would be somebody else's: alice's, who then reads the key."""
    (files.home / "one").unlink()
    files.source["entries"][f"home{files.home}/one"][kind] = "nobody-such"
    refused(
        programs,
        files,
        f"home: {files.home}/one belongs to the {kind} nobody-such, and this node has no such {kind}: roll out the role"
        " that makes it first",
    )


def test_one_file_can_be_left_out(programs: Any, files: SimpleNamespace) -> None:
    files.source["left_out"] = ["out", "one"]
    del files.source["entries"][f"home{files.home}/one"]
    (files.home / "one").write_text("another")
    (files.home / "link").symlink_to("one")
    assert look(programs, files)[0] == "3 files, the same as in the archive"
    assert str(files.home / "one") not in programs.restore_files.prepare(files.source, files.copy)


def prepared(files: SimpleNamespace) -> list[str]:
    return sorted(str(path.relative_to(files.home)) for path in files.home.rglob("*.restoring"))


def test_only_files_that_differ_are_prepared(programs: Any, files: SimpleNamespace) -> None:
    """A file that is gone and a link too, with the folder that is gone; nothing that is left out."""
    (files.home / "one").write_text("another")
    (files.home / "below" / "three").unlink()
    (files.home / "below").rmdir()
    places = programs.restore_files.prepare(files.source, files.copy)
    assert sorted(places) == sorted(str(files.home / name) for name in ("one", "link", "below/three"))
    assert prepared(files) == ["below/three.restoring", "link.restoring", "one.restoring"]
    assert (files.home / "one.restoring").read_text() == "one"
    assert (files.home / "one.restoring").stat().st_mode & 0o777 == 0o640
    assert (files.home / "one").read_text() == "another"
    programs.restore_files.forget(files.source, [*places, str(files.home / "two")])
    assert prepared(files) == []


def test_folders_of_a_declared_path_are_made_as_they_were(
    programs: Any, files: SimpleNamespace, tmp_path: Path
) -> None:
    """Also one with nothing in it; those above are folders that everybody may enter, whoever's they were."""
    deep, copy = tmp_path / "deep" / "er" / "home", tmp_path / "unpacked"
    for name, mode in (("deep", 0o777), ("deep/er", 0o700), ("deep/er/home", 0o2750), ("deep/er/home/empty", 0o711)):
        path = copy / str(tmp_path)[1:] / name
        path.mkdir(parents=True)
        path.chmod(mode)
    folder = {"type": "folder", "mode": "0750", **OWN}
    entries = {f"home{deep}": folder, f"home{deep}/empty": folder}
    source = {**files.source, "paths": [str(deep)], "entries": entries}
    former = os.umask(0o077)  # as the program has it
    try:
        assert programs.restore_files.prepare(source, str(copy)) == []
    finally:
        os.umask(former)
    modes = [path.stat().st_mode & 0o7777 for path in (deep.parents[1], deep.parent, deep, deep / "empty")]
    assert modes == [0o755, 0o755, 0o2750, 0o711]
    assert programs.restore_files.prepare(source, str(copy)) == [], "once more does no harm"


def test_nothing_is_put_where_nothing_is_permitted(programs: Any, files: SimpleNamespace) -> None:
    """Though it was unpacked, it is not in what the controller found."""
    (files.home / "one").unlink()
    (files.home / "two").unlink()
    del files.source["entries"][f"home{files.home}/one"]
    places = programs.restore_files.prepare(files.source, files.copy)
    assert sorted(places) == [str(files.home / name) for name in ("link", "two")]
    files.source["entries"] = {}
    assert programs.restore_files.prepare(files.source, "/nowhere") == []


def test_nothing_is_written_through_a_link_of_the_node(programs: Any, files: SimpleNamespace, tmp_path: Path) -> None:
    """Somebody who may write in a declared folder would have root write where he may not."""
    (tmp_path / "elsewhere").mkdir()
    (files.home / "below" / "three").unlink()
    (files.home / "below").rmdir()
    (files.home / "below").symlink_to(tmp_path / "elsewhere")
    refused(programs, files, f"home: {files.home}/below is a link on this node: nothing is written through it")
    assert os.listdir(tmp_path / "elsewhere") == []


def exchanged(files: SimpleNamespace, elsewhere: Path) -> None:
    """Put a link where a folder was."""
    if not (files.home / "below").is_symlink():
        (files.home / "below").rename(files.home / "moved")
        (files.home / "below").symlink_to(elsewhere)


@pytest.mark.parametrize("when", ["after it was looked at", "while it is copied"])
def test_a_folder_that_becomes_a_link_leads_nowhere(
    programs: Any, files: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Of two tries to write in a folder of another one wins: a service's account would have root write in /etc."""
    (files.home / "below" / "three").write_text("another")
    (tmp_path / "elsewhere").mkdir()
    module = programs.restore_files
    refuse, copy_file = module._refuse, module.copy_file

    def looked(source: Any, entry: Any, place: str) -> None:
        refuse(source, entry, place)
        if place.endswith("/three"):
            exchanged(files, tmp_path / "elsewhere")

    def copied(source: str, target: str) -> None:
        if source.endswith("/three"):
            exchanged(files, tmp_path / "elsewhere")
        copy_file(source, target)

    if when == "while it is copied":
        monkeypatch.setattr(module, "copy_file", copied)
        places = module.prepare(files.source, files.copy)
        assert (files.home / "moved" / "three.restoring").read_text() == "below/three"
        with pytest.raises(programs.common.Problem) as failed:
            module.replace(files.source, places, str(tmp_path / "aside"))
    else:
        monkeypatch.setattr(module, "_refuse", looked)
        with pytest.raises(OSError, match=r"Not a directory|Too many levels") as failed:
            module.prepare(files.source, files.copy)
        assert failed.value.filename == f"{files.home}/below"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_what_is_exchanged_before_it_is_replaced_is_not_touched(
    programs: Any, files: SimpleNamespace, tmp_path: Path
) -> None:
    (files.home / "below" / "three").write_text("another")
    places = programs.restore_files.prepare(files.source, files.copy)
    exchanged(files, tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for name in ("three", "three.restoring"):
        (tmp_path / "elsewhere" / name).write_text("precious")
    with pytest.raises(programs.common.Problem, match=f"^{files.home}/below: .*: nothing is replaced$"):
        programs.restore_files.replace(files.source, places, str(tmp_path / "aside"))
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        programs.restore_files.forget(files.source, [str(files.home / "below" / "three")])
    assert {path.read_text() for path in (tmp_path / "elsewhere").iterdir()} == {"precious"}
    assert len(os.listdir(tmp_path / "elsewhere")) == 2


def test_a_declared_folder_may_be_a_link_itself(programs: Any, files: SimpleNamespace, tmp_path: Path) -> None:
    """Whose it is on the node is the administrator's, as is what is above it."""
    (files.home / "one").write_text("another")
    os.utime(files.home / "one", (1500, 1500))
    files.home.rename(tmp_path / "real")
    files.home.symlink_to("real")
    os.utime(files.home, (500, 500), follow_symlinks=False)
    assert look(programs, files) == (f"1 files differ, the newest of {words_of(1500)}", True)
    places = programs.restore_files.prepare(files.source, files.copy)
    assert programs.restore_files.replace(files.source, places, str(tmp_path / "aside")) == "2 files replaced"
    assert (tmp_path / "real" / "one").read_text() == "one"


def test_a_folder_is_no_file_and_a_file_no_folder(programs: Any, files: SimpleNamespace) -> None:
    """A hostile archive has a folder munge.key; or the node has one."""
    (files.home / "below" / "three").unlink()
    (files.home / "below").rmdir()
    (files.home / "below").write_text("a file")
    refused(programs, files, f"home: {files.home}/below is a folder in the archive, and not one on this node")
    (files.home / "below").unlink()
    (files.home / "two").unlink()
    (files.home / "two").mkdir()
    refused(programs, files, f"home: {files.home}/two is a folder, and not one in the archive")
    (files.home / "two").rmdir()
    os.mkfifo(files.home / "two")
    assert str(files.home / "two") in programs.restore_files.prepare(files.source, files.copy)


def test_names_that_are_no_utf8_are_found_again(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In JSON a byte of them is another one; on the disk it is not."""
    monkeypatch.setattr(programs.contents, "NEVER", str(tmp_path / "never"))
    home, name = os.fsencode(tmp_path / "home"), b"\xff\xc3\xb6"
    os.makedirs(home + b"/deep\xff/empty\xff")
    for path in (home + b"/" + name, home + b"/deep\xff/" + name):
        with open(path, "wb") as target:
            target.write(b"then")
    os.symlink(name, home + b"/link\xff")
    source = {"name": "home", "kind": "files", "paths": [str(tmp_path / "home")]}
    programs.sources.save(source, str(tmp_path / "stage" / "home"))
    said = {"site": "hal", "node": "x", "made": 1002, "sources": [source]}
    packed = programs.archive.pack(str(tmp_path / "stage"), said, str(tmp_path / "x.tar.gz"))
    (source,) = programs.contents.chosen(*packed, [source], [])
    assert programs.restore_files.look(source, 0) == ("3 files, the same as in the archive", False, [])
    with open(home + b"/deep\xff/" + name, "wb") as target:
        target.write(b"now")
    os.rmdir(home + b"/deep\xff/empty\xff")
    there, _, lines = programs.restore_files.look(source, 0)
    assert there.startswith("1 files differ")
    assert [line.partition(":")[0].rpartition("/")[2] for line in lines] == [r"empty\ufffd", r"\xffö"]
    places = programs.restore_files.prepare(source, str(tmp_path / "stage" / "home"))
    assert [os.fsencode(place) for place in places] == [home + b"/deep\xff/" + name]
    assert programs.restore_files.replace(source, places, str(tmp_path / "aside")) == "1 files replaced"
    with open(home + b"/deep\xff/" + name, "rb") as seen:
        assert seen.read() == b"then"
    assert sorted(os.listdir(home + b"/deep\xff")) == [b"empty\xff", name]


def test_a_link_is_prepared_where_a_file_with_the_same_content_is(programs: Any, files: SimpleNamespace) -> None:
    (files.home / "link").write_text("one")
    assert programs.restore_files.prepare(files.source, files.copy) == [str(files.home / "link")]


def test_what_could_not_be_prepared_is_taken_away(
    programs: Any, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (files.home / name).write_text("another")
    copy_file, error = programs.sources.copy_file, OSError(errno.ENOSPC, "No space left on device")

    def full(source: str, target: str) -> None:
        copy_file(source, target)
        if len(prepared(files)) == 2:
            raise error

    monkeypatch.setattr(programs.restore_files, "copy_file", full)
    with pytest.raises(OSError, match="No space left") as raised:
        programs.restore_files.prepare(files.source, files.copy)
    assert raised.value is error
    assert prepared(files) == []


def test_what_is_replaced_is_kept_with_its_mode(programs: Any, files: SimpleNamespace, tmp_path: Path) -> None:
    for name in ("one", "two", "below/three"):
        (files.home / name).write_text("another")
    (files.home / "one").chmod(0o604)
    (files.home / "two").unlink()
    places = programs.restore_files.prepare(files.source, files.copy)
    aside = tmp_path / "aside"
    assert programs.restore_files.replace(files.source, places, str(aside)) == "4 files replaced"
    kept = aside / f"home{files.home}"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == ["below", "below/three", "one"]
    assert (kept / "one").read_text() == "another"
    assert (kept / "one").stat().st_mode & 0o777 == 0o604
    assert [(files.home / name).read_text() for name in ("one", "two", "below/three")] == ["one", "two", "below/three"]
    assert os.readlink(files.home / "link") == "one"
    assert prepared(files) == []


def test_all_are_kept_before_the_first_is_replaced(
    programs: Any, files: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that gets full meanwhile leaves no half of them."""
    for name in ("one", "two"):
        (files.home / name).write_text("another")
    places = programs.restore_files.prepare(files.source, files.copy)
    copy_file = programs.sources.copy_file

    def full(source: str, target: str) -> None:
        copy_file(source, target)
        if source.endswith("/two"):
            raise OSError(errno.ENOSPC, "No space left on device", target)

    monkeypatch.setattr(programs.restore_files, "copy_file", full)
    aside = tmp_path / "aside"
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore_files.replace(files.source, places, str(aside))
    assert str(failed.value) == f"the disk is full: {aside}/home{files.home}/two: nothing is replaced"
    assert [(files.home / name).read_text() for name in ("one", "two")] == ["another", "another"]
    assert not (files.home / "link").is_symlink()


def test_those_before_one_that_cannot_be_replaced_are_taken_back(
    programs: Any, files: SimpleNamespace, tmp_path: Path
) -> None:
    """As it was, and what was not there is not there; what cannot be taken back either is counted."""
    (files.home / "one").write_text("another")
    (files.home / "one").chmod(0o604)
    (files.home / "two").unlink()
    places = sorted(programs.restore_files.prepare(files.source, files.copy))
    assert places == [str(files.home / name) for name in ("link", "one", "two")]
    gone = str(files.home / "below" / "gone")
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore_files.replace(files.source, [*places, gone], str(tmp_path / "aside"))
    assert str(failed.value) == f"{gone}.restoring: No such file or directory: nothing is replaced"
    assert ((files.home / "one").read_text(), (files.home / "one").stat().st_mode & 0o777) == ("another", 0o604)
    assert not (files.home / "two").exists()
    assert not (files.home / "link").is_symlink()


def test_what_cannot_be_taken_back_is_counted(
    programs: Any, files: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (files.home / name).unlink()
    places = sorted(programs.restore_files.prepare(files.source, files.copy))
    unlink = os.unlink

    def fails(path: str) -> None:
        if path.endswith("/one"):
            raise OSError(errno.EIO, "Input/output error", path)
        unlink(path)

    monkeypatch.setattr(programs.restore_files.os, "unlink", fails)
    with pytest.raises(programs.common.Problem, match=r"No such file or directory: 1 of 4 files stay replaced$"):
        programs.restore_files.replace(files.source, [*places, str(files.home / "gone")], str(tmp_path / "aside"))
    assert [(files.home / name).exists() for name in ("one", "two")] == [True, False]
