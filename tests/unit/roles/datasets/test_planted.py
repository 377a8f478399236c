"""What a user has laid where root works later: no link is followed, and root works only where nobody else writes."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.datasets.conftest import Server, Site, manifest_of

pytestmark = pytest.mark.root  # who alone gives folders away

USER = 4711
FILES = {"train/a.bin": b"a" * 3000, "labels.txt": b"1 2 3\n"}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """What links lead to: a file and a folder that only root writes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("root's\n")
    folder.chmod(0o700)
    (folder / "file").chmod(0o640)
    return folder


def unharmed(victim: Path) -> None:
    """Nothing came into it, and nothing of it was given away or opened."""
    assert sorted(path.name for path in victim.iterdir()) == ["file"]
    assert (victim / "file").read_text() == "root's\n"
    seen = [path.stat() for path in (victim, victim / "file")]
    assert [(one.st_uid, stat.S_IMODE(one.st_mode)) for one in seen] == [(0, 0o700), (0, 0o640)]


@pytest.fixture
def here(tmp_path: Path, server: Server) -> Site:
    """A root, under the Python of the controller alone."""
    server.files = FILES
    made = Site(tmp_path, sys.executable)
    made.declare(FILES, source=server.url)
    return made


def words_of(call: Any, status: int = 1) -> str:
    assert (call.returncode, "Traceback" in call.stderr) == (status, False), call.stdout + call.stderr
    said: str = call.stderr.strip()
    assert "\n" not in said
    return said


def test_links_in_a_root_that_was_a_user_s_are_not_followed(site: Site, server: Server, victim: Path) -> None:
    server.files = FILES
    site.declare(FILES, source=server.url)
    for name in ("index.html", "index.html.new", "README.txt.new"):
        (site.root / name).symlink_to(victim / "file")
    site.hidden.mkdir()
    os.chown(site.root, USER, USER)
    said = site.done("stage", "digits")
    assert said.splitlines()[0] == f"{site.root} belongs to root alone"
    unharmed(victim)
    assert "digits" in (site.root / "index.html").read_text()
    for name in ("index.html", "README.txt"):
        assert stat.S_ISREG((site.root / name).lstat().st_mode)
    assert sorted(path.name for path in site.root.iterdir()) == [".hal", "README.txt", "digits", "index.html"]


def spoil(folder: Path, how: str, victim: Path) -> None:
    """Make a folder one that somebody else has, or none."""
    if how == "owner":
        os.chown(folder, USER, 0)
    elif how in ("0775", "1777"):
        folder.chmod(int(how, 8))
    else:
        shutil.rmtree(folder)
        if how == "link":
            folder.symlink_to(victim)
        else:
            folder.touch()


@pytest.mark.parametrize("how", ["owner", "0775", "1777", "link", "file"])
@pytest.mark.parametrize("place", ["digits", ".hal/digits", ".hal/digits/1.0", ".hal/digits/1.0/data"])
def test_folders_that_are_not_root_s_alone_are_not_worked_in(here: Site, victim: Path, place: str, how: str) -> None:
    for name in ("digits", ".hal/digits/1.0/data"):
        (here.root / name).mkdir(parents=True)
    spoil(here.root / place, how, victim)
    before = sorted(os.walk(here.root))
    for command in ("stage", "publish", "retire", "remove"):
        here.declare(FILES, **({"retired": "use 2", "default": False} if command == "retire" else {}))
        said = words_of(here.call(command, "digits/1.0"))
        assert said.startswith(f"{here.root}/{place} is a link, or somebody else may write to it, ")
        assert sorted(os.walk(here.root)) == before
    unharmed(victim)


def test_a_published_version_that_is_a_link_is_loose_and_not_worked_on(here: Site, victim: Path) -> None:
    here.done("stage", "digits")
    shutil.move(here.root / "digits/1.0", here.root.parent / "his")
    os.chown(here.root.parent / "his", USER, USER)
    (here.root / "digits/1.0").symlink_to(here.root.parent / "his")
    words = f"{here.root}/digits/1.0 is a link, which hal-dataset did not make: move it away"
    assert words_of(here.call("stage", "digits")) == words
    assert here.call("verify", "digits").stderr == f"digits/1.0: {words}\n"
    assert here.state()["loose"].startswith("mode 0777, ")


@pytest.mark.parametrize("fetched", [True, False])
def test_what_lies_where_it_writes_is_removed_and_not_followed(
    site: Site, server: Server, victim: Path, *, fetched: bool
) -> None:
    """Who gives a folder with `chown -R root` gives what is in it, too."""
    manifest = manifest_of(FILES).encode()
    server.files = {**FILES, "SHA256SUMS": manifest}
    other = {"checksums": "", "manifest_sha256": hashlib.sha256(manifest).hexdigest()} if fetched else {}
    site.declare(FILES, source=server.url, **other)
    hidden = site.hidden / "digits/1.0"
    hidden.mkdir(parents=True)
    for name in ("manifest.new", "state.json.new", "check.json.new", "wanted"):
        (hidden / name).symlink_to(victim / ("file" if name != "manifest.new" else "gone"))
    site.done("stage", "digits")
    unharmed(victim)
    site.declare(FILES, source=server.url, retired="use 2", default=False)
    (site.root / "digits/default").unlink()
    (site.root / "digits/1.0.retired.txt.new").symlink_to(victim / "file")
    site.done("retire", "digits/1.0")
    unharmed(victim)
    assert (site.root / "digits/1.0.retired.txt").read_text() == "digits/1.0 was retired: use 2\n"
    assert stat.S_IMODE((site.root / "digits/1.0.retired.txt").lstat().st_mode) == 0o444


def test_a_part_that_is_a_link_is_not_written(site: Site, server: Server, victim: Path) -> None:
    server.files = FILES
    site.declare(FILES, source=server.url)
    parts = site.hidden / "digits/1.0/parts"
    parts.mkdir(parents=True)
    part = parts / hashlib.sha1(b"train/a.bin").hexdigest()
    for to in ("file", "gone"):
        part.symlink_to(victim / to)
        assert words_of(site.call("stage", "digits")) == f"{part} is a link, which hal-dataset did not make: remove it"
        unharmed(victim)
        part.unlink()
    site.done("stage", "digits")


@pytest.mark.parametrize("command", ["stage", "publish"])
def test_a_link_to_a_folder_among_what_has_come_is_refused(
    here: Site, server: Server, victim: Path, command: str
) -> None:
    """Files would be written below it, and a damaged one removed: of a folder where the manifest has the same names."""
    server.files = {"train/file": b"1", "train/deep/er": b"2"}
    here.declare(server.files, source=server.url)
    data = here.hidden / "digits/1.0/data"
    if command == "publish":
        here.done("stage", "--no-publish", "digits")
        shutil.rmtree(data / "train")
    else:
        data.mkdir(parents=True)
    (data / "train").symlink_to(victim)
    words = f"{data}/train is a link, which hal-dataset did not make: remove it"
    assert words_of(here.call(command, "digits/1.0")) == words
    unharmed(victim)
    (data / "train").unlink()
    here.done("stage", "digits")


def test_an_rsync_list_that_is_a_link_is_not_written(parts: Any, tmp_path: Path, victim: Path) -> None:
    fetch, place = parts("fetch"), parts("common").Place(str(tmp_path), {"name": "n", "version": "1"})
    os.makedirs(place.hidden)
    os.symlink(victim / "file", os.path.join(place.hidden, "wanted"))
    with pytest.MonkeyPatch.context() as played:
        played.setattr(fetch, "_rsync", lambda *_, **__: None)
        assert fetch._one_call("rsync://x/y", [("a", "0")], place, None)[1][0][0] == "a"
    unharmed(victim)


@pytest.mark.parametrize(
    ("mode", "owner", "safe"), [(0o755, 0, True), (0o1777, 0, True), (0o777, 0, False), (0o775, 0, False),
                                (0o755, USER, False), (0o1777, USER, False)],
)  # fmt: skip
def test_folders_above_the_root_are_root_s_alone(here: Site, mode: int, owner: int, safe: bool) -> None:
    above = here.root.parent / "shared"
    above.mkdir()
    here.root.rmdir()
    here.root = above / "datasets"
    above.chmod(mode)
    os.chown(above, owner, 0)
    here.write()
    words = (
        f"{above} can be written by others, who could put another folder in the place of {here.root}, and root would"
        " work there: chown root and chmod go-w it, or name another folder in datasets_root"
    )
    if safe:
        here.done("setup")
        here.done("stage", "digits")
        assert '"foreign": ""' in here.done("status")
        return
    assert words_of(here.call("setup"), 3) == words
    assert not here.root.exists()
    here.root.mkdir()
    for command in (["setup"], ["stage", "digits"], ["verify"]):
        assert words_of(here.call(*command), 3) == words
    assert list(here.root.iterdir()) == []
    assert f'"foreign": "{words}"' in here.done("status")


@pytest.mark.parametrize("which", ["root", "above"])
def test_a_root_that_is_reached_by_a_link_is_refused(here: Site, victim: Path, which: str) -> None:
    here.root.rmdir()
    (here.root.parent / "way").symlink_to(victim)
    here.root = here.root.parent / ("way" if which == "root" else "way/datasets")
    here.write()
    leads = victim if which == "root" else victim / "datasets"
    words = f"{here.root} leads to {leads} by a link: name the folder itself in datasets_root"
    assert words_of(here.call("setup"), 3) == words
    unharmed(victim)


def test_a_link_that_comes_while_the_root_is_taken_is_not_followed(
    here: Site, parts: Any, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = parts("stage").Table(str(here.root.parent / "datasets.json"))
    looked = table.need_own

    def planted_at_once() -> None:
        looked()
        here.hidden.symlink_to(victim)

    monkeypatch.setattr(table, "need_own", planted_at_once)
    with pytest.raises(OSError, match=r"\.hal"):
        table.take()
    unharmed(victim)
    monkeypatch.setattr(parts("stage"), "make_folder", lambda *_: None)  # it came after that, too
    here.hidden.unlink()
    with pytest.raises(OSError, match=r"\.hal"):
        table.take()
    unharmed(victim)
    monkeypatch.undo()
    here.hidden.unlink()
    here.root.rmdir()
    here.root.symlink_to(victim)
    with pytest.raises(OSError, match="datasets"):
        table.take()
    unharmed(victim)


def test_what_came_into_an_empty_root_while_it_was_taken_is_somebody_s(
    here: Site, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = parts("stage").Table(str(here.root.parent / "datasets.json"))
    os.chown(here.root, USER, USER)
    taken = table._take

    def late(path: str) -> None:
        taken(path)
        (here.root / "his").touch()

    monkeypatch.setattr(table, "_take", late)
    with pytest.raises(parts("common").NotOurs):
        table.take()
    assert not here.hidden.exists()


@pytest.mark.parametrize("name", ["", ".hal"])
def test_a_root_that_was_exchanged_after_it_was_taken_is_not_worked_in(here: Site, parts: Any, name: str) -> None:
    """In a folder in which all may write, with the sticky bit, who made it can rename it until root has it."""
    table = parts("stage").Table(str(here.root.parent / "datasets.json"))
    table.take()
    exchanged = here.root / name
    os.chown(exchanged, USER, USER)
    work = table.alone(table.place(table.find("digits")))
    words = f"^{exchanged} is a link, or somebody else may write to it"
    with pytest.raises(parts("common").Problem, match=words), work:
        pytest.fail("root works in it")
    assert list(here.hidden.iterdir()) == []
