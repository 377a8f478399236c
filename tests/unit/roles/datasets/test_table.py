"""The table of what is declared: whose the root is, which version a name means, who may read; and what is refused."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.datasets.conftest import Site

pytestmark = pytest.mark.root  # who alone gives folders away


@pytest.fixture
def here(tmp_path: Path) -> Site:
    """A root, under the Python of the controller alone."""
    return Site(tmp_path, sys.executable)


@pytest.fixture
def table(here: Site, parts: Any) -> Callable[[], Any]:
    """A function: the table, read again."""

    def read() -> Any:
        here.write()
        return parts("stage").Table(str(here.root.parent / "datasets.json"))

    return read


@pytest.fixture
def refused(parts: Any) -> Callable[..., str]:
    """A function: calls something that has to be refused -> its words."""

    def call(function: Callable[..., Any], *words: Any) -> str:
        with pytest.raises(parts("common").Problem) as found:
            function(*words)
        return str(found.value)

    return call


def test_a_table_has_numbers_and_the_owner_of_its_file(
    here: Site, parts: Any, table: Callable[[], Any], refused: Callable[..., str]
) -> None:
    here.settings.update(reserve_gb="2.5", streams="3", verify_threads="4", verify_max_days="14.5")
    made = table()
    assert (made.reserve, made.streams, made.threads, made.late_days) == (2_500_000_000.0, 3, 4, 14.5)
    assert (made.root, made.hidden, made.mount, made.sets) == (str(here.root), str(here.hidden), "/", [])
    path = here.root.parent / "datasets.json"
    os.chown(path, 4711, 4712)
    assert parts("stage").Table(str(path)).owner == 4711
    path.unlink()
    assert refused(parts("stage").Table, str(path)) == f"{path} is not there"


def test_the_root_is_made_on_request_and_taken_from_others(
    here: Site, table: Callable[[], Any], refused: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    made = table()
    here.root.rmdir()
    assert refused(made.need_root) == f"{here.root} is not there: hal-dataset setup"
    made.need_root(make=True)
    assert capfd.readouterr().out == f"{here.root} is made\n"
    made.need_root(make=True)
    made.take()
    assert capfd.readouterr().out == ""
    for path, mode, owner in ((here.root, 0o755, 4711), (here.hidden, 0o700, 0), (here.root, 0o1777, 0)):
        path.chmod(mode)
        os.chown(path, owner, 4712)
        made.take()
        seen = path.stat()
        assert (stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid) == (0o755, os.getuid(), os.getgid())
        assert capfd.readouterr().out == f"{path} belongs to root alone\n"
    here.hidden.rmdir()
    made.take()
    assert stat.S_IMODE(here.hidden.stat().st_mode) == 0o755


def test_a_root_is_ours_by_our_folder_or_because_it_is_empty(
    here: Site, table: Callable[[], Any], refused: Callable[..., str]
) -> None:
    made = table()
    assert made.foreign() == ""
    made.need_own()
    (here.root / "file").touch()
    here.root.chmod(0o2775)
    os.chown(here.root, 4711, 4712)
    words = (
        f"{here.root} is not hal-dataset's: it has files already (owner 4711, mode 2775), and stays as it is. mkdir"
        f" {here.hidden}, as root, gives it to hal-dataset; or name another folder in datasets_root"
    )
    assert refused(made.need_own) == made.foreign() == words
    here.hidden.mkdir()
    os.chown(here.hidden, 4711, 0)
    assert made.foreign() == words
    os.chown(here.hidden, 0, 0)
    assert made.foreign() == ""
    made.need_own()
    here.hidden.rmdir()
    here.hidden.touch()
    assert made.foreign() == words


def test_a_name_alone_means_the_default_or_the_only_version(
    here: Site, table: Callable[[], Any], refused: Callable[..., str]
) -> None:
    assert refused(table().find, "x") == "x is not declared in datasets_standard; declared: none"
    here.declare({"a": b""}, name="faces", version="1", default=False)
    here.declare({"a": b""}, version="1.0", default=False)
    here.declare({"a": b""}, version="2.0")
    made = table()
    for label, version in (("faces", "1"), ("digits", "2.0"), ("digits/1.0", "1.0"), ("digits/2.0", "2.0")):
        assert made.find(label)["version"] == version
    words = " is not declared in datasets_standard; declared: "
    assert refused(made.find, "digits/3") == f"digits/3{words}digits/2.0, digits/1.0"
    assert refused(made.find, "faces/2") == f"faces/2{words}faces/1"
    assert refused(made.find, "none") == f"none{words}digits/2.0, digits/1.0, faces/1"
    here.declare({"a": b""}, version="2.0", default=False)
    assert refused(table().find, "digits") == f"digits{words}digits/2.0, digits/1.0"


def test_a_group_that_is_not_known_here_gets_no_access(table: Callable[[], Any], refused: Callable[..., str]) -> None:
    made, own = table(), grp.getgrgid(os.getgid())
    assert vars(made.modes({"access": "all", "owner": "no-such"})) == {"owner": os.getuid(), "group": None}
    assert made.modes({"access": "group", "owner": own.gr_name}).group == own.gr_gid
    assert refused(made.modes, {"access": "group", "owner": "no-such"}) == (
        "access is for group no-such, which this node does not know"
    )


def test_a_default_has_to_be_declared_and_published(
    here: Site, parts: Any, table: Callable[[], Any], refused: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    stage = parts("stage")
    here.declare({"a": b""}, default=False)
    assert refused(stage.default, table(), "digits") == (
        "digits has no version with `default: true` in datasets_standard"
    )
    here.declare({"a": b""}, name="faces")
    assert refused(stage.default, table(), "digits").startswith("digits has no version")
    here.declare({"a": b""})
    made = table()
    assert refused(stage.default, made, "digits") == (
        "digits/1.0 is not published, so it cannot be the default yet: hal-dataset stage digits/1.0"
    )
    folder = here.root / "digits"
    (folder / "1.0").mkdir(parents=True)
    (folder / f".default-{os.getpid()}").symlink_to("left")
    for before in ("", "0.9", "1.0"):
        if before:
            (folder / "default").unlink()
            (folder / "default").symlink_to(before)
        capfd.readouterr()
        stage.default(made, "digits")
        assert os.readlink(folder / "default") == "1.0"
        assert capfd.readouterr().out == ("" if before == "1.0" else "digits/1.0 is the default of digits\n")
    assert sorted(path.name for path in folder.iterdir()) == ["1.0", "default"]
    (folder / "default").unlink()
    stage._point(made, made.sets[0] | {"default": False})
    stage._point(made, made.sets[0] | {"version": "7"})
    assert [path.name for path in folder.iterdir()] == ["1.0"]


def test_what_does_not_fit_the_state_of_a_version_is_refused(
    here: Site, parts: Any, table: Callable[[], Any], refused: Callable[..., str]
) -> None:
    stage = parts("stage")
    one = here.declare({"a": b""}, default=False)
    made = table()
    assert refused(stage.publish, made, one) == "digits/1.0 is not staged: hal-dataset stage digits/1.0"
    place = made.place(one)
    os.makedirs(place.hidden)
    place.remember(staged_at=1)
    assert refused(stage.publish, made, one) == "digits/1.0 is not staged: hal-dataset stage digits/1.0"
    os.mkdir(place.data)
    assert (
        refused(stage.publish, made, one) == "digits/1.0 was not brought by hal-dataset: hal-dataset stage digits/1.0"
    )
    place.remember(manifest_sha256="0" * 64)
    assert refused(stage.publish, made, one) == (
        "digits/1.0 came by another manifest than the one that is declared now: hal-dataset stage digits/1.0"
    )
    place.remember(staged_at=None)
    assert refused(stage.publish, made, one).startswith("digits/1.0 is not staged")
    assert refused(stage.retire, made, one) == (
        "digits/1.0 is not declared as retired: give it `retired: why, and what to use instead`"
    )
    assert refused(stage.stage, made, one | {"retired": "use 2"}) == "digits/1.0 is retired: use 2"
    assert refused(stage._verify, made, one, place) == "there is no manifest of it, so nothing to compare it with"
    os.makedirs(place.folder)
    os.symlink("1.0", place.link)
    assert refused(stage.remove, made, one, "") == "digits/1.0 is published: retire it first"
    assert refused(stage.retire, made, one | {"retired": "use 2"}) == (
        "digits/1.0 is what `default` leads to: publish the new default first"
    )
    assert refused(stage.stage, made, one) == (
        "digits/1.0 came by another manifest than the one that is declared now: declare it as a new version, or retire"
        " it and stage it again"
    )


def test_what_users_see_and_nobody_declared_is_named(here: Site, parts: Any, table: Callable[[], Any]) -> None:
    here.declare({"a": b""})
    here.declare({"a": b""}, version="2.0")
    for name in ("digits/1.0", "digits/2.0", "digits/default", "digits/0.9", "digits/0.9.old", "mine/1", ".hal/digits"):
        (here.root / name).mkdir(parents=True)
    for name in ("digits/1.0.retired.txt", "digits/0.8.retired.txt", "index.html", "README.txt", "notes"):
        (here.root / name).touch()
    assert parts("stage").undeclared(table()) == ["digits/0.8.retired.txt", "digits/0.9", "digits/0.9.old", "mine"]
    shutil.rmtree(here.root / "digits")
    (here.root / "README.txt").unlink()
    (here.root / "README.txt").mkdir()
    assert parts("stage").undeclared(table()) == ["mine"]
