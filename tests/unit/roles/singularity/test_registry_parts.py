"""The registry's own steps: its folders, which version an image is, what is copied and kept, what is taken away."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hal_node.digest import sha256_of_rest

pytestmark = pytest.mark.root  # files are given to it

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "roles/singularity/files"), str(ROOT / "plugins/module_utils")]

common: Any = importlib.import_module("container_common")
parts: Any = importlib.import_module("container_registry")

SIF = b"\0" * 32 + b"SIF_MAGIC"
NOW = 1_600_000_000
DATED = "tool--20200913-122640"


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """What root's shell takes away from new files must not matter."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    return parts.Registry(str(tmp_path / "apps" / "containers"), "")


def built(folder: Path, content: bytes = SIF) -> str:
    (folder / "image.sif").write_bytes(content)
    return str(folder / "image.sif")


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


# ---------------------------------------------------------------- folders
def test_a_file_system_is_asked_for_by_its_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def found(path: str) -> tuple[str, str]:
        asked.append(path)
        return "/home", "gpfs"

    monkeypatch.setattr(parts, "file_system_of", found)
    for mount in ("/home", "/home/"):
        parts.Registry("/home/apps", mount).check_there()
    with pytest.raises(common.Problem, match=r"^/scratch is not mounted: nothing is done$"):
        parts.Registry("/home/apps", "/scratch").check_there()
    assert asked == ["/home/apps"] * 3
    parts.Registry("/home/apps", "").check_there()
    assert len(asked) == 3, "anywhere will do"


def test_folders_are_made_and_each_is_said(registry: Any) -> None:
    root = registry.root
    folders = [os.path.dirname(root), root, f"{root}/.hal", f"{root}/.hal/retired"]
    os.umask(0)
    assert registry.setup() == [f"made {path}" for path in folders]
    assert [mode(path) for path in folders] == [0o755, 0o755, 0o755, 0o700]
    assert registry.setup() == []


def test_folders_get_their_modes_whatever_the_shell_takes_away(registry: Any) -> None:
    root = registry.root
    made = registry.setup()
    assert [line for line in made if not line.startswith("made ")] == [
        f"set mode 0755 of {root}",
        f"set mode 0755 of {root}/.hal",
    ]
    assert [mode(path) for path in (root, f"{root}/.hal", f"{root}/.hal/retired")] == [0o755, 0o755, 0o700]


@pytest.mark.parametrize("owner", [(5001, 0), (0, 5001)])
def test_folders_of_others_become_root_s(registry: Any, owner: tuple[int, int]) -> None:
    registry.setup()
    for path in (registry.root, f"{registry.hidden}/retired"):
        os.chown(path, *owner)
        os.chmod(path, 0o1777)
    assert registry.setup() == [
        f"gave {registry.root} to root", f"set mode 0755 of {registry.root}",
        f"gave {registry.hidden}/retired to root", f"set mode 0700 of {registry.hidden}/retired",
    ]  # fmt: skip
    status = os.stat(f"{registry.hidden}/retired")
    assert (status.st_uid, status.st_gid) == (0, 0)


@pytest.mark.parametrize("kind", ["file", "link to a folder", "link to nothing"])
def test_what_is_no_folder_is_left_and_said(registry: Any, tmp_path: Path, kind: str) -> None:
    place = Path(registry.hidden)
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path if kind == "link to a folder" else tmp_path / "none")
    with pytest.raises(common.Problem, match=rf"^{re.escape(str(place))} is there and is not a folder$"):
        registry.setup()
    assert not (tmp_path / "retired").exists()


# ---------------------------------------------------------------- which version it is
def test_images_are_the_files_with_the_ending_that_are_not_hidden(registry: Any) -> None:
    assert registry.images() == []
    registry.setup()
    for name in ("b.sif", "a.sif", ".x.sif", "c.txt", "sif"):
        (Path(registry.root) / name).touch()
    assert registry.images() == ["a", "b"]
    assert registry.path("a") == f"{registry.root}/a.sif"


def test_versions_are_entered_one_after_the_other(registry: Any) -> None:
    assert registry.versions() == {}
    registry.setup()
    for name, number in (("a", 1), ("b", 2), ("a", 3)):
        registry.enter(name, {"size": number})
    known = {"a": [{"size": 1}, {"size": 3}], "b": [{"size": 2}]}
    assert registry.versions() == known
    assert json.loads(Path(registry.record).read_text()) == {"format": 1, "images": known}
    assert mode(registry.record) == 0o644


@pytest.mark.parametrize(("document", "shown"), [({"format": 2, "images": {}}, "2"), ({"images": {}}, "None")])
def test_a_record_of_another_release_is_not_read(registry: Any, document: dict[str, Any], shown: str) -> None:
    registry.setup()
    Path(registry.record).write_text(json.dumps(document))
    said = f"{registry.record}: format {shown} is not 1: written by another release"
    with pytest.raises(common.Problem, match=f"^{re.escape(said)}$"):
        registry.versions()


def test_a_version_is_known_by_size_and_second_and_of_two_it_is_the_newer(registry: Any) -> None:
    registry.setup()
    for name in ("tool", DATED):
        Path(registry.path(name)).write_bytes(b"12345" * 200)
        os.utime(registry.path(name), (NOW + 0.9, NOW + 0.9))
    older, newer = ({"size": 1000, "mtime": NOW, "sha256": word} for word in ("older", "newer"))
    known = {"tool": [{"size": 999, "mtime": NOW}, older, newer, {"size": 1000, "mtime": NOW + 1}], "other": [older]}
    assert [registry.version_of(name, known) for name in ("tool", DATED, "gone")] == [newer, newer, None]
    assert registry.version_of("tool", {"other": [older]}) is None
    assert (
        registry.version_of("tool", {"tool": [{"size": 1001, "mtime": NOW}, {"size": 1000, "mtime": NOW - 1}]}) is None
    )


def test_what_cannot_be_looked_at_is_not_taken_for_gone(registry: Any, tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    Path(registry.root).touch()
    with pytest.raises(OSError, match="Not a directory") as refused:
        registry.status_of("tool")
    assert refused.value.errno == errno.ENOTDIR
    with pytest.raises(OSError, match="Not a directory"):
        registry._changed("tool")


def test_a_link_is_not_read_and_an_image_of_nobody_is_named(registry: Any) -> None:
    registry.setup()
    Path(registry.path("mine")).write_bytes(SIF)
    Path(registry.path("led")).symlink_to(registry.path("mine"))
    assert registry._changed("mine") == "is not what was published"
    with pytest.raises(OSError, match="symbolic links") as refused:
        registry._changed("led")
    assert refused.value.errno == errno.ELOOP


def test_group_and_owner_of_an_image_are_root_s(registry: Any, tmp_path: Path) -> None:
    path, _ = registry.publish("tool", built(tmp_path), {})
    assert registry.wrong("tool", registry.versions()) == ""
    assert registry.wrong("tool", {}) == "", "entered since"
    os.chown(path, 0, 5001)
    assert registry.wrong("tool", registry.versions()) == "belongs to uid 0, gid 5001, not to root"
    assert registry.wrong("gone", {}) == ""


def test_an_old_version_that_was_changed_is_no_stranger(registry: Any, tmp_path: Path) -> None:
    registry.publish("tool", built(tmp_path), {})
    Path(registry.path(DATED)).write_bytes(b"x")
    Path(registry.path("none--20200913-122640")).write_bytes(b"x")
    assert registry.verify() == {DATED: "is not what was published", "none--20200913-122640": "was published by nobody"}


# ---------------------------------------------------------------- publishing
def test_a_version_is_entered_with_what_is_measured_of_it(registry: Any, tmp_path: Path) -> None:
    path, older = registry.publish("tool", built(tmp_path, SIF), {"on": "node", "size": 1, "sha256": "x"})
    (version,) = registry.versions()["tool"]
    with open(path, "rb") as stream:
        digest = sha256_of_rest(stream)
    assert version == {"on": "node", "sha256": digest, "size": 41, "mtime": int(os.stat(path).st_mtime)}
    assert (path, older, mode(path)) == (f"{registry.root}/tool.sif", None, 0o555)


@pytest.mark.parametrize("content", [SIF[:-1], b"\0" + SIF, SIF[1:], b"SIF_MAGIC", b"\0" * 41])
def test_the_magic_stands_at_its_place(registry: Any, tmp_path: Path, content: bytes) -> None:
    said = f"^{re.escape(str(tmp_path))}/image.sif is not an image of Singularity \\(SIF\\)$"
    with pytest.raises(common.Problem, match=said):
        registry.publish("tool", built(tmp_path, content), {})
    assert registry.versions() == {}
    assert os.listdir(registry.hidden) == ["retired"]


def test_a_bad_name_is_refused_before_anything_is_made(registry: Any, tmp_path: Path) -> None:
    with pytest.raises(common.Problem, match=r"^'\.\./x' is not a name of an image"):
        registry.publish("../x", built(tmp_path), {})
    assert os.listdir(tmp_path) == ["image.sif"]


def test_a_fifo_of_the_build_user_is_no_image(registry: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "image.sif")
    with pytest.raises(common.Problem, match=rf"^{re.escape(str(tmp_path))}/image\.sif is not a file$"):
        registry.publish("tool", str(tmp_path / "image.sif"), {})
    assert os.listdir(registry.hidden) == ["retired"]


def test_what_an_earlier_publication_left_is_not_written_through(registry: Any, tmp_path: Path) -> None:
    registry.setup()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    Path(registry.hidden, "incoming.sif").symlink_to(precious)
    registry.publish("tool", built(tmp_path), {})
    assert precious.read_text() == "precious"
    assert Path(registry.path("tool")).read_bytes() == SIF


def test_the_file_is_on_the_disk_and_root_s_before_it_is_measured(
    registry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    waiting = f"{registry.hidden}/incoming.sif"
    names: dict[str, Any] = {"fsync": os.fsync, "chown": os.chown, "chmod": os.chmod}

    def recorded(name: str) -> Any:
        def record(what: Any, *given: Any) -> None:
            path = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else what
            if path == waiting:
                done.append((name, *given, os.path.getsize(path)))
            names[name](what, *given)

        return record

    def measured(_: Any) -> str:
        done.append("measured")
        return "digest"

    for name in names:
        monkeypatch.setattr(os, name, recorded(name))
    monkeypatch.setattr(parts, "sha256_of_rest", measured)
    registry.publish("tool", built(tmp_path), {})
    assert done == [("fsync", 41), ("chown", 0, 0, 41), ("chmod", 0o555, 41), "measured"]


def test_an_image_of_the_same_second_stays_what_it_was(registry: Any, tmp_path: Path) -> None:
    kept = Path(registry.path(DATED))
    for content in (b"1", b"2", b"3"):
        registry.publish("tool", built(tmp_path, SIF + content), {})
        os.utime(registry.path("tool"), (NOW, NOW))
    assert kept.read_bytes() == SIF + b"1"
    assert registry.publish("tool", built(tmp_path), {}) == (registry.path("tool"), str(kept))
    assert kept.read_bytes() == SIF + b"1"
    assert registry.images() == ["tool", DATED]


# ---------------------------------------------------------------- taking away
def test_an_image_is_taken_away_to_where_root_finds_it(
    registry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.publish("tool", built(tmp_path), {})
    os.rmdir(f"{registry.hidden}/retired")
    monkeypatch.setattr(parts.time, "time", lambda: NOW + 0.5)
    place = registry.retire("tool")
    assert place == f"{registry.hidden}/retired/tool-{NOW}.sif"
    assert Path(place).read_bytes() == SIF
    assert registry.images() == []
    with pytest.raises(common.Problem, match=r"^tool: no such image; hal-container list$"):
        registry.retire("tool")
