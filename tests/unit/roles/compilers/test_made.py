"""An installation that is made: what is recorded of it, whose it is, and what of older tries stays."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.compilers.test_steps import pgi_install, pgi_tree, version

NOW = 1_790_000_000


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], tuple[str, list[str]]]:
    """A function: the version -> (its new installation, what was said). Its installer writes one file."""

    def run(_: Any, unpacked: str, prefix: str) -> None:
        assert os.path.isdir(unpacked)
        os.mkdir(prefix)
        Path(prefix, "pgcc").write_bytes(b"cc")

    monkeypatch.setattr(pgi_install, "_unpack", lambda *_: None)
    monkeypatch.setattr(pgi_install, "_run", run)
    monkeypatch.setattr(pgi_install, "_check", lambda *_: None)
    monkeypatch.setattr(pgi_install.time, "time", lambda: NOW + 0.9)
    (tmp_path / "pgi.tar.gz").touch()
    (tmp_path / "pgi/19.10").mkdir(parents=True)

    def call(one: Any) -> tuple[str, list[str]]:
        said: list[str] = []
        return pgi_install._make(one, said.append), said

    return call


def test_what_it_was_made_of_is_recorded_last(tmp_path: Path, make: Callable[[Any], tuple[str, list[str]]]) -> None:
    one = version(tmp_path)
    prefix = f"{one.folder}/{one.digest}"
    assert make(one) == (prefix, [f"pgi/19.10: installed to {prefix}"])
    assert os.listdir(one.folder) == [one.digest]
    assert json.loads(Path(prefix, ".hal.json").read_text()) == {
        "format": 1, "version": "19.10", "sha256": "0" * 64, "installed_at": NOW,
        "choices": {"nvidia": True, "mpi": False, "mpi_gpu": False},
        "files": {"pgcc": [2, pgi_tree.sha256_of(f"{prefix}/pgcc")]},
    }  # fmt: skip
    assert make(one) == (f"{prefix}.1", [f"pgi/19.10: installed to {prefix}.1"])
    assert make(one)[0] == f"{prefix}.2"


def test_what_broke_half_way_goes_unless_it_is_loaded(
    tmp_path: Path, make: Callable[[Any], tuple[str, list[str]]]
) -> None:
    one = version(tmp_path)
    for number in ("", ".3", ".4"):
        Path(one.folder, one.digest + number).mkdir()
    Path(one.current).symlink_to(f"{one.digest}.3")
    assert make(one)[0] == f"{one.folder}/{one.digest}.4"
    assert sorted(os.listdir(one.folder)) == [f"{one.digest}.3", f"{one.digest}.4", "current"]


@pytest.mark.root  # who alone gives files away
@pytest.mark.parametrize(("owner", "group"), [(921, 0), (0, 1004), (921, 1004)])
def test_all_of_it_belongs_to_root(tmp_path: Path, owner: int, group: int) -> None:
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/sub/file").touch()
    (tmp_path / "top/sub/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    paths = [tmp_path / name for name in ("top", "top/sub", "top/sub/file", "top/sub/link", "elsewhere")]
    for path in paths:
        os.lchown(path, owner, group)
    pgi_install._own(str(tmp_path / "top"))
    found = [(path.lstat().st_uid, path.lstat().st_gid) for path in paths]
    assert found == [(os.geteuid(), os.getegid())] * 4 + [(owner, group)]


def test_a_folder_of_archives_is_made_for_everybody_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = version(tmp_path, "https://x/pgi.tar.gz")
    monkeypatch.setattr(pgi_install, "urlopen", lambda *_, **__: io.BytesIO(b"archive"))
    before = os.umask(0)
    try:
        pgi_install.fetch(one)
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(one.archive).parent.stat().st_mode) == 0o755


@pytest.mark.root  # who alone gives folders away
def test_somebody_s_folder_is_not_erased(tmp_path: Path) -> None:
    (tmp_path / "his/in").mkdir(parents=True)
    os.chown(tmp_path / "his", 4711, 0)
    with pytest.raises(pgi_tree.Problem) as refused:
        pgi_install.remove(str(tmp_path / "his"), pytest.fail)
    assert str(refused.value) == f"{tmp_path}/his belongs to uid 4711, and was not made by hal-pgi; move it away"
    assert (tmp_path / "his/in").is_dir()


def test_what_is_erased_is_a_file_a_link_or_a_folder_and_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "folder/in").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("none")
    for name in ("folder", "file", "link", "dangling", "none"):
        pgi_install.remove(str(tmp_path / name), said.append)
    assert os.listdir(tmp_path) == ["target"]
    assert said[0] == f"{tmp_path}/folder: removed"


@pytest.mark.parametrize(
    ("name", "digest", "number"),
    [
        ("0123456789ab", "0123456789ab", 0), ("0123456789ab.12", "0123456789ab", 12), ("0123456789ab.", "", None),
        ("0123456789abc", "", None), ("0123456789AB", "", None), ("x0123456789ab", "", None), ("current", "", None),
    ],
)  # fmt: skip
def test_names_of_installations(tmp_path: Path, name: str, digest: str, number: int | None) -> None:
    assert version(tmp_path).digest_of(name) == digest
    if number is not None:
        assert pgi_tree.number_of(name) == number


def test_what_is_quickly_seen_to_be_wrong_is_told_in_order(tmp_path: Path) -> None:
    one = version(tmp_path)
    assert one.wrong() == "pgi/19.10 is not installed"
    prefix = Path(one.folder, one.digest)
    prefix.mkdir(parents=True)
    assert (
        one.wrong()
        == one.foreign()
        == (
            f"{one.folder} is there and was not made by hal-pgi; move it away, or give it to hal-pgi: touch"
            f" {one.folder}/.hal"
        )
    )
    Path(one.folder, ".hal").mkdir()
    assert one.foreign(), "a folder is no mark"
    Path(one.folder, ".hal").rmdir()
    Path(one.folder, ".hal").touch()
    assert one.wrong() == "pgi/19.10 is not installed, or broke half-way"
    other = Path(one.folder, "f" * 12)
    other.mkdir()
    Path(one.current).symlink_to(other.name)
    assert one.wrong() == "pgi/19.10 is not installed, or broke half-way"
    (other / ".hal.json").write_text("{}")
    assert one.wrong() == "pgi/19.10 is installed as it was declared before, not as it is now"
    other.rename(Path(one.folder, "mine"))
    Path(one.current).unlink()
    Path(one.current).symlink_to("mine")
    assert one.wrong() == "pgi/19.10 is not installed, or broke half-way"
    (prefix / ".hal.json").write_text('{"files": {}, "installed_at": 1}')
    assert one.wrong() == f"{one.current} does not lead to {one.digest}"
    Path(one.current).unlink()
    assert one.wrong() == f"{one.current} does not lead to {one.digest}"
    Path(one.current).symlink_to(prefix.name)
    assert one.wrong() == ""
    one.table.installer = False
    assert one.wrong() == f"{prefix}/linuxpower/19.10/bin/pgcc is not there"
    driver = prefix / "linuxpower/19.10/bin/pgcc"
    driver.parent.mkdir(parents=True)
    driver.touch(0o644)
    assert one.wrong() == f"{driver} is not there"
    driver.chmod(0o755)
    assert one.wrong() == ""
    one.table.installer = True
    for name in ("lib", "bin", "", "..", "../.."):
        folder = prefix / "linuxpower/19.10" / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o775)
        place = os.path.relpath(folder, prefix)
        assert one.wrong() == f"1 writable by others than root ({place})"
        folder.chmod(0o755)
    assert one.wrong() == ""


def test_what_is_left_over_is_found_between_folders_of_others(tmp_path: Path) -> None:
    one = version(tmp_path)
    folders = [Path(one.table.root, name) for name in (".archives", "18.1", "19.1", "19.10", "20.4")]
    for folder in folders:
        folder.mkdir(parents=True)
    for folder in (folders[1], folders[3], folders[4]):
        (folder / ".hal").touch()
    for name in (one.digest, f"{one.digest}.1", "f" * 12, "current.new"):
        (folders[3] / name).mkdir()
    replaced = [str(folders[3] / name) for name in sorted((f"{one.digest}.1", "f" * 12))]
    assert pgi_tree.undeclared(one.table) == [str(folders[1]), *replaced, str(folders[4])]
