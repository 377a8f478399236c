"""Folders and links of the tree: whose they are, who may write there, and how a link is switched."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest


def test_the_folder_of_archives_is_root_s_alone_and_no_link(installer: Any, problem: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    installer._store()
    store = tmp_path / ".packages"
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    store.chmod(0o755)
    installer._store()
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert installer.done["mended"] == []
    for name in (".packages/files", ".packages/unpacked", ".packages"):
        path = tmp_path / name
        if path.is_dir():
            path.rmdir() if not any(path.iterdir()) else path.rename(tmp_path / "away")
        path.symlink_to("/nowhere")
        with pytest.raises(problem) as refused:
            installer._store()
        assert str(refused.value) == f"{path} is a link, or not root's: somebody put it there; move it away"
        path.unlink()


@pytest.mark.parametrize(("mode", "open_"), [(0o775, True), (0o757, True), (0o755, False), (0o700, False)])
def test_a_folder_that_others_may_write_is_closed_and_told(
    installer: Any, tmp_path: Path, mode: int, open_: bool
) -> None:
    (tmp_path / "t").mkdir()
    for path in (tmp_path, tmp_path / "t"):
        path.chmod(mode)
    installer.checking = True
    installer._mend(str(tmp_path / "t"))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    installer.done["mended"].clear()
    installer.checking = False
    installer._mend(str(tmp_path / "t"))
    installer._mend(str(tmp_path / "none"))
    assert installer.done["mended"] == ([str(tmp_path), str(tmp_path / "t")] if open_ else [])
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == (0o755 if open_ else mode)


def test_a_folder_of_another_account_is_refused_by_its_name(
    install: Any, installer: Any, problem: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(install.os, "getuid", lambda: owner + 1)
    with pytest.raises(problem) as refused:
        installer._mend(str(tmp_path))
    assert str(refused.value) == (
        f"{tmp_path} belongs to {install._name(owner)}, who could change what everybody runs: choose another "
        "software_root, or move it away, or chown root it"
    )
    assert install._name(2**31 - 7) == f"account {2**31 - 7}"


def test_a_link_is_switched_at_once_also_after_a_call_that_was_killed(install: Any, tmp_path: Path) -> None:
    link = tmp_path / "1"
    left = tmp_path / f"1.new.{os.getpid()}"
    left.symlink_to("left")
    install.switch(str(link), "a")
    install.switch(str(link), "b")
    assert os.readlink(link) == "b"
    assert os.listdir(tmp_path) == ["1"]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("file", 0o600, 0o644), ("file", 0o777, 0o755), ("file", 0o4775, 0o755), ("file", 0o2710, 0o755),
        ("file", 0o000, 0o444), ("file", 0o010, 0o454), ("folder", 0o700, 0o755), ("folder", 0o6777, 0o755),
        ("folder", 0o1777, 0o1755),
    ],
)  # fmt: skip
def test_everybody_may_read_and_nobody_but_root_write(
    install: Any, tmp_path: Path, kind: str, before: int, after: int
) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    path = top / "sub" / "one"
    path.mkdir() if kind == "folder" else path.touch()
    (top / "link").symlink_to("/nowhere")
    path.chmod(before)
    top.chmod(0o777)
    install.tighten(str(top))
    assert oct(stat.S_IMODE(path.stat().st_mode)) == oct(after)
    assert oct(stat.S_IMODE(top.stat().st_mode)) == oct(0o755)


def test_a_folder_that_cannot_be_made_is_a_problem(install: Any, problem: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(problem) as refused:
        install._folder(str(tmp_path / "file/below"))
    assert str(refused.value) == f"{tmp_path}/file/below cannot be made: Not a directory"
    before = os.umask(0)
    try:
        install._folder(str(tmp_path / "new"))
        install._folder(str(tmp_path / "new"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o755
