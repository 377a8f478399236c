"""An archive may be of anybody: whatever is in it, reading it ends, in so much memory, and says what is wrong."""

from __future__ import annotations

import gzip
import io
import resource
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.backup.archives import Member, folders, manifest, write

LARGE = "1099511627776"  # a TB


def refused(programs: Any, path: Path) -> str:
    with pytest.raises(programs.common.Problem) as problem:
        programs.archive.check(str(path))
    said = str(problem.value)
    assert "\n" not in said
    assert said.isprintable(), said
    return said.replace(str(path), "X")


def test_a_right_archive_is_read_with_what_each_member_is(programs: Any, tmp_path: Path) -> None:
    owner = {"uname": "munge", "gname": "ssh_keys", "uid": 5, "gid": 6}
    members = [
        *folders("a/b"),
        Member("a/b/file", content=b"123", mode=0o400, fields=owner),
        Member("a/link", "link", target="b/file", fields={"uid": 7, "gid": 8}),
    ]
    found, entries = programs.archive.check(str(write(tmp_path / "x", members, manifest("a", made=5))))
    digest = "a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3"
    assert (found["node"], found["made"], found["files"]) == ("hal-mgmt1", 5, {"a/b/file": digest})
    root = {"mode": "0755", "user": 0, "group": 0, "size": 0, "type": "folder"}
    assert entries == {
        "a": root,
        "a/b": root,
        "a/b/file": {"mode": "0400", "user": "munge", "group": "ssh_keys", "size": 3, "type": "file", "sha256": digest},
        "a/link": {"mode": "0644", "user": 7, "group": 8, "size": 0, "type": "link", "target": "b/file"},
    }


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([Member("/etc/x")], "X: /etc/x leads out of the archive"),
        ([Member("a/../../x")], "X: a/../../x leads out of the archive"),
        ([Member("..", "link", target="x")], "X: .. leads out of the archive"),
        ([*folders("a"), Member("a/./b")], "X: a/./b is there twice, or under another name"),
        ([*folders("a"), Member("a//b")], "X: a//b is there twice, or under another name"),
        ([Member("./a")], "X: ./a is there twice, or under another name"),
        ([Member("")], "X:  is there twice, or under another name"),
        ([Member("a"), Member("a")], "X: a is there twice, or under another name"),
        ([Member("a", "link", target="b"), Member("a")], "X: a is there twice, or under another name"),
        ([Member("MANIFEST.json", content=b"{}")], "X: MANIFEST.json is there twice, or under another name"),
        ([Member("a", "link", target="/etc"), Member("a/cron.d")], "X: a/cron.d is not in a folder of the archive"),
        ([Member("a/b")], "X: a/b is not in a folder of the archive"),
        ([Member("a"), Member("a/b")], "X: a/b is not in a folder of the archive"),
        (folders("/".join("d" * 202)), "X: " + "d/" * 20 + "... is in more than 200 folders"),
        ([Member("pipe", "pipe")], "X: pipe is not a file, folder or link"),
        ([Member("device", "device")], "X: device is not a file, folder or link"),
        ([Member("odd", "odd")], "X: odd is not a file, folder or link"),
        ([Member("a"), Member("hard", "hard", target="a")], "X: hard is not a file, folder or link"),
        ([Member("\x1b[2Ja\n\u202eb", "pipe")], r"X: \x1b[2Ja\x0a\u202eb is not a file, folder or link"),
    ],
)
def test_a_member_is_a_file_folder_or_link_of_one_normal_name(
    programs: Any, tmp_path: Path, members: list[Member], said: str
) -> None:
    assert refused(programs, write(tmp_path / "x", members, manifest("a"))) == said


@pytest.mark.parametrize(
    "headers",
    [
        {"size": "-512"},
        {"mtime": "nan"},
        {"mtime": "inf"},
        {"mtime": "1e30"},
        {"uid": "4294967295"},
        {"gid": "-1"},
        {"uid": "9" * 30},
    ],
    ids=str,
)
def test_a_number_is_one_that_a_file_can_have(programs: Any, tmp_path: Path, headers: dict[str, str]) -> None:
    """A negative size would have tarfile read the same member again, for ever (CVE-2025-8194)."""
    path = write(tmp_path / "x", [Member("a", fields={"pax_headers": headers})], manifest("a"))
    assert refused(programs, path) == "X: a has a size, time or owner that no file has"


def test_owners_of_nfs_are_no_fault(programs: Any, tmp_path: Path) -> None:
    """nfsnobody of CentOS 7; and a file of before 1970."""
    fields = {"uid": 4294967294, "gid": 4294967294, "mtime": -1000}
    _, entries = programs.archive.check(str(write(tmp_path / "x", [Member("a", fields=fields)], manifest("a"))))
    assert (entries["a"]["user"], entries["a"]["group"]) == (4294967294, 4294967294)


@pytest.mark.parametrize("field", ["path", "uname", "gname", "linkpath"])
def test_no_name_has_an_end_in_its_middle(programs: Any, tmp_path: Path, field: str) -> None:
    """C would see another name than Python."""
    member = Member("a", "link", target="b", fields={"pax_headers": {field: "a\0b"}})
    said = refused(programs, write(tmp_path / "x", [member], manifest("a")))
    name = r"a\x00b" if field == "path" else "a"
    assert said == f"X: {name}, its owner or its target is not a name"


def test_a_file_with_holes_is_refused_before_it_is_read(programs: Any, tmp_path: Path) -> None:
    """A header of some bytes is then a file of a TB."""
    holes = {"GNU.sparse.map": "0,1", "GNU.sparse.size": LARGE, "GNU.sparse.name": "a"}
    path = write(tmp_path / "x", [Member("a", content=b"1", fields={"pax_headers": holes})], manifest("a"))
    assert refused(programs, path) == "X: a is not a file, folder or link"


def test_no_more_is_read_than_the_limit(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb: 8 MB that are 8 kB; the size in the header counts, before a byte of it is read."""
    path = write(tmp_path / "x", [*folders("a"), Member("a/b", content=bytes(8 * 1024**2))], manifest("a"))
    assert path.stat().st_size < 20000
    programs.archive.check(str(path))
    monkeypatch.setattr(programs.archive, "MOST_MEGABYTES", 7)
    read: list[Any] = []
    monkeypatch.setattr(programs.archive, "sha256_of_rest", read.append)
    assert refused(programs, path) == "X has more than 1000000 files, or 7 MB of them"
    assert read == []


def test_no_more_files_are_read_than_the_limit(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x", [Member(str(number)) for number in range(5)], manifest("a"))
    programs.archive.check(str(path))
    monkeypatch.setattr(programs.archive, "MOST_ENTRIES", 4)
    assert refused(programs, path) == "X has more than 4 files, or 262144 MB of them"


def test_no_more_memory_is_taken_than_the_limit(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header of 512 MB, packed to 500 kB; and the limit is off again afterwards."""
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 512 * 1024**2
    with gzip.open(tmp_path / "x", "wb") as target:
        target.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(512):
            target.write(bytes(1024**2))
    monkeypatch.setattr(programs.archive, "MEMORY_MB", 128)
    before = resource.getrlimit(resource.RLIMIT_AS)
    assert refused(programs, tmp_path / "x") == "X is not a backup: to read it takes more than 128 MB"
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "X is not a backup: it has no MANIFEST.json"),
        (b"{", "X is damaged: Expecting property name enclosed"),
        (b"\xff", "X is damaged: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 100000, "X is damaged: "),
        (b'{"format": ' + b"1" * 100000 + b"}", "X is damaged: a number of 100000 digits"),
        (b"[]", "X has format None; this version reads 1"),
        (b'{"format": 2}', "X has format 2; this version reads 1"),
        (b'{"format": "\\u001b[2J\\ud800"}', r"X has format \x1b[2J?; this version reads 1"),
        (b"{}", "X has format None; this version reads 1"),
    ],
)
def test_a_manifest_is_json_of_this_format(programs: Any, tmp_path: Path, content: bytes | None, said: str) -> None:
    assert refused(programs, write(tmp_path / "x", [], content)).startswith(said)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"site": None}, "site"),
        ({"site": ["hal"]}, "site"),
        ({"node": 5}, "node"),
        ({"made": None}, "made"),
        ({"made": True}, "made"),
        ({"made": "1000"}, "made"),
        ({"made": -1}, "made"),
        ({"made": 2**62}, "made"),
        ({"made": 1e9}, "made"),
        ({"files": []}, "files"),
        ({"files": {"a": None}}, "files"),
        ({"sources": {}}, "sources"),
        ({"sources": []}, "sources"),
        ({"sources": [1]}, "sources"),
        ({"sources": [{"kind": "files"}]}, "sources"),
        ({"sources": [{"name": ["a"]}]}, "sources"),
        ({"sources": [{"name": "a"}, {"name": "a"}]}, "sources"),
    ],
    ids=str,
)
def test_each_fact_of_a_manifest_is_what_it_should_be(
    programs: Any, tmp_path: Path, given: dict[str, Any], named: str
) -> None:
    said = refused(programs, write(tmp_path / "x", [], manifest("a", **given)))
    assert said == f"X is not a backup: {named} of its manifest is missing, or of another kind"


def test_what_the_manifest_does_not_say_is_damage(programs: Any, tmp_path: Path) -> None:
    for files in ({}, {"a": "0" * 64}, {"a": "0" * 64, "b": "0" * 64}):
        path = write(tmp_path / "x", [Member("a", content=b"1")], manifest("a", files=files))
        assert refused(programs, path) == "X is damaged: a is not what the manifest says"


@pytest.mark.parametrize("length", [0, 5, 40, 100, -60])
def test_what_was_cut_off_is_damage(programs: Any, tmp_path: Path, length: int) -> None:
    path = write(tmp_path / "x", [Member("a", content=bytes(range(256)) * 50)], manifest("a"))
    path.write_bytes(path.read_bytes()[:length])
    assert refused(programs, path).startswith(("X is damaged: ", "X is not a backup: "))


def test_what_is_no_tar_file_is_damage(programs: Any, tmp_path: Path) -> None:
    for content in (b"", b"no archive", gzip.compress(b"no archive"), gzip.compress(b"\0" * 1024) + b"rest"):
        (tmp_path / "x").write_bytes(content)
        assert refused(programs, tmp_path / "x").startswith(("X is damaged: ", "X is not a backup: "))


def test_headers_without_end_end(programs: Any, tmp_path: Path) -> None:
    """Each says of the next one that it has a long name."""
    packed = io.BytesIO()
    member = tarfile.TarInfo("x")
    member.type = tarfile.GNUTYPE_LONGNAME
    with gzip.open(packed, "wb") as target:
        target.write(member.tobuf(tarfile.GNU_FORMAT) * 20000)
    (tmp_path / "x").write_bytes(packed.getvalue())
    assert refused(programs, tmp_path / "x").startswith("X is damaged: ")
