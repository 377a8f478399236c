"""Manifests: as the real sha256sum writes them, and refusals with their line."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hal_node.digest import sha256_of

HEX = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def manifest(parts: Any) -> Any:
    return parts("manifest")


def test_what_sha256sum_prints_is_read(manifest: Any, parts: Any, tmp_path: Path) -> None:
    names = ["plain", "with blank  two", "back\\slash", "new\nline", "größe", "*star", " leading"]
    folder = tmp_path / "files"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    for words in (["sha256sum"], ["sha256sum", "--binary"]):
        printed = subprocess.run(
            [*words, *(f"./{name}" for name in names)], cwd=folder, capture_output=True, check=True
        )
        path = tmp_path / "manifest"
        path.write_bytes(printed.stdout)
        found = dict(manifest.read(str(path)))
        assert sorted(found) == sorted(names)
        assert all(sha256_of(str(folder / name)) == digest for name, digest in found.items())
        assert all(name in manifest.Index(str(path)) for name in names)
        assert "other" not in manifest.Index(str(path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{HEX}  /etc/passwd", "/etc/passwd is not a name below the data set"),
        (f"{HEX}  a/../../b", "is not a name below the data set"),
        (f"{HEX}  a//b", "is not a name below the data set"),
        (f"{HEX}  .", "is not a name below the data set"),
        (f"{HEX}  a\r", "carriage return"),
        (f"{HEX[1:]}  a", "not a line of sha256sum"),
        (f"{HEX} a", "not a line of sha256sum"),
        (f"{HEX}  ", "not a line of sha256sum"),
        (f"SHA256 (a) = {HEX}", "not a line of sha256sum"),
        ("<html>", "not a line of sha256sum"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_number(
    manifest: Any, parts: Any, tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "manifest"
    path.write_bytes(f"{HEX}  good\n{line}\n".encode())
    with pytest.raises(parts("common").Problem, match="manifest:2: ") as refused:
        manifest.Index(str(path))
    assert words in str(refused.value)


def test_a_name_that_is_there_twice_is_refused(manifest: Any, parts: Any, tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    path.write_text(f"{HEX}  b\n{HEX}  a/x\n{'0' * 64}  ./a/x\n")
    with pytest.raises(parts("common").Problem, match="names a/x twice"):
        manifest.Index(str(path))
    path.write_text("\n")
    with pytest.raises(parts("common").Problem, match="names no file"):
        manifest.Index(str(path))
