"""A file that cannot be read as text, or not at all, is one finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal_inventory import reader
from hal_inventory.errors import ClusterFileError
from hal_inventory.load import load, load_bytes


def message(path: Path) -> str:
    with pytest.raises(ClusterFileError) as caught:
        load(path)
    return str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yml"
    assert message(path) == f"{path}: no such file"


def test_a_folder(tmp_path: Path) -> None:
    assert message(tmp_path) == f"{tmp_path}: is a directory; name the file in it"


def test_an_unreadable_file() -> None:
    # Root may read any file whatever its mode, so this is one that nobody can.
    assert message(Path("/proc/self/mem")) == "/proc/self/mem: cannot be read: Input/output error"


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    assert message(Path("a\0b")).endswith("cannot be read: embedded null byte")
    assert message(tmp_path / "file" / "cluster.yml").endswith("no such file")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"# only a comment\n", b"---\n", b"---\n...\n"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cluster.yml"
    path.write_bytes(content)
    assert message(path).startswith(f"{path}")
    assert message(path).endswith(("is empty; a mapping of fields is expected", "must be a mapping of fields"))


@pytest.mark.parametrize("content", [b"just text\n", b"- a\n- b\n", b"5\n"])
def test_a_file_without_fields(content: bytes) -> None:
    with pytest.raises(ClusterFileError, match=r"^cluster.yml:1: must be a mapping of fields$"):
        load_bytes(content, "cluster.yml")


def test_a_file_that_is_not_utf_8_says_the_line(small: str) -> None:
    content = small.replace("IBM AC922", "IBM AC922 \xe9", 1).encode("latin-1")
    with pytest.raises(ClusterFileError, match=r"^cluster.yml:10: is not UTF-8 text: byte 0xe9$"):
        load_bytes(content, "cluster.yml")


def test_a_binary_file() -> None:
    with pytest.raises(ClusterFileError, match=r"^cluster.yml:1: is not UTF-8 text: byte 0xff$"):
        load_bytes(bytes(range(255, 0, -1)), "cluster.yml")


def test_a_file_with_a_byte_order_mark_is_read(small: str) -> None:
    assert load_bytes(b"\xef\xbb\xbf" + small.encode(), "cluster.yml").name == "small"


def test_a_file_with_the_line_ends_of_windows_is_read(small: str) -> None:
    assert len(load_bytes(small.replace("\n", "\r\n").encode(), "cluster.yml").nodes) == 5


def test_a_very_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 1000)
    path = tmp_path / "cluster.yml"
    path.write_text("x" * 1001)
    assert message(path) == f"{path}: is larger than 1000 bytes; that is taken for a slip"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_and_harms_nothing(opening: str) -> None:
    with pytest.raises(ClusterFileError, match=r"nested more than 24 levels deep|is not YAML"):
        load_bytes(("x:\n  " + opening * 200_000).encode(), "cluster.yml")


def test_names_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert message(tmp_path / "sub" / "cluster.yml") == "sub/cluster.yml: no such file"
