"""The node itself, watched folders, and what a look at all of it says."""

from __future__ import annotations

import errno
import os
import re
import resource
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import look as looking
from ansible.module_utils.hal_node.audit import node as nodes
from ansible.module_utils.hal_node.audit import watch as watch
from ansible.module_utils.hal_node.audit.node import Node, as_bytes, everybody_reads, folders_open, small_file
from ansible.module_utils.hal_node.expect.values import Unreadable

from tests.unit.hal_node.audit.conftest import FakeNode, entry, kinds, refused

CONF = "file:/etc/x"


def test_names_and_paths_of_a_node(tmp_path: Path) -> None:
    node = Node(root=f"{tmp_path}/")
    assert node.path("/etc/größe") == os.fsencode(tmp_path) + "/etc/größe".encode()
    assert node.state() == os.fsencode(tmp_path) + b"/var/lib/hal"
    assert node.state("x") == os.fsencode(tmp_path) + b"/var/lib/hal/x"
    assert Node().path("/x") == b"/x"
    assert as_bytes(b"x") == b"x"
    assert nodes.shown_name("a\x1f\x20\x7e\x7f\x80") == "a\\x1f ~\\x7f\x80"
    assert nodes.from_iso(None) is None


def test_programs_get_their_words_as_bytes_and_twenty_seconds() -> None:
    asked: list[Any] = []
    node = Node(root="/", runner=lambda argv, timeout: asked.append((argv, timeout)))
    node.run(["a", "ü", b"x"])
    node.run(["a"], 5)
    assert asked == [(["a", "ü".encode(), b"x"], 20), (["a"], 5)]


def test_a_text_of_a_node_is_small_and_a_file(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.write("/x", "abc")
    monkeypatch.setattr(nodes, "MOST_TEXT", 3)
    assert hal.node.text("/x") == "abc"
    monkeypatch.setattr(nodes, "MOST_TEXT", 2)
    assert refused(hal.node.text, "/x") == ("/x is not a regular file of at most 2 bytes", "")
    assert hal.node.text("/none") is None
    assert hal.node.text("/x/none") is None
    hal.path("/loop").symlink_to("loop")
    assert refused(hal.node.text, "/loop") == ("/loop: Too many levels of symbolic links", "")
    hal.path("/etc/machine-id").unlink()
    assert hal.node.machine_id() == ""
    hal.path("/etc/machine-id").mkdir()
    assert hal.node.machine_id() == ""


def test_no_small_file_stays_open(text: Path, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert small_file(os.fsencode(text), 5) == b"text\n"
    assert small_file(os.fsencode(text), 4) is None
    assert small_file(os.fsencode(tmp_path), 4) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_everybody_reads_what_is_open_on_the_whole_way(hal: FakeNode) -> None:
    hal.write("/a/b/x", "")
    hal.path("/link").symlink_to("a/b")
    assert everybody_reads("/a/b/x", hal.node) is True
    assert everybody_reads("/link/x", hal.node) is True
    assert everybody_reads("/a/b/none", hal.node) is False
    hal.path("/a/b/x").chmod(0o640)
    assert everybody_reads("/a/b/x", hal.node) is False
    assert folders_open("/a/b/x", hal.node) is True
    hal.path("/a").chmod(0o750)
    assert folders_open("/a/b/x", hal.node) is False
    assert folders_open("/link/x", hal.node) is False
    assert folders_open("/none/x", hal.node) is False


def test_the_paths_that_a_record_knows() -> None:
    one = {"declared": {"masked": True}}
    entries = [
        *({"resource": name} for name in ("file:/a", "line:/b#1", "repository:/c#x", "service:no.service", "group:x")),
        {"resource": "service:m.service", **one},
        {"resource": "service:n.service", "declared": {"masked": False}},
    ]
    assert watch.recorded_paths(entries) == {"/a", "/b", "/c", "/etc/systemd/system/m.service"}


def extra(hal: FakeNode, *watched: dict[str, Any], recorded: Any = ()) -> Any:
    return watch.look_for_extra(list(watched), set(recorded), hal.node)


def test_what_is_extra_in_a_folder_and_below_it(hal: FakeNode) -> None:
    for name in ("a.repo", "b.repo", "sub/c.repo", "sub/deep/d.repo", "x.txt"):
        hal.write(f"/w/{name}", "")
    one = {"path": "/w", "names": ["x.*", "*.repo"], "accepted": ["/other", "/w/b.*"], "what": "things"}
    found, looked, problems = extra(hal, one, recorded=["/w/a.repo"])
    when = int(hal.path("/w/x.txt").stat().st_ctime)
    assert found == [{"path": "/w/x.txt", "what": "things", "type": "file", "note": "", "when": when}]
    assert (looked, problems) == (3, [])
    found, looked, problems = extra(hal, {**one, "path": "/w/**"}, {"path": "/w"})
    assert [(each["path"], each["what"]) for each in found] == [
        *[("/w/a.repo", "things"), ("/w/sub/c.repo", "things"), ("/w/sub/deep/d.repo", "things")],
        ("/w/x.txt", "things"),
    ]
    assert (looked, problems) == (5, [])
    found, looked, problems = extra(hal, {"path": "/w/s*"})
    when = int(hal.path("/w/sub/c.repo").stat().st_ctime)
    assert found == [{"path": "/w/sub/c.repo", "what": "", "type": "file", "note": "", "when": when}]


def test_a_folder_that_cannot_be_listed_is_a_problem_and_one_that_is_not_there_is_none(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    hal.write("/w/a", "")
    real = os.listdir
    with monkeypatch.context() as closed:

        def refuse(path: Any) -> list[Any]:
            if path == os.fsencode(hal.path("/w")):
                raise OSError(errno.EACCES, "x")
            return real(path)

        closed.setattr(watch.os, "listdir", refuse)
        assert extra(hal, {"path": "/w"}, {"path": "/none"}, {"path": "/w/a"}) == ([], 0, ["/w: Permission denied"])


def test_a_file_that_goes_away_meanwhile_leaves_the_others(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        hal.write(f"/w/{name}", "")
    real = os.lstat
    with monkeypatch.context() as busy:

        def gone(path: Any, **more: Any) -> Any:
            if path == os.fsencode(hal.path("/w/b")):
                raise OSError(errno.ENOENT, "x")
            return real(path, **more)

        busy.setattr(watch.os, "lstat", gone)
        found, looked, problems = extra(hal, {"path": "/w"})
    assert ([one["path"] for one in found], looked, problems) == (["/w/a", "/w/c"], 2, [])


def test_a_folder_with_too_many_files_is_said(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        hal.write(f"/w/{name}", "")
    monkeypatch.setattr(watch, "MOST_FILES", 3)
    assert extra(hal, {"path": "/w/**"})[1:] == (3, [])
    monkeypatch.setattr(watch, "MOST_FILES", 2)
    hal.write("/w/sub/d", "")
    found, looked, problems = extra(hal, {"path": "/w/**"})
    assert problems == ["/w/**: more than 2 files; not all were looked at"]
    assert (looked, len(found)) == (3, 3)


def test_files_of_packages_are_not_extra_and_without_rpm_nothing_is(hal: FakeNode) -> None:
    for name in ("mine", "packaged"):
        hal.write(f"/w/{name}", "")
    Path(os.fsdecode(os.fsencode(hal.path("/w")) + b"/\xff")).touch()
    hal.owned.add("/w/packaged")
    found, looked, problems = extra(hal, {"path": "/w"})
    assert [(one["path"], one["note"]) for one in found] == [
        ("/w/\\xff", "its name is not UTF-8, or has control characters"),
        ("/w/mine", ""),
    ]
    hal.missing.add("rpm")
    found, looked, problems = extra(hal, {"path": "/w"})
    words = "whose files 3 in watched folders are is not known: there is no program rpm"
    assert (found, looked, problems) == ([], 3, [words])


def test_a_watched_folder_that_cannot_be_read_leaves_the_others(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.write("/w/a", "")

    def broken(one: dict[str, Any], node: Any) -> Any:
        if one["path"] == "/v":
            raise Unreadable("odd")
        return real(one, node)

    real = watch._files
    monkeypatch.setattr(watch, "_files", broken)
    found, looked, problems = extra(hal, {"path": "/v"}, {"path": "/w"})
    assert ([one["path"] for one in found], looked, problems) == (["/w/a"], 1, ["/v: odd"])


def diff(hal: FakeNode, before: bytes, after: bytes) -> Any:
    hal.write("/etc/x", before)
    hal.seal(entry(CONF))
    hal.write("/etc/x", after)
    (difference,) = hal.look()["differences"]
    return difference.get("diff")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\n", b"a", ["only the ends of lines differ"]),
        (b"a\n", b"\xff\n", None),
        (b"a\n", b"b\0\n", None),
        (b"a\n", b"b" * 300 + b"\n", ["--- recorded", "+++ now", "@@ -1 +1 @@", "-a", "+" + "b" * 299 + "..."]),
        (b"a\n", b"b" * 299 + b"\n", ["--- recorded", "+++ now", "@@ -1 +1 @@", "-a", "+" + "b" * 299]),
        (b"a\n", b"\x1b[1m\n", ["--- recorded", "+++ now", "@@ -1 +1 @@", "-a", "+\\x1b[1m"]),
        (
            b"1\n2\n3\n4\n",
            b"1\n2\n3\n5\n",
            ["--- recorded", "+++ now", "@@ -3,2 +3,2 @@", " 3", "-4", "+5"],
        ),
    ],
)
def test_a_diff_shows_what_can_be_shown(hal: FakeNode, before: bytes, after: bytes, expected: Any) -> None:
    assert diff(hal, before, after) == expected


def test_forty_lines_of_a_diff_are_shown_whole(hal: FakeNode) -> None:
    shown = diff(hal, b"x\n", b"".join(b"%d\n" % number for number in range(36)))
    assert (len(shown), shown[-1]) == (40, "+35")
    shown = diff(hal, b"x\n", b"".join(b"%d\n" % number for number in range(37)))
    assert (len(shown), shown[-2:]) == (40, ["+34", "... 2 more lines"])


def test_a_diff_is_of_changed_files_that_are_no_links_and_no_secrets(hal: FakeNode) -> None:
    hal.write("/etc/y", "a\n")
    assert diff(hal, b"a\n", b"b\n") is not None
    hal.path("/etc/x").chmod(0o600)
    assert kinds(hal.look()) == [(CONF, "changed", "sha256"), (CONF, "mode", "mode")]
    assert not any("diff" in one for one in hal.look()["differences"])
    hal.path("/etc/x").unlink()
    hal.path("/etc/x").symlink_to("y")
    assert not any("diff" in one for one in hal.look()["differences"])


def test_units_that_cannot_be_asked_are_one_problem(hal: FakeNode) -> None:
    hal.write("/etc/x", "a")
    hal.seal(entry(CONF, units=["a.service", "b.service"]))
    hal.missing.add("systemctl")
    words = "whether units run with their files is not known: there is no program systemctl"
    assert hal.look()["problems"] == [words]
    hal.seal(entry("file:/etc/y"))
    assert hal.look(roles=["none"])["problems"] == []


def test_packages_that_were_not_recorded_are_not_compared(hal: FakeNode) -> None:
    hal.missing.add("rpm")
    assert hal.seal(entry("hostname:static"))["problems"] == ["packages are not recorded: there is no program rpm"]
    hal.missing.clear()
    assert hal.look()["packages"] == {"extra": [], "unknown": "packages were not recorded"}


def test_long_values_and_lists_are_cut_and_that_is_said(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_ITEMS", 2)
    lines = {"state": "present", "lines": ["a", "b", "c"]}
    hal.write("/etc/x", "")
    hal.seal(entry("line:/etc/x#1", declared=lines), entry("line:/etc/x#2", declared={**lines, "lines": ["a", "b"]}))
    for number in range(3):
        hal.packages[f"p{number}"] = ("(none)", "1", "1", "x", int(hal.now) + 5)
        hal.write(f"/w/{number}", "")
    answer = hal.look(watched=[{"path": "/w"}])
    assert [one["should"] for one in answer["differences"]] == [["a", "b", "... 1 more"], ["a", "b"]]
    assert [len(answer["extra"]), len(answer["packages"]["extra"])] == [2, 2]
    assert answer["more"] == {
        "differences": 0,
        "extra": 1,
        "packages": 1,
        "planned": 0,
        "unmanaged": 0,
        "package_files": 0,
    }
    assert answer["counts"] == {"resources": 2, "questions": 0, "watched_files": 3, "unmanaged_files": 0}


def test_a_look_says_what_it_cost(hal: FakeNode) -> None:
    answer = hal.look()
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    assert 1 < answer["memory_mb"] <= round(most / 1024.0, 1)  # no limit: the kernel's own peak in KiB, read later
    assert all(re.fullmatch(r"\d+\.\d{1,3}", str(answer[name])) for name in ("seconds", "cpu_seconds", "memory_mb"))
