"""Files as an audit sees them: attributes, content within limits, ACLs, file systems that may hang."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import files as files
from ansible.module_utils.hal_node.audit import look as looking
from ansible.module_utils.hal_node.audit import watch as watch
from ansible.module_utils.hal_node.audit.secrets import keyed

from tests.unit.hal_node.audit.conftest import FakeNode, refused

KEY = b"k" * 32
SHA1, SHA256 = hashlib.sha1(b"text\n").hexdigest(), hashlib.sha256(b"text\n").hexdigest()
CONF = "file:/etc/x"


def attributes(path: Path, key: bytes = KEY, **request: Any) -> dict[str, Any]:
    found = files.file_attributes(os.fsencode(path), {"path": str(path), "reachable": True, **request}, key)
    assert isinstance(found, dict)
    return found


def test_a_file_has_these_attributes(text: Path) -> None:
    status = text.stat()
    plain = {
        **{"state": "present", "type": "file", "mode": "0644", "size": 5, "since": 7, "immutable": False},
        **{"owner": files.user_name(status.st_uid), "group": files.group_name(status.st_gid)},
    }
    assert attributes(text) == {**plain, "sha256": SHA256}
    assert attributes(text, sha1=True) == {
        **{**plain, "sha256": SHA256, "sha1": SHA1, "sha1_keyed": keyed(KEY, SHA1)},
    }
    assert attributes(text, b"", sha1=True) == {**plain, "sha256": SHA256, "sha1": SHA1}
    hashed = {**plain, "keyed": keyed(KEY, "text\n")}
    assert attributes(text, secret=True) == hashed
    assert attributes(text, reachable=False) == hashed
    assert attributes(text, hash="keyed") == hashed
    assert attributes(text, hash="sha256", secret=True) == {**plain, "sha256": SHA256}
    assert attributes(text, b"", secret=True) == {**plain, "unhashed": "the key of its hash is lost"}
    text.chmod(0o4750)
    assert attributes(text) == {**hashed, "mode": "4750"}


def test_content_is_kept_of_small_texts_that_everybody_may_read_and_once(text: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    keep = os.fsencode(kept)
    assert attributes(text, keep=keep)["content"] == "text\n"
    assert "content" not in attributes(text)
    secret = attributes(text, keep=keep, secret=True)
    assert (secret["plain"], "content" in secret) == (SHA256, False)
    (kept / SHA256).touch()
    assert "content" not in attributes(text, keep=keep)
    for content in (b"a\0b", b"\xff"):
        text.write_bytes(content)
        assert "content" not in attributes(text, keep=keep)


def test_limits_of_content_and_of_hashes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = os.fsencode(tmp_path / "kept")
    monkeypatch.setattr(files, "MOST_KEPT", 5)
    assert attributes(text, keep=keep)["content"] == "text\n"
    monkeypatch.setattr(files, "MOST_KEPT", 4)
    assert "content" not in attributes(text, keep=keep)
    monkeypatch.setattr(files, "LARGE", 5)
    assert attributes(text, size=4)["sha256"] == SHA256
    monkeypatch.setattr(files, "LARGE", 4)
    assert attributes(text, size=5)["sha256"] == SHA256
    assert attributes(text)["sha256"] == SHA256
    for size in (4, 6):
        assert not {"sha256", "unhashed"} & set(attributes(text, size=size))
    monkeypatch.setattr(files, "MOST_HASHED", 5)
    assert attributes(text)["sha256"] == SHA256
    monkeypatch.setattr(files, "MOST_HASHED", 4)
    assert attributes(text)["unhashed"] == "larger than 0 MiB: only its size is compared"
    monkeypatch.undo()
    monkeypatch.setattr(files, "HASH_SECONDS", -1)
    late = attributes(text)
    assert late["unhashed"] == "reading it takes more than -1 s: only its size is compared"
    assert "sha256" not in late


def test_the_largest_file_that_is_hashed_has_a_gigabyte() -> None:
    assert (files.MOST_HASHED, files.LARGE, files.MOST_KEPT) == (1024**3, 64 * 1024**2, 64 * 1024)
    assert watch.MOST_FILES == 20000
    assert (looking.MOST_DIFFERENCES, looking.MOST_ITEMS, looking.MOST_DIFFS) == (1000, 200, 100)


def test_links_and_folders_and_what_is_neither(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x\n")
    link = attributes(tmp_path / "link")
    assert (link["type"], link["target"]) == ("link", "x\\x0a")
    assert not {"mode", "immutable", "size"} & set(link)
    (tmp_path / "folder").mkdir(0o750)
    folder = attributes(tmp_path / "folder")
    assert (folder["type"], folder["mode"], folder["immutable"]) == ("directory", "0750", False)
    assert not {"size", "sha256", "target"} & set(folder)
    assert files.kind(0o170000) == "unknown"


def test_a_file_that_is_replaced_while_it_is_read_is_unreadable(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open
    with monkeypatch.context() as busy:

        def swap(path: bytes, flags: int) -> int:
            text.with_name("y").write_text("other")
            text.with_name("y").replace(text)
            return real(path, flags)

        busy.setattr(files.os, "open", swap)
        before = len(os.listdir("/proc/self/fd"))
        assert refused(attributes, text) == (f"{text} was replaced while it was read", "")
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.ENOENT, "absent"), (errno.ENOTDIR, "absent"), (errno.EACCES, "Permission denied")]
)
def test_a_file_that_goes_away_or_may_not_be_opened(
    text: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: str
) -> None:
    def refuse(*_words: Any) -> None:
        raise OSError(number, "x")

    with monkeypatch.context() as closed:
        closed.setattr(files.os, "open", refuse)
        if expected == "absent":
            assert files._caught(os.fsencode(text), {"path": "/x"}, KEY) == {"state": "absent"}
        else:
            assert refused(files._caught, os.fsencode(text), {"path": "/x"}, KEY) == (f"/x: {expected}", "")


def test_a_file_system_without_flags_has_no_immutable_files(monkeypatch: pytest.MonkeyPatch, text: Path) -> None:
    def answer(number: int) -> None:
        def ioctl(*_words: Any) -> None:
            raise OSError(number, "x")

        monkeypatch.setattr(files.fcntl, "ioctl", ioctl)

    for number in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES):
        answer(number)
        assert files.immutable(0) is False
    answer(errno.EIO)
    assert refused(files._caught, os.fsencode(text), {"path": "/x"}, KEY) == ("/x: Input/output error", "")

    def flagged(_handle: int, request: int, flags: Any, change: bool) -> None:
        assert (request, change) == (files.GET_FLAGS, True)
        flags[0] = 0x80010

    monkeypatch.setattr(files.fcntl, "ioctl", flagged)
    assert files.immutable(0) is True


def test_names_of_numbers_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def named(number: int) -> Any:
        asked.append(number)
        if number == 990001:
            raise KeyError
        return SimpleNamespace(pw_name="bob", gr_name="bobs")

    monkeypatch.setattr(files.pwd, "getpwuid", named)
    monkeypatch.setattr(files.grp, "getgrgid", named)
    assert [files.user_name(number) for number in (990001, 990002, 990001, 990002)] == ["990001", "bob"] * 2
    assert [files.group_name(number) for number in (990001, 990002, 990001, 990002)] == ["990001", "bobs"] * 2
    assert asked == [990001, 990002] * 2


def test_each_network_file_system_is_read_by_itself(hal: FakeNode) -> None:
    mounts = "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /a rw - nfs4 s:/ rw\n3 1 0:3 / /a/b rw - fuse.sshfs s rw\n"
    hal.write("/proc/self/mountinfo", mounts + "4 1 0:4 / /c rw - xfs /dev/sdb1 rw\n")
    paths = ["/a/x", "/ab", "/a/b/x", "/c/x", "/a", "/a/b"]
    assert files._by_file_system(paths, hal.node) == [[1, 3], [0, 4], [2, 5]]
    hal.path("/proc/self/mountinfo").unlink()
    assert files._by_file_system(paths, hal.node) == [[0, 1, 2, 3, 4, 5]]
    hal.path("/proc/self/mountinfo").mkdir()
    assert files._by_file_system(paths, hal.node) == [[0, 1, 2, 3, 4, 5]]
    hal.path("/proc/self/mountinfo").rmdir()
    hal.write("/proc/self/mountinfo", "1 1 0:1 / / rw - nfs s:/ rw\n")
    assert files._by_file_system(["/x"], hal.node) == [[0]]


def test_files_are_observed_in_the_order_in_which_they_are_asked_for(hal: FakeNode) -> None:
    hal.write("/proc/self/mountinfo", "1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / /n rw - nfs s:/ rw\n")
    paths = ["/n/a", "/b", "/n/c", "/d"]
    for number, path in enumerate(paths):
        hal.write(path, "x" * number)
    found = files.observe_files([{"path": path} for path in paths], hal.node, KEY)
    assert [one.value["size"] for one in found] == [0, 1, 2, 3]


def test_acls_are_asked_for_in_portions(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ACL_WORDS", 2)
    out = "# file: {0}\nuser::rw-\nuser:a:r--\nmask::r--\nother::r--\n\n# file: /other\nuser:b:r--\n\n"
    hal.programs["getfacl"] = lambda words: (1, "".join(out.format(path) for path in words[4:]), "")
    assert files.read_acls(["/c", "/a", "/b"], hal.node) == {
        name: ["mask::r--", "user:a:r--"] for name in ("/a", "/b", "/c")
    }
    words = ["getfacl", "--absolute-names", "--no-effective", "--skip-base", "--"]
    places = [str(hal.path(name)) for name in ("/a", "/b", "/c")]
    assert hal.calls == [[*words, *places[:2]], [*words, places[2]]]
    hal.calls.clear()
    assert files.read_acls([], hal.node) == {}
    assert hal.calls == []
