"""A verification sees what changed, goes on where it was interrupted, and its result is what expectations read."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hal_node.digest import sha256_of
from tests.unit.roles.datasets.conftest import Server, Site

pytestmark = pytest.mark.root  # who alone moves a folder that nobody may write

FILES = {f"train/{number:03}.bin": b"%d" % number * 100 for number in range(500)}


@pytest.fixture
def published(site: Site, server: Server) -> Site:
    server.files = FILES
    site.declare(FILES, source=server.url)
    site.done("stage", "digits")
    return site


def spoil(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(0o444)


def test_what_is_right_is_said_so(published: Site) -> None:
    assert "every file is what the manifest says" in published.done("verify")
    assert published.state()["wrong"] == ""


def test_each_kind_of_fault_is_found_and_named(published: Site) -> None:
    folder = published.root / "digits/1.0"
    folder.chmod(0o755)
    (folder / "train").chmod(0o755)
    spoil(folder / "train/007.bin", b"8" * 100)
    (folder / "train/008.bin").unlink()
    (folder / "train/notes.txt").write_text("mine")
    (folder / "elsewhere").symlink_to("/etc")
    (folder / "train/009.bin").chmod(0o644)
    folder.chmod(0o555)
    said = published.refused("verify", "digits/1.0").splitlines()[-1]
    assert said == (
        "digits/1.0: 1 changed (train/007.bin); 1 missing (train/008.bin); 2 unlike (train/009.bin, train);"
        " 2 extra (elsewhere, train/notes.txt)"
    )
    state = published.state()
    assert state["wrong"].startswith("1 changed (train/007.bin)")
    assert state["verified_days"] < 1
    kept = json.loads((published.hidden / "digits/1.0/state.json").read_text())["problems"]
    assert kept["missing"] == ["train/008.bin"]


def test_a_link_in_place_of_a_file_is_a_change(published: Site, tmp_path: Path) -> None:
    path = published.root / "digits/1.0/train/007.bin"
    path.parent.chmod(0o755)
    (tmp_path / "same").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / "same")
    path.parent.chmod(0o555)
    assert "1 changed (train/007.bin)" in published.refused("verify")


def test_an_interrupted_verification_goes_on(published: Site, parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It notes how far it is; what it had found wrong before is still told. Files before that are not read again."""
    place = parts("common").Place(str(published.root), {"name": "digits", "version": "1.0"})
    modes = parts("check").Modes(os.stat(published.root).st_uid)
    progress = parts("stage").Progress("x")
    spoil(published.root / "digits/1.0/train/001.bin", b"x")
    read: list[str] = []

    def stops_at_450(path: str) -> str:
        read.append(path)
        if path.endswith("450.bin"):
            raise KeyboardInterrupt
        digest: str = sha256_of(path)
        return digest

    clock = iter(range(10**6))
    monkeypatch.setattr(parts("check"), "sha256_of", stops_at_450)
    monkeypatch.setattr(parts("check").time, "time", lambda: 1_790_000_000 + 6 * next(clock))
    monkeypatch.setattr(parts("check"), "FILES", 100)
    monkeypatch.setattr(parts("check"), "in_parallel", lambda make, entries, _: ((e, make()(e)) for e in entries))
    with pytest.raises(KeyboardInterrupt):
        parts("check").examine(place.folder, place, modes, 1, progress)
    assert json.loads(Path(place.checked).read_text())["done"] == 400
    read.clear()

    def goes_on(path: str) -> str:
        read.append(path)
        digest: str = sha256_of(path)
        return digest

    monkeypatch.setattr(parts("check"), "sha256_of", goes_on)
    report = parts("check").examine(place.folder, place, modes, 1, progress)
    assert len(read) == 100
    assert report["changed"] == ["train/001.bin"]
    assert report["bytes"] == sum(map(len, FILES.values())) - len(FILES["train/001.bin"]) + 1
    assert not Path(place.checked).exists()


def test_an_old_beginning_is_not_gone_on_with(published: Site) -> None:
    path = published.hidden / "digits/1.0/check.json"
    manifest = (published.hidden / "digits/1.0/manifest").stat().st_mtime
    stamp = {"folder": str(published.root / "digits/1.0"), "manifest": manifest, "modes": [os.getuid(), None]}
    beginning = {
        "stamp": stamp,
        "begun": time.time() - 8 * 86400, "done": 500, "bytes": 0,
        **{kind: [] for kind in ("changed", "missing", "unlike", "extra")},
        "counts": dict.fromkeys(("changed", "missing", "unlike", "extra"), 0),
    }  # fmt: skip
    spoil(published.root / "digits/1.0/train/001.bin", b"x")
    path.write_text(json.dumps(beginning))
    assert "1 changed" in published.refused("verify")
    path.write_text(json.dumps(beginning | {"begun": time.time()}))
    published.done("verify")  # it is believed: 500 files were read
    path.write_text(json.dumps(beginning | {"begun": time.time(), "stamp": stamp | {"modes": [os.getuid(), 4711]}}))
    assert "1 changed" in published.refused("verify"), "access was declared otherwise then"
    path.write_text("{")
    assert "1 changed" in published.refused("verify"), "a broken note is no reason to stop"


def test_a_version_that_cannot_be_read_does_not_keep_the_others_from_being_read(
    published: Site, server: Server
) -> None:
    published.declare(FILES, source=server.url, version="2.0", default=False)
    published.done("stage", "digits/2.0")
    (published.hidden / "digits/2.0/manifest").write_text("<html>")
    said = published.refused("verify")
    assert "digits/2.0: " in said
    assert "manifest:1: not a line of sha256sum" in said
    assert "digits/1.0: every file is what the manifest says" in published.call("verify").stdout


def test_errors_in_threads_are_not_lost(parts: Any) -> None:
    def make() -> Any:
        def fails(entry: int) -> int:
            if entry == 7:
                raise ValueError("seven")
            return entry

        return fails

    with pytest.raises(ValueError, match="seven"):
        list(parts("common").in_parallel(make, range(1000), 3))
    assert len(list(parts("common").in_parallel(make, range(6), 3))) == 6


def test_few_entries_are_held_at_a_time(parts: Any) -> None:
    taken = 0

    def entries() -> Any:
        nonlocal taken
        for number in range(10_000):
            taken += 1
            yield number

    results = parts("common").in_parallel(lambda: lambda entry: entry, entries(), 2)
    next(results)
    assert taken <= 16
    results.close()


def test_a_user_who_may_not_is_told_so(published: Site) -> None:
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *published.command("verify")]
    if (
        subprocess.run([*command[:5], "true"], check=False).returncode
        or os.stat(published.root.parent).st_mode & 0o005 != 5
    ):
        pytest.skip("another user does not see the folders of this test")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "root may do this" in done.stderr
