"""The cache gives what would be computed, or nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hal_inventory import cache, load
from hal_inventory.compiled import inventory_of, slice_of
from hal_inventory.packed import host_vars
from tests.unit.hal_inventory.conftest import Folder


@pytest.fixture(autouse=True)
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _own_cache: None) -> Path:
    """A cache that nobody has used."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache-of-this-test"))
    return cache.folder()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were really read."""
    seen: list[str] = []
    real = load.load_bytes

    def counted(content: bytes, file: str) -> Any:
        seen.append(file)
        return real(content, file)

    monkeypatch.setattr(load, "load_bytes", counted)
    return seen


def entries(where: Path) -> list[Path]:
    return sorted(where.glob("*.json"))


def test_a_second_run_does_not_read_the_model(folder: Folder, reads: list[str]) -> None:
    source = folder.site()
    first = inventory_of(source)
    assert inventory_of(source) == first
    assert len(reads) == 1


def test_any_change_of_the_model_counts(folder: Folder, small: str) -> None:
    source = folder.site()
    before = host_vars(inventory_of(source))["front"]["hal_node"]["serial"]
    status = (folder.path / "cluster.yml").stat()
    folder.write("cluster.yml", small.replace("S-FRONT", "S-FRXNT"))  # as long as before, and as old
    os.utime(folder.path / "cluster.yml", ns=(status.st_atime_ns, status.st_mtime_ns))
    after = host_vars(inventory_of(source))["front"]["hal_node"]["serial"]
    assert (before, after) == ("S-FRONT", "S-FRXNT")


def test_any_change_of_the_view_counts(folder: Folder) -> None:
    source = folder.site()
    assert len(host_vars(inventory_of(source))) == 5
    folder.site(source="plugin: hal\ncluster: cluster.yml\nonly: compute\n")
    assert len(host_vars(inventory_of(source))) == 4


def test_slices_and_their_arguments_are_kept_apart(folder: Folder) -> None:
    source = folder.site()
    assert slice_of(source, "nodes", {"where": "front"}) == ["front"]
    assert slice_of(source, "nodeset", {"where": "front"}) == "front"
    assert slice_of(source, "nodes", {"where": "worker1"}) == ["worker1"]


def test_other_code_computes_its_own(folder: Folder, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder.site()
    inventory_of(source)
    monkeypatch.setattr(cache, "code_version", lambda: b"newer")
    inventory_of(source)
    assert len(reads) == 2


@pytest.mark.parametrize(
    "damage",
    [b"", b"{}", b"\0" * 100, b"0" * 64 + b"\n{}", None],
    ids=["empty", "no checksum", "zeros", "wrong checksum", "cut short"],
)
def test_a_damaged_entry_is_as_none(folder: Folder, where: Path, reads: list[str], damage: bytes | None) -> None:
    source = folder.site()
    first = inventory_of(source)
    (entry,) = entries(where)
    entry.write_bytes(entry.read_bytes()[:-10] if damage is None else damage)
    assert inventory_of(source) == first
    assert len(reads) == 2
    assert inventory_of(source) == first
    assert len(reads) == 2


def test_what_others_could_have_written_is_not_believed(folder: Folder, where: Path, reads: list[str]) -> None:
    source = folder.site()
    inventory_of(source)
    where.chmod(0o777)
    inventory_of(source)
    where.chmod(0o700)
    entries(where)[0].chmod(0o666)
    inventory_of(source)
    assert len(reads) == 3


def test_an_entry_of_somebody_else_is_not_believed(
    folder: Folder, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder.site()
    inventory_of(source)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    inventory_of(source)
    assert len(reads) == 2


def test_a_link_is_not_followed(folder: Folder, where: Path, reads: list[str]) -> None:
    source = folder.site()
    inventory_of(source)
    (entry,) = entries(where)
    elsewhere = folder.path / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    inventory_of(source)
    assert len(reads) == 2


def test_only_the_user_can_read_it(folder: Folder, where: Path) -> None:
    inventory_of(folder.site())
    assert where.stat().st_mode & 0o777 == 0o700
    assert entries(where)[0].stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written_is_no_harm(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", "/proc/nowhere")
    assert len(host_vars(inventory_of(folder.site()))) == 5


def test_a_model_with_a_fault_is_not_kept(folder: Folder, where: Path, small: str) -> None:
    with pytest.raises(Exception, match="role"):
        inventory_of(folder.site(small.replace("role: login", "role: x")))
    assert entries(where) == []


def test_old_entries_go(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 3)
    for at in range(6):
        assert cache.cached([b"%d" % at], lambda at=at: at) == at  # type: ignore[misc]
    assert len(entries(where)) == 3


def test_a_result_is_the_same_from_the_cache_and_computed(folder: Folder, hal: Any, root: Path) -> None:
    source = root / "inventory" / "hal" / "hal.yml"
    texts = [json.dumps(inventory_of(source), sort_keys=False) for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_cached_run_imports_nothing_slow(folder: Folder) -> None:
    source = folder.site()
    inventory_of(source)
    code = (
        "import sys; from hal_inventory.compiled import inventory_of; inventory_of(sys.argv[1]);"
        "print(sorted({'pydantic', 'rich', 'ClusterShell', 'difflib'} & set(sys.modules)))"
    )
    import sys

    done = folder.run(sys.executable, "-c", code, source)
    assert done.stdout == "[]\n", done.stderr


def test_the_oldest_entries_go_and_the_newest_stay(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where.mkdir(parents=True)
    for age, name in enumerate(["b", "c", "a", "d"]):
        (where / f"{name}.json").write_text("")
        os.utime(where / f"{name}.json", (1000 + age, 1000 + age))
    (where / "other.txt").write_text("")
    monkeypatch.setattr(cache, "MAX_ENTRIES", 3)
    cache.cached([b"new"], lambda: 1)
    assert [path.stem for path in entries(where) if len(path.stem) == 1] == ["a", "d"]
    assert (where / "other.txt").exists()


def test_an_entry_that_another_run_dropped_meanwhile_is_no_harm(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.unlink

    def twice(path: Path, missing_ok: bool = False) -> None:
        real(path)
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", twice)
    monkeypatch.setattr(cache, "MAX_ENTRIES", 1)
    where.mkdir(parents=True)
    for age, name in enumerate(["old", "older"]):
        (where / f"{name}.json").write_text("")
        os.utime(where / f"{name}.json", (1000 - age, 1000 - age))
    cache.cached([b"new"], lambda: 1)
    assert [len(path.stem) for path in entries(where)] == [64]


def test_two_hundred_and_fifty_six_results_are_kept() -> None:
    assert cache.MAX_ENTRIES == 256


def test_parts_are_not_run_together() -> None:
    assert cache.cached([b"ab", b"c"], lambda: 1) == 1
    assert cache.cached([b"a", b"bc"], lambda: 2) == 2
    assert cache.cached([b"ab", b"c"], lambda: 3) == 1


def test_a_write_that_fails_leaves_nothing_and_the_result_is_given(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: str, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert cache.cached([b"x"], lambda: 1) == 1
    assert list(where.iterdir()) == []


def test_nothing_is_written_where_others_could_write(where: Path) -> None:
    where.mkdir(parents=True)
    where.chmod(0o720)
    assert cache.cached([b"x"], lambda: 1) == 1
    assert list(where.iterdir()) == []


def test_the_code_s_version_is_that_of_every_file_and_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(**files: str) -> bytes:
        for old in tmp_path.rglob("*.py"):
            old.unlink()
        (tmp_path / "below").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / f"{name.replace('_', '/')}.py").write_text(text)
        monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
        return cache.code_version.__wrapped__()

    one = version(a="1", below_b="2")
    assert version(a="1", below_b="2") == one
    others = {
        version(a="2", below_b="2"), version(a="1", below_b="3"), version(b="1", below_b="2"), version(a="1")
    }  # fmt: skip
    assert len(others - {one}) == 4
    first = cache.code_version()
    assert cache.code_version() is first  # worked out once


def test_the_folder_is_the_one_asked_for_or_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", "/a")
    assert cache.folder() == Path("/a/inventory")
    monkeypatch.setenv("HAL_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.folder() == Path("/x/hal/inventory")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache.folder() == Path("/h/.cache/hal/inventory")
