"""Whatever a manifest names and however often a transfer is interrupted, a data set is whole or not to be seen."""

from __future__ import annotations

import hashlib
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

for files in ("roles/datasets/files", "plugins/module_utils"):  # a node has them in one folder
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / files))
common: Any = importlib.import_module("dataset_common")
manifest: Any = importlib.import_module("dataset_manifest")
fetching: Any = importlib.import_module("dataset_fetch")

part = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0/"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and not name.endswith("\r")
)
names = st.lists(part, min_size=1, max_size=3).map("/".join)


def escaped(name: str) -> str:
    """As sha256sum of coreutils writes a line: a backslash in front when one is in the name."""
    plain = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return ("\\" if plain != name else "") + hashlib.sha256(name.encode()).hexdigest() + "  " + plain + "\n"


@given(st.lists(names, min_size=1, max_size=20, unique=True))
def test_every_name_is_read_as_it_is(listed: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "manifest"
        path.write_bytes("".join(map(escaped, listed)).encode())
        assert dict(manifest.read(str(path))) == {name: hashlib.sha256(name.encode()).hexdigest() for name in listed}
        index = manifest.Index(str(path))
        assert len(index) == len(listed)
        assert all(name in index for name in listed)


@given(st.binary(max_size=200))
def test_a_line_is_a_name_below_the_data_set_or_a_problem(line: bytes) -> None:
    try:
        name, digest = manifest.parse(line)
    except common.Problem:
        return
    assert len(digest) == 64
    assert ".." not in name.split("/")
    assert not name.startswith("/")


@given(names)
def test_a_good_line_is_no_problem(name: str) -> None:
    assert manifest.parse(escaped(name).encode())[0] == name


class Source:
    """A source that breaks where it is told, once for each number; a range it may give or not."""

    source = "test"

    def __init__(self, content: bytes, breaks: list[int], ranges: bool) -> None:
        self.content, self.breaks, self.ranges, self.sent = content, breaks, ranges, 0

    def more(self, name: str, part: str) -> None:
        begin = fetching._size(part) if self.ranges else 0
        rest = self.content[begin:]
        if self.breaks:
            rest = rest[: self.breaks.pop(0)]
        blocks = iter([rest, b""])
        self.sent += fetching._copy(lambda _: next(blocks), part, begin)
        if begin + len(rest) < len(self.content):
            raise fetching.BrokenError("gone")


@settings(deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 100), max_size=6), st.booleans(), st.booleans())
def test_a_file_is_whole_or_not_there(content: bytes, breaks: list[int], ranges: bool, right: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching.time, "sleep", lambda _: None)
        place = common.Place(folder, {"name": "a", "version": "1"})
        Path(place.parts).mkdir(parents=True)
        source = Source(content, breaks, ranges)
        digest = hashlib.sha256(content if right else content + b"x").hexdigest()
        there = Path(place.data) / "x/y"
        _, size, why = fetching._bring(source, ("x/y", digest), place, lambda _: None)
        assert there.exists() == (why == "") == right
        assert list(Path(place.parts).iterdir()) == []
        if right:
            assert there.read_bytes() == content
            assert size == len(content)
            if ranges:
                assert source.sent == len(content), "no byte came twice"
