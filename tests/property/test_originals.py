"""Any tree of files, any rollout of two roles over it, given back in any order: the same tree again."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.modules import SHIPPED

assert SHIPPED, "what is shipped is found under the name that it has on a node"

from ansible.module_utils.hal_node.audit.node import Node  # noqa: E402  found through the lines above
from ansible.module_utils.hal_node.expect.values import Unreadable  # noqa: E402
from ansible.module_utils.hal_node.originals.back import ask, give_back  # noqa: E402
from ansible.module_utils.hal_node.originals.listing import listed  # noqa: E402
from ansible.module_utils.hal_node.originals.store import keep  # noqa: E402

ROLES = ("base", "time")
NAMES = ["a", "b", "a/x", "a/y", "a/x/p", "a/x/q", "b/x", "b/x/p/r"]
PATHS = st.sampled_from(NAMES)
MODES = st.sampled_from([0o600, 0o640, 0o755, 0o4755])
CONTENT = st.binary(max_size=20)
THERE = st.one_of(
    st.tuples(st.just("file"), CONTENT, MODES, st.integers(10**18, 2 * 10**18)),
    st.tuples(st.just("directory"), MODES),
    st.tuples(st.just("link"), st.sampled_from(["nowhere", "../nothing"])),
)
WRITES = st.tuples(
    st.sampled_from(ROLES), PATHS, st.sampled_from(["file", "directory", "link", "absent", "mode"]), CONTENT, MODES
)


def make(root: Path, path: str, what: Any) -> None:
    """Make something of the tree, where what is above it allows that."""
    target = root / path
    if not target.parent.is_dir() or target.parent.is_symlink() or os.path.lexists(target):
        return
    if what[0] == "file":
        target.write_bytes(what[1])
        target.chmod(what[2])
        os.utime(target, ns=(what[3], what[3]))
    elif what[0] == "directory":
        target.mkdir()
        target.chmod(what[1] | 0o700)
    else:
        target.symlink_to(what[1])


def write(root: Path, path: str, kind: str, content: bytes, mode: int) -> None:
    """Do what a role does, as its modules do it: folders above are made, a folder is no file's place."""
    target = root / path
    above = [one for one in target.parents if root in one.parents or one == root]
    if any(os.path.lexists(one) and (one.is_symlink() or not one.is_dir()) for one in above):
        return
    is_folder = target.is_dir() and not target.is_symlink()
    if kind == "absent":
        if is_folder:
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        return
    if kind == "mode":
        if os.path.lexists(target) and not target.is_symlink():
            target.chmod(mode | 0o700)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "directory":
        if not os.path.lexists(target):
            target.mkdir()
        return
    if is_folder:
        return
    target.unlink(missing_ok=True)
    if kind == "link":
        target.symlink_to("/ours")
    else:
        target.write_bytes(content)
        target.chmod(mode)


def declared(kind: str) -> dict[str, Any]:
    """What is said of such a write."""
    if kind == "mode":
        return {"state": "present", "content": False}
    return {"state": "absent"} if kind == "absent" else {"state": "present", "type": kind}


def tree(root: Path) -> dict[str, tuple[Any, ...]]:
    """All that has to be the same; of a folder the times change with what is in it."""
    found: dict[str, tuple[Any, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder) / name
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                inside: tuple[Any, ...] = (os.readlink(path),)
            elif stat.S_ISREG(status.st_mode):
                inside = (path.read_bytes(), status.st_mtime_ns)
            else:
                inside = ()
            found[str(path.relative_to(root))] = (status.st_mode, status.st_uid, status.st_gid, *inside)
    return found


@contextmanager
def node_of() -> Iterator[tuple[Any, Path]]:
    """A node without programs, and where its tree is."""

    def nothing(argv: list[Any], _timeout_seconds: float = 20) -> tuple[int, str, str]:
        raise Unreadable(f"there is no program {argv[0]!r}")

    with tempfile.TemporaryDirectory(prefix="hal-originals-") as folder:
        root = Path(folder)
        (root / "var" / "lib").mkdir(parents=True)
        (root / "etc").mkdir()
        (root / "proc").mkdir()
        (root / "srv").mkdir()
        (root / "etc" / "machine-id").write_text("0" * 32 + "\n")
        yield Node(root=folder, runner=nothing), root / "srv"


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(PATHS, THERE), max_size=10),
    st.lists(WRITES, min_size=1, max_size=10),
    st.permutations(ROLES),
    st.booleans(),
)
@example(
    [("a", ("directory", 0o700)), ("a/x", ("file", b"theirs", 0o600, 10**18))],
    [("base", "a", "absent", b"", 0o600), ("base", "a/x", "mode", b"", 0o600)],
    ["base", "time"],
    True,
)
def test_any_rollout_is_given_back_in_any_order(
    before: list[tuple[str, Any]], writes: list[tuple[str, str, str, bytes, int]], order: list[str], at_once: bool
) -> None:
    with node_of() as (node, root):
        for path, what in sorted(before, key=lambda one: one[0]):
            make(root, path, what)
        was = tree(root)
        for roles in [ROLES] if at_once else [(role,) for role in ROLES]:  # or one rollout after the other
            mine = [one for one in writes if one[0] in roles]
            resources = [
                {"resource": f"file:/srv/{path}", "declared": declared(kind), "role": role}
                for role, path, kind, _content, _mode in mine
            ]
            keep({"node": "hal05", "resources": resources, "most_mib": 1}, node)
            for _role, path, kind, content, mode in mine:
                write(root, path, kind, content, mode)
        for role in order:
            asked = {"node": "hal05", "role": role}
            done = give_back({**asked, "fingerprint": ask(asked, node)["fingerprint"], "changed_ok": True}, node)
        assert done["left"] == []
        assert tree(root) == was
        assert listed(node) == []
