"""What packages brought, or a user laid while others could write to the tree: root neither follows nor erases it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.environments.prefixes import DIGEST, NAME, prefix

USER = 4711


@pytest.fixture
def env(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "t").mkdir()
    return {"id": "t/1", "link": str(tmp_path / "t/1"), "version": "1", "digest": DIGEST}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("root's")
    return path


def test_a_link_of_a_package_is_not_written_through(part: Callable[[str], Any], tmp_path: Path, victim: Path) -> None:
    hidden = tmp_path / "prefix/.hal"
    hidden.mkdir(parents=True)
    common, manifest = part("common"), part("manifest")
    writes: dict[str, Callable[[], Any]] = {
        "record.json": lambda: common.save(str(hidden / "record.json"), {}),
        "activate.lua": lambda: common.replace(str(hidden / "activate.lua"), ""),
        "manifest": lambda: manifest.write(str(hidden.parent)),
    }
    for name, write in writes.items():
        for to in (victim, tmp_path / "gone"):
            (hidden / f"{name}.new").symlink_to(to)
            write()
            assert stat.S_ISREG((hidden / name).lstat().st_mode)
            assert stat.S_IMODE((hidden / name).stat().st_mode) == 0o644
    assert (victim.read_text(), (tmp_path / "gone").exists()) == ("root's", False)


def test_nor_one_that_comes_at_once(
    part: Callable[[str], Any], tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part("common").os.path, "lexists", lambda _: False)
    (tmp_path / "new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        part("common").create(str(tmp_path / "new"))
    assert victim.read_text() == "root's"


def test_an_environment_s_folder_that_is_a_link_is_refused(installer: Any, problem: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "t").symlink_to("elsewhere")
    with pytest.raises(problem) as refused:
        installer._mend(str(tmp_path / "t"))
    assert str(refused.value) == f"{tmp_path}/t is a link: somebody put it there; move it away"
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o700


def test_a_root_may_be_a_link_of_the_administrator_s(installer: Any, tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "link").symlink_to("apps")
    installer.root = str(tmp_path / "link")
    installer._mend(installer.root)


@pytest.mark.root  # who alone gives folders away
def test_somebody_s_prefix_is_neither_erased_nor_written_into(
    installer: Any, problem: Any, env: dict[str, Any], part: Callable[[str], Any], tmp_path: Path, victim: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It has what an interrupted, and what an old one of ours has."""
    begun = prefix(env, NAME)
    (begun / ".hal/building").touch()
    os.chown(begun, USER, 0)
    words = f"{begun} is a link, or not root's: somebody put it there; move it away"
    with pytest.raises(problem) as refused:
        installer._free_name(env, None)
    assert str(refused.value) == words
    begun.rename(tmp_path / "away")
    begun.symlink_to(tmp_path / "away")
    with pytest.raises(problem) as refused:
        installer._free_name(env, None)
    assert str(refused.value) == words
    begun.unlink()

    old = prefix(env, NAME, digest=DIGEST, owner="tools", time=1)
    (old / ".hal/surplus.json.new").symlink_to(victim)
    os.chown(old, USER, 0)
    monkeypatch.setattr(part("status"), "used", lambda _: [])
    for since in ("", json.dumps({"since": 0})):
        if since:
            (old / ".hal/surplus.json").write_text(since)
        installer._old([], "tools", True, [])
        assert (old / ".hal/surplus.json").exists() is bool(since)
        assert (installer.done["removed"], installer.done["kept"], victim.read_text()) == ([], [], "root's")
    assert (tmp_path / "away/.hal/building").exists()
