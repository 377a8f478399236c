"""Whatever an archive has, and whatever links a node has: a restore writes in declared paths only, or not at all."""

from __future__ import annotations

import importlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hal_node.digest import sha256_of
from tests.unit.roles.backup.archives import KINDS, Member, manifest, write

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "roles" / "backup" / "files"))
archives: Any = importlib.import_module("backup_archive")
common: Any = importlib.import_module("backup_common")
contents: Any = importlib.import_module("backup_contents")
restore: Any = importlib.import_module("backup_restore")

# A node is a folder so deep that no name of a test leads out of what is compared.
DEEP = "1/2/3/4"
DECLARED = ("in", "one/file")
# Few names, so that several members are about the same one.
below = st.sampled_from(["a", "link", "a/b", "link/b", "link/precious", "a/link", "größe", "\x1b["])
beside = st.sampled_from(["out", "out/precious", "one", "one/precious", "new", "in2", "in/../out/x", "..", "../out/x"])
tops = st.sampled_from(DECLARED)
paths = st.one_of(tops, tops.flatmap(lambda top: below.map(lambda name: f"{top}/{name}")), beside)
up = st.sampled_from(["", "a", "link", "..", "../out", "../../out", "../a", "a/..", "link/..", "link/../../out", "./a"])
targets = st.one_of(up, paths.map(lambda path: "{node}/" + path))
names = st.one_of(
    *[paths.map(lambda path: "data{node}/" + path)] * 9,
    st.sampled_from(["data/../x", "/x", "x", "data", "data/x", "./data", "MANIFEST.json"]),
)
members = st.builds(
    Member,
    names,
    st.sampled_from(["file"] * 9 + ["link"] * 9 + ["folder"] * 5 + [*KINDS]),
    st.binary(max_size=3),
    targets,
    st.sampled_from([0o644] * 9 + [0o4755, 0o2755, 0o777]),
)
# What the node has in its declared paths: files, folders, and links to anywhere.
links = st.sampled_from(["{node}/out", "../out", "../one", "a", "..", "{node}/out/precious"])
present = st.dictionaries(
    st.sampled_from(["a", "link", "a/b", "a/link"]), st.one_of(links, st.none(), st.binary(max_size=3)), max_size=3
)


def complete(found: list[Member]) -> list[Member]:
    """With the folders above each, as the job writes them; a name that is there is not there again."""
    seen: dict[str, Member] = {}
    for one in found:
        above = one.name.split("/")[:-1]
        for number in range(1, len(above) + 1):
            name = "/".join(above[:number])
            seen.setdefault(name, Member(name, "folder", mode=0o755))
        seen.setdefault(one.name, one)
    return list(seen.values())


def plant(folder: Path, found: dict[str, bytes | str | None]) -> None:
    """Make what the node has in a declared folder; what cannot be made is not there."""
    folder.mkdir()
    for name, what in found.items():
        path = folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            if what is None:
                path.mkdir()
            elif isinstance(what, bytes):
                path.write_bytes(what)
            else:
                path.symlink_to(what)
        except OSError:
            continue


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """All that is below, with mode and content; nothing is followed."""
    seen = {}
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(where, name)
            mode = path.lstat().st_mode
            content = os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes().hex() if stat.S_ISREG(mode) else ""
            seen[str(path.relative_to(folder))] = (mode, content)
    return seen


def put(node: Path, base: Path, found: list[Member]) -> str:
    """Restore it as the playbook does; why it was refused, empty when it was not."""
    source = {"name": "data", "kind": "files", "paths": [str(node / path) for path in DECLARED], "stops": []}
    path = write(base / "archive", found, manifest("data", made=2**33))
    try:
        packed = archives.check(str(path))
        result = {
            "made": packed[0]["made"],
            "plain_sha256": sha256_of(str(path)),
            "sources": contents.chosen(*packed, [source], []),
        }
        restore.put(result, str(path), str(base / "work"), False)
    except common.Problem as problem:
        return str(problem)
    return ""


def inside(name: str, kind: str = "file", target: str = "", mode: int = 0o644) -> Member:
    return Member("data{node}/" + name, kind, b"1", target, mode)


@settings(max_examples=400)
@example([inside("out/x")], {}, 1)
@example([inside("in/link", "link", "{node}/out"), inside("in/link/x")], {}, 1)
@example([inside("in/link", "link", "{node}/out")], {}, 1)
@example([inside("in/link", "link", "../out/precious")], {}, 1)
@example([inside("one/file", "link", "precious")], {}, 1)
@example([inside("in/a", "link", "../out"), inside("in/b", "link", "a/..")], {}, 1)
@example([inside("in/link/precious")], {"link": "{node}/out"}, 1)
@example([inside("in/link/new", "folder")], {"link": "../out"}, 1)
@example([inside("in/a/link/x")], {"a": None, "a/link": "../../out"}, 1)
@example([inside("in/sh", mode=0o4755)], {}, 1)
@example([inside("in/../out/x")], {}, 1)
@given(st.lists(members, min_size=1, max_size=3), present, st.integers(0, 9))
def test_nothing_is_written_elsewhere(found: list[Member], there: dict[str, bytes | str | None], apart: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        base = Path(name)
        patch.setattr(restore, "ASIDE", str(base / "aside"))
        node = base / "node" / DEEP
        node.mkdir(parents=True)
        (base / "work").mkdir()
        for folder in (node / "out", node / "one", node.parent / "out"):
            folder.mkdir()
            (folder / "precious").write_text("precious")
        plant(
            node / "in",
            {name: what.format(node=node) if isinstance(what, str) else what for name, what in there.items()},
        )
        # A restore is root's, who enters every folder; whoever runs this test may not be.
        named = [
            Member(
                *(one.name.format(node=node), one.kind, one.content, one.target.format(node=node)),
                one.mode | (0o700 if one.kind == "folder" else 0),
            )
            for one in found
        ]
        before = tree(base / "node")
        refused = put(node, base, complete(named) if apart else named)
        after = tree(base / "node")
        assert list((base / "work").iterdir()) == [], "nothing unpacked is left"

        declared = tuple(f"{DEEP}/{path}" for path in DECLARED)
        new = {name for name in after if after[name] != before.get(name)} | (before.keys() - after.keys())
        assert not [name for name in new if not (f"{name}/").startswith(tuple(f"{path}/" for path in declared))]
        assert not [name for name in new if after.get(name, (0, ""))[0] & 0o6000 and stat.S_ISREG(after[name][0])]
        assert refused.isprintable(), "one line that a terminal may have"
        if refused:
            assert not [name for name in new if not stat.S_ISDIR(after[name][0])], "refused, and written"
        for name in new:
            mode, target = after[name]
            if stat.S_ISLNK(mode):
                leads = os.path.relpath(os.path.normpath(base / "node" / Path(name).parent / target), base / "node")
                assert (f"{leads}/").startswith(tuple(f"{path}/" for path in declared)), "a link leads out"


def test_a_right_archive_is_restored() -> None:
    """What the property would not see: that everything is refused."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        base = Path(name)
        patch.setattr(restore, "ASIDE", str(base / "aside"))
        node = base / "node" / DEEP
        node.mkdir(parents=True)
        (base / "work").mkdir()
        right = [
            Member(f"data{node}/in/a/b", content=b"1"),
            Member(f"data{node}/in/link", "link", target="a/b"),
            Member(f"data{node}/one/file", content=b"2", mode=0o400),
        ]
        assert put(node, base, complete(right)) == ""
        assert (node / "in" / "link").read_bytes() == b"1"
        assert (node / "one" / "file").read_bytes() == b"2"
