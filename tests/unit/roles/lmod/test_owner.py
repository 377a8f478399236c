"""hal_modulefiles as root: whose files are, what check mode tells of that, and refusals in whole sentences."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.lmod.conftest import ROOT, calling, loaded
from tests.unit.roles.lmod.test_modulefiles import of

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """As `call`, with owners."""
    return calling(loaded(ROOT / "plugins/modules/hal_modulefiles.py"), monkeypatch, capsys)


@pytest.mark.root  # who alone gives files away
@pytest.mark.parametrize("name", ["", "cuda", "cuda/10.2.lua", ".changed"])
@pytest.mark.parametrize(("owner", "group", "open_"), [(4711, -1, 0), (-1, 4712, 0), (-1, -1, 0o022)])
def test_all_of_the_tree_belongs_to_root(
    as_root: Call, tree: Path, name: str, owner: int, group: int, open_: int
) -> None:
    before = os.umask(0)
    try:
        as_root(**of(tree, "10.2"))
    finally:
        os.umask(before)
    path = tree / name
    wanted = 0o755 if path.is_dir() else 0o644
    mode = stat.S_IMODE(path.stat().st_mode)
    assert (path.stat().st_uid, path.stat().st_gid, mode) == (0, 0, wanted)
    assert not as_root(**of(tree, "10.2"))["changed"]
    path.chmod(wanted | open_)
    os.chown(path, owner, group)
    planted = path.stat()
    would = as_root(check=True, **of(tree, "10.2"))
    assert (would["changed"], would["written"], would["diff"]) == (
        True, [str(path)] if name.endswith(".lua") else [], [],
    )  # fmt: skip
    seen = path.stat()
    assert (seen.st_uid, seen.st_gid, seen.st_mode) == (planted.st_uid, planted.st_gid, planted.st_mode)
    done = as_root(**of(tree, "10.2"))
    assert (done["changed"], done["written"], done["removed"]) == (True, would["written"], [])
    seen = path.stat()
    assert (seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)) == (0, 0, wanted)
    assert not as_root(**of(tree, "10.2"))["changed"]


def test_check_mode_tells_what_would_be_written_and_removed(call: Call, tree: Path) -> None:
    first = of(tree, "10.2")
    texts = {one["path"]: one["content"] for one in first["files"]}
    paths = list(texts)
    would = call(check=True, **first)
    new = [{"before": "", "after": texts[path], "before_header": path, "after_header": path} for path in paths]
    assert {key: would[key] for key in ("changed", "written", "removed", "diff")} == {
        "changed": True, "written": paths, "removed": [], "diff": new,
    }  # fmt: skip
    call(**first)
    os.unlink(tree / ".changed")
    assert call(check=True, **first)["changed"], "nobody would look again"
    assert not (tree / ".changed").exists()
    call(**first)
    assert (tree / ".changed").exists()
    gone = call(check=True, **{**first, "files": []})
    assert (gone["removed"], gone["written"]) == (paths, [])
    assert gone["diff"] == [
        {"before": texts[path], "after": "", "before_header": path, "after_header": "/dev/null"} for path in paths
    ]
    assert call(**{**first, "files": []})["diff"] == gone["diff"]


def test_a_link_is_not_read_and_in_check_mode_it_stays(call: Call, tree: Path) -> None:
    call(**of(tree, "10.2"))
    path = tree / "cuda/10.2.lua"
    text = path.read_text()
    path.rename(tree.parent / "same")
    path.symlink_to(tree.parent / "same")
    done = call(check=True, replace_ok=True, **of(tree, "10.2"))
    assert (done["written"], path.is_symlink(), done["diff"][0]["before"]) == ([str(path)], True, "")
    assert call(replace_ok=True, **of(tree, "10.2"))["written"] == [str(path)]
    assert (path.is_symlink(), path.read_text()) == (False, text)


def test_all_that_is_in_the_way_is_named(call: Call, tree: Path) -> None:
    nothing = "\nNothing was written. Move it away"
    given = of(tree, "10.2", "10.1")
    (tree / "cuda/10.1.lua").mkdir(parents=True)
    (tree / "cuda/10.2.lua").write_text("mine")
    for replace_ok in (False, True):
        said = call(replace_ok=replace_ok, **given)["msg"]
        assert said == f"{tree}/cuda/10.1.lua is a folder{nothing}."
    (tree / "cuda/10.1.lua").rmdir()
    (tree / "cuda/10.1.lua").write_text("-- Written by Ansible, role wmlce; x")
    assert call(**given)["msg"] == (
        f"{tree}/cuda/10.1.lua is of role wmlce\n{tree}/cuda/10.2.lua is of somebody else{nothing}, or allow that it is"
        " replaced (replace_ok)."
    )
    for path in (tree / "cuda").iterdir():
        path.unlink()
    (tree / "cuda").rmdir()
    (tree / "cuda").symlink_to(tree.parent)
    several = f"{tree}/cuda is not a folder\n" * 3
    assert call(**given)["msg"] == f"{several.strip()}{nothing}."
    (tree / "cuda").unlink()
    (tree / "cuda").touch()
    assert call(**given)["msg"] == f"{several.strip()}{nothing}."


def test_each_declared_file_that_cannot_be_right_is_named(call: Call, tree: Path) -> None:
    files = [{"path": f"{tree}/x.lua", "content": "-- Written by Ansible, role cuda; y"},
             {"path": f"{tree}/a/x.lua", "content": "x -- Written by Ansible, role cuda; y"},
             {"path": f"{tree}/a/b/x.lua", "content": "-- Written by Ansible, role a; y"}]  # fmt: skip
    said = call(tree=str(tree), role="cuda", files=files)["msg"]
    assert said.splitlines() == [
        f"{tree}/x.lua is not TREE/NAME/FILE, where TREE is {tree}",
        f"{tree}/a/x.lua: the first line does not say that role cuda wrote it",
        f"{tree}/a/b/x.lua is not TREE/NAME/FILE, where TREE is {tree}",
        f"{tree}/a/b/x.lua: the first line does not say that role cuda wrote it",
    ]
    assert not tree.exists()


def test_only_files_in_folders_of_the_tree_are_withdrawn(call: Call, tree: Path) -> None:
    text = "-- Written by Ansible, role cuda; x\n"
    (tree / "b").mkdir(parents=True)
    (tree / "b/inner").mkdir()
    for name in ("b/2", "b/1", "b/inner/x", "top"):
        (tree / name).write_text(text)
    (tree / "a").symlink_to("b")
    (tree / "b/link").symlink_to("1")
    removed = call(tree=str(tree), role="cuda", files=[])["removed"]
    assert removed == [f"{tree}/b/1", f"{tree}/b/2"]
    assert sorted(os.listdir(tree)) == [".changed", "a", "b", "top"]
    assert sorted(os.listdir(tree / "b")) == ["inner", "link"]
