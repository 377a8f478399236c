"""hal_modulefiles: a role's files are there, withdrawn ones are not, and nobody else's are touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hal_cluster.rules.lmod.files import files

Call = Callable[..., dict[str, Any]]


def of(tree: Path, *versions: str, role: str = "cuda", name: str = "cuda") -> dict[str, Any]:
    """Arguments for these versions of one name; the first is the default."""
    declared = [
        {"name": name, "version": one, "title": one, "owner_role": role, "default": one == versions[0]}
        for one in versions
    ]
    return {"tree": str(tree), "role": role, "files": files(declared, str(tree))}


def there(tree: Path) -> list[str]:
    """All files, by their path below the tree."""
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir() or path.is_symlink())


def test_files_are_written_once_and_the_stamp_tells_of_changes(call: Call, tree: Path) -> None:
    assert call(check=True, **of(tree, "10.2"))["changed"]
    assert not tree.exists()
    done = call(**of(tree, "10.2"))
    assert done["changed"]
    assert done["written"] == [f"{tree}/cuda/.modulerc.lua", f"{tree}/cuda/10.2.lua"]
    assert there(tree) == [".changed", "cuda/.modulerc.lua", "cuda/10.2.lua"]
    assert [(tree / name).stat().st_mode & 0o777 for name in ("cuda", "cuda/10.2.lua")] == [0o755, 0o644]
    os.utime(tree / ".changed", (1, 1))
    assert not call(**of(tree, "10.2"))["changed"]
    assert (tree / ".changed").stat().st_mtime == 1
    assert call(**of(tree, "10.2", "10.1"))["changed"]
    assert (tree / ".changed").stat().st_mtime > 1


def test_what_is_not_declared_any_more_goes_and_with_the_last_its_folder(call: Call, tree: Path) -> None:
    call(**of(tree, "10.2", "10.1"))
    would = call(check=True, **of(tree, "10.2"))
    assert (would["changed"], would["removed"]) == (True, [f"{tree}/cuda/10.1.lua"])
    assert "10.1" in would["diff"][0]["before"]
    assert (tree / "cuda/10.1.lua").exists()
    assert call(**of(tree, "10.2"))["removed"] == [f"{tree}/cuda/10.1.lua"]
    assert call(**{**of(tree, "10.2"), "files": []})["removed"] == [
        f"{tree}/cuda/.modulerc.lua",
        f"{tree}/cuda/10.2.lua",
    ]
    assert there(tree) == [".changed"]
    assert not (tree / "cuda").exists()


def test_files_of_other_roles_and_of_nobody_stay(call: Call, tree: Path) -> None:
    call(**of(tree, "12.0", role="compilers", name="at"))
    call(**of(tree, "10.2"))
    (tree / "cuda/9.9").write_text("#%Module\n")
    (tree / "mine").mkdir()
    (tree / "mine/1.lua").write_text('help("mine")\n')
    (tree / "cuda/8.lua").symlink_to(tree / "cuda/10.2.lua")
    assert call(**{**of(tree, "10.2"), "files": []})["changed"]
    assert there(tree) == [".changed", "at/.modulerc.lua", "at/12.0.lua", "cuda/8.lua", "cuda/9.9", "mine/1.lua"]


def test_somebody_else_s_file_is_named_and_nothing_is_written_until_that_is_allowed(call: Call, tree: Path) -> None:
    (tree / "cuda").mkdir(parents=True)
    (tree / "cuda/10.2.lua").write_text('help("by hand")\n')
    refused = call(**of(tree, "10.2"))
    assert refused["failed"]
    assert f"{tree}/cuda/10.2.lua is of somebody else" in refused["msg"]
    assert "replace_ok" in refused["msg"]
    assert there(tree) == ["cuda/10.2.lua"]
    assert call(check=True, **of(tree, "10.2"))["failed"], "check mode says so, too"
    assert call(replace_ok=True, **of(tree, "10.2"))["written"][1:] == [f"{tree}/cuda/10.2.lua"]
    assert "by hand" not in (tree / "cuda/10.2.lua").read_text()


def test_a_link_is_somebody_else_s_and_is_replaced_not_followed(call: Call, tree: Path) -> None:
    (tree / "cuda").mkdir(parents=True)
    target = tree.parent / "target"
    target.write_text("mine\n")
    (tree / "cuda/10.2.lua").symlink_to(target)
    assert "is of somebody else" in call(**of(tree, "10.2"))["msg"]
    call(replace_ok=True, **of(tree, "10.2"))
    assert target.read_text() == "mine\n"
    assert not (tree / "cuda/10.2.lua").is_symlink()


def test_another_role_s_name_is_refused(call: Call, tree: Path) -> None:
    call(**of(tree, "10.2", role="compilers"))
    assert "cuda/10.2.lua is of role compilers" in call(**of(tree, "10.2"))["msg"]


def test_a_folder_in_a_file_s_place_is_never_replaced(call: Call, tree: Path) -> None:
    (tree / "cuda/10.2.lua").mkdir(parents=True)
    assert "is a folder" in call(replace_ok=True, **of(tree, "10.2"))["msg"]


def test_an_edited_file_is_put_right(call: Call, tree: Path) -> None:
    call(**of(tree, "10.2"))
    path = tree / "cuda/10.2.lua"
    path.write_text(path.read_text() + 'setenv("X", "y")\n')
    path.chmod(0o666)
    done = call(**of(tree, "10.2"))
    assert done["written"] == [str(path)]
    assert 'setenv("X", "y")' in done["diff"][0]["before"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_arguments_that_cannot_be_right_are_refused(call: Call, tree: Path) -> None:
    elsewhere = {**of(tree, "10.2"), "tree": "/srv/other"}
    assert "is not TREE/NAME/FILE, where TREE is /srv/other" in call(**elsewhere)["msg"]
    assert "does not say that role wmlce wrote it" in call(**{**of(tree, "10.2"), "role": "wmlce"})["msg"]
