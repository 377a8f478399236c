"""A file that cannot be read as text, or not at all, is one finding."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hal_cluster.inventory.validate import validate
from hal_inventory import reader
from hal_inventory.errors import ClusterFileError, HalInventoryError
from hal_inventory.load import load, load_bytes
from hal_inventory.sources import is_source, last_source
from tests.unit.hal_inventory.conftest import Folder


def message(path: Path) -> str:
    with pytest.raises(ClusterFileError) as caught:
        load(path)
    return str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yml"
    assert message(path) == f"{path}: no such file"


def test_a_folder(tmp_path: Path) -> None:
    assert message(tmp_path) == f"{tmp_path}: is a directory; name the file in it"


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


ODD: list[tuple[Callable[[Path], None], str]] = [
    (os.mkfifo, "is a pipe; name a regular file"),  # nobody writes into it: who opens it as a file waits for ever
    (lambda path: path.symlink_to("/dev/zero"), "is a device; name a regular file"),
    (_socket, "is a socket; name a regular file"),
    (Path.mkdir, "is a directory; name the file in it"),
    (lambda path: path.symlink_to("gone"), 'is a link to "gone", and there is no such file'),
    (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
]
SOURCES = {
    "hal.yml": "",
    "cluster.yml": "plugin: hal\ncluster: cluster.yml\n",
    "users.yml": "plugin: hal\ncluster: cluster.yml\n",
    "base.yml": "plugin: hal\nbase: base.yml\n",
}


@pytest.mark.parametrize(("make", "said"), ODD)
@pytest.mark.parametrize("name", SOURCES)
def test_what_is_no_regular_file_is_one_line_wherever_a_file_is_read(
    folder: Folder, name: str, make: Callable[[Path], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.path)
    folder.site(source=SOURCES[name])
    Path(name).unlink(missing_ok=True)
    make(Path(name))
    assert not is_source(Path(name))
    where = "hal.yml/hal.yml" if name == "hal.yml" and os.path.isdir(name) else "hal.yml"
    assert str(last_source(["hal.yml"], strict=True)) == where
    for path in {"hal.yml", name}:
        verdict = validate([path], list_placeholders=False)
        assert (verdict.status, verdict.answer.data["findings"]) == (
            2,
            [{"file": name, "line": 0, "field": "", "message": said}],
        )


def test_a_file_that_becomes_a_pipe_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "cluster.yml", tmp_path / "other"
    os.mkfifo(path)
    other.write_text("name: x\n")
    before = os.stat(other)
    monkeypatch.setattr(os, "stat", lambda *_, **__: before)
    assert message(path) == f"{path}: is a pipe; name a regular file"


def test_a_folder_that_may_not_be_searched(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may search any folder, so it is the system's answer that is put in here.
    source = folder.site()
    really = os.stat

    def refuse(path: object, *rest: object, **more: object) -> object:
        if str(path).startswith(str(folder.path)):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refuse)
    assert message(source) == f"{source}: cannot be read: Permission denied"
    assert last_source([str(source)], strict=True) == source
    assert last_source([str(folder.path)]) is None


def test_a_working_directory_that_is_gone(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    source, gone = folder.site(), folder.path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert validate([str(source)], list_placeholders=False).status == 0
    with pytest.raises(HalInventoryError, match=r"^x\.yml: no such file$"):
        load("x.yml")


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
