"""The record as bytes: what is one, what is refused and why, and how it gets onto the disk."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import record as records
from ansible.module_utils.hal_node.audit.seal import SealError

from tests.unit.hal_node.audit.conftest import FakeNode, entry

RECORD: dict[str, Any] = {
    **{"format": 1, "node": "hal05", "machine_id": "0123456789abcdef", "sealed_at": "2026-11-21T04:00:00Z"},
    **{"run": "r", "commit": "abc1234", "serial": 3, "packages": {}, "effective": {}, "roles": {}, "entries": []},
}
FOLDER = "/var/lib/hal"


def judged(**more: Any) -> str:
    """Why a record is refused, with its status; nothing for one that is taken."""
    try:
        record = records.judge(json.dumps({**RECORD, **more}).encode(), "hal05", "0123456789abcdef")
    except records.RecordError as error:
        return f"{error.status}: {error.reason}"
    assert record == {**RECORD, **more}
    return ""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"format": True}, "corrupt: JSON, but no record: it has no format"),
        ({"format": 0.5}, ""),
        ({"format": 1.5}, "newer: format 1.5; this version knows up to 1"),
        *(({name: None}, f'corrupt: "{name}" is not text') for name in ("node", "machine_id", "sealed_at", "run")),
        ({"commit": 5}, 'corrupt: "commit" is not text'),
        ({"serial": True}, 'corrupt: "serial" is not a number'),
        *(({name: []}, f'corrupt: "{name}" is not a mapping') for name in ("packages", "effective", "roles")),
        ({"packages": {"explained": {"a": "1"}}}, ""),
        ({"packages": {"explained": {"a": "1", "b": 1}}}, 'corrupt: "packages.explained" is not a mapping of texts'),
        ({"packages": {"explained": ["a"]}}, 'corrupt: "packages.explained" is not a mapping of texts'),
        ({"effective": {"a": 1, "b": 1.5}}, ""),
        ({"effective": {"a": 1, "b": True}}, 'corrupt: "effective" has what is not a number'),
        ({"roles": {"a": {}, "b": []}}, 'corrupt: "roles" has what is not a mapping'),
        ({"entries": [{"resource": "package:a"}, {}]}, 'corrupt: entry 2: "resource" is not kind:name'),
        (
            {"machine_id": ""},
            "foreign: it is of another machine or installation of this name (machine-id none, here 01234567)",
        ),
    ],
)
def test_a_record_is_refused_with_what_is_wrong_in_it(more: dict[str, Any], words: str) -> None:
    assert judged(**more) == words


def test_a_node_without_a_machine_id_is_another() -> None:
    with pytest.raises(records.RecordError, match=r"\(machine-id 01234567, here none\)$"):
        records.judge(json.dumps(RECORD).encode(), "hal05", "")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"resource": "package:"}, '"resource" is not kind:name'),
        ({"resource": ":a"}, '"resource" is not kind:name'),
        ({"resource": 5}, '"resource" is not kind:name'),
        ({"resource": "line:/a#1"}, ""),
        ({"resource": "line:a#1"}, '"resource" has no absolute path'),
        ({"resource": "file:a"}, '"resource" has no absolute path'),
        *(({name: []}, f'"{name}" is not a mapping') for name in ("declared", "observed", "orphaned")),
        *(
            ({name: 5}, f'"{name}" is not text')
            for name in ("role", "task", "source", "commit", "converged_at", "inputs_hash", "unreadable", "key_id")
        ),
        ({"changed": False}, ""),
        ({"changed": 1}, '"changed" is neither true nor false'),
        ({"units": ["a.service"]}, ""),
        ({"units": "a.service"}, '"units" is not a list of texts'),
        ({"units": ["a.service", 1]}, '"units" is not a list of texts'),
        *(
            ({"declared": {name: value}}, f'"declared.{name}" is not a list of texts')
            for name in ("lines", "lines_keyed", "version", "acl")
            for value in ("a", ["a", 1])
        ),
        *(
            ({"declared": {name: 1}}, f'"declared.{name}" is not text')
            for name in ("block", "regexp", "file", "sha1", "state", "socket")
        ),
        ({"observed_since": 1.5}, ""),
        ({"observed_since": "1"}, '"observed_since" is not a number'),
        ({"observed_since": True}, '"observed_since" is not a number'),
    ],
)
def test_an_entry_is_refused_with_what_is_wrong_in_it(more: dict[str, Any], words: str) -> None:
    assert records.entry_wrong({"resource": "package:a", **more}) == words


def test_what_was_packed_comes_back() -> None:
    content = records.to_bytes({"b": "ü", "a": 1})
    assert content == b'{"a":1,"b":"\\u00fc"}'
    assert records.unpack(records.pack(content)) == content


@pytest.mark.parametrize("packed", [5, None, "A", base64.b64encode(b"no zlib").decode()])
def test_what_is_not_packed_is_refused(packed: Any) -> None:
    with pytest.raises(records.RecordError) as error:
        records.unpack(packed)
    assert (error.value.status, error.value.reason) == ("corrupt", "it cannot be unpacked")


def test_a_copy_may_be_as_large_as_a_record_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_RECORD", 500)
    assert records.unpack(records.pack(b"a" * 499)) == b"a" * 499
    packed = zlib.compress(b"a" * 1000)
    with pytest.raises(records.RecordError) as error:
        records.unpack(base64.b64encode(packed).decode())
    assert (error.value.status, error.value.reason) == ("corrupt", "larger than 500 bytes")
    refused = 0
    for length in range(len(packed)):
        if len(zlib.decompressobj().decompress(packed[:length])) <= 500:
            continue
        refused += 1
        with pytest.raises(records.RecordError):  # whatever of it is there
            records.unpack(base64.b64encode(packed[:length]).decode())
    assert refused > 5


def test_a_record_that_is_too_large_is_not_read(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.seal(entry("hostname:static"))
    monkeypatch.setattr(records, "MOST_RECORD", len(hal.record()))
    assert hal.look()["record"]["status"] == "ok"
    monkeypatch.setattr(records, "MOST_RECORD", len(hal.record()) - 1)
    most = records.MOST_RECORD
    record = hal.look()["record"]
    assert (record["status"], record["reason"]) == ("corrupt", f"not a regular file of at most {most} bytes")


def test_a_record_that_would_be_too_large_is_not_written(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.seal(entry("hostname:static"))
    before = hal.record()
    monkeypatch.setattr(records, "MOST_RECORD", len(before) + 5)  # it gets longer by another name
    with pytest.raises(SealError) as error:
        hal.seal(entry("hostname:static"), entry("sysctl:vm.swappiness"))
    words = rf"the record would have \d+ bytes, and {len(before) + 5} at the most; the old one is as it was"
    assert re.fullmatch(words, str(error.value))
    assert hal.record() == before


def test_a_record_that_cannot_be_read_is_corrupt_and_not_none(hal: FakeNode) -> None:
    path = hal.path(f"{FOLDER}/record.json")
    path.parent.mkdir(parents=True)
    path.symlink_to(path.name)
    record = hal.look()["record"]
    assert (record["status"], record["reason"]) == ("corrupt", "it cannot be read: Too many levels of symbolic links")
    path.parent.rename(hal.path("/moved"))
    path.parent.write_text("")
    record = hal.look()["record"]
    assert (record["status"], record["reason"]) == ("none", "there is no record on the node")


def test_what_is_said_of_a_record_is_that_of_the_one_that_is_used(hal: FakeNode) -> None:
    sealed = hal.seal(entry("hostname:static"), roles={"time": {"inputs_hash": "1", "tasks": []}})
    record = hal.look(record=sealed["record"])["record"]
    written = json.loads(hal.record())
    assert record == {
        **{"status": "ok", "reason": "", "used": "own", "serial": 1, "digest": sealed["digest"], "problem": ""},
        **{name: written[name] for name in ("sealed_at", "commit", "roles")},
    }
    hal.path(f"{FOLDER}/record.json").unlink()
    again = hal.look(record=sealed["record"])["record"]
    assert again == {**record, "status": "none", "reason": "there is no record on the node", "used": "copy"}
    assert hal.look(record="x")["record"] == {
        **{"status": "none", "used": "none", "serial": 0, "digest": "", "sealed_at": "", "commit": "", "roles": {}},
        "problem": "",
        "reason": "there is no record on the node; the copy of the controller is corrupt: it cannot be unpacked",
    }


def test_a_copy_of_the_same_number_has_to_be_the_same(hal: FakeNode) -> None:
    sealed = hal.seal(entry("hostname:static"))
    other = records.pack(records.to_bytes({**json.loads(hal.record()), "run": "another"}))
    record = hal.look(record=other)["record"]
    assert (record["status"], record["used"]) == ("differs", "copy")
    assert record["reason"] == "it is not what was sealed as number 1"
    assert record["digest"] != sealed["digest"]


def test_the_first_seal_makes_folders_for_root_alone_whatever_the_umask(hal: FakeNode) -> None:
    old = os.umask(0)
    try:
        hal.seal(entry("hostname:static"))
    finally:
        os.umask(old)
    made = [hal.path(FOLDER), *sorted(hal.path(FOLDER).rglob("*"))]
    assert [(str(path.relative_to(hal.path(FOLDER))), stat.S_IMODE(path.stat().st_mode)) for path in made] == [
        (".", 0o700),
        ("content", 0o700),
        ("record.json", 0o600),
        ("record.key", 0o600),
        ("record.lock", 0o600),
    ]


@pytest.mark.parametrize("name", ["", "record.json", "record.key", "content"])
def test_what_is_another_users_becomes_ours_before_a_record_is_written(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    hal.seal(entry("hostname:static"))
    wanted, given, real = os.fsencode(hal.path(FOLDER) / name), [], os.stat

    class Other:
        st_uid, st_mode = 4711, real(wanted).st_mode

    with monkeypatch.context() as other:
        other.setattr(records.os, "stat", lambda path, **more: Other() if path == wanted else real(path, **more))
        other.setattr(records.os, "chown", lambda *words: given.append(words))
        records.prepare(hal.node)
    assert given == [(wanted, os.geteuid(), os.getegid())]


def test_a_mode_that_is_stricter_is_left_and_not_complained_of(hal: FakeNode) -> None:
    hal.seal(entry("hostname:static"))
    hal.path(f"{FOLDER}/record.key").chmod(0o400)
    assert records.exposed(hal.node) == ""
    records.prepare(hal.node)
    assert stat.S_IMODE(hal.path(f"{FOLDER}/record.key").stat().st_mode) == 0o400


def test_the_first_thing_that_is_exposed_is_said_by_its_path(hal: FakeNode) -> None:
    hal.seal(entry("hostname:static"))
    hal.path(f"{FOLDER}/content").chmod(0o2750)
    assert records.exposed(hal.node) == f"{hal.path(FOLDER)}/content has mode 2750, it should have 0700"
    records.prepare(hal.node)
    assert stat.S_IMODE(hal.path(f"{FOLDER}/content").stat().st_mode) == 0o700
    assert records.exposed(hal.node) == ""


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_length_is_not_used(hal: FakeNode, size: int) -> None:
    path = hal.write(f"{FOLDER}/record.key", b"k" * size, 0o600)
    key, lost = records.ensure_key(hal.node)
    assert (len(key), path.read_bytes()) == (32, key)
    assert lost == ("not usable" if size else "gone")
    assert records.ensure_key(hal.node) == (key, "")


def test_a_lock_that_cannot_be_opened_or_taken_is_said(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.path(f"{FOLDER}/record.lock").mkdir(parents=True)
    lock = re.escape(str(hal.path(f"{FOLDER}/record.lock")))
    with pytest.raises(SealError, match=rf"^{lock} cannot be opened: Is a directory$"):
        hal.seal(entry("hostname:static"))
    hal.path(f"{FOLDER}/record.lock").rmdir()
    hal.path(f"{FOLDER}/record.lock").symlink_to("gone")
    with pytest.raises(SealError, match=rf"^{lock} cannot be opened: Too many levels of symbolic links$"):
        hal.seal(entry("hostname:static"))
    hal.path(f"{FOLDER}/record.lock").unlink()

    def refuse(*_words: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(records.fcntl, "flock", refuse)
    with pytest.raises(SealError, match=r"^the record cannot be locked: No locks available$"):
        hal.seal(entry("hostname:static"))


def test_a_lock_is_let_go_of_whatever_happened(hal: FakeNode) -> None:
    records.prepare(hal.node)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        with pytest.raises(KeyError), records.locked(hal.node, 0):
            raise KeyError
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_written_in_pieces_if_the_disk_takes_it_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    with monkeypatch.context() as slow:
        slow.setattr(records.os, "write", lambda handle, content: real(handle, content[:7]))
        records.replace(os.fsencode(tmp_path / "x"), b"0123456789" * 5)
    assert (tmp_path / "x").read_bytes() == b"0123456789" * 5
    assert os.listdir(tmp_path) == ["x"]


def test_a_record_is_on_the_disk_before_it_has_its_name_and_then_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, os.rename

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(one: bytes, other: bytes) -> None:
        done.append("name")
        assert stat.S_IMODE(os.stat(one).st_mode) == 0o600
        rename(one, other)

    monkeypatch.setattr(records.os, "fsync", synced)
    monkeypatch.setattr(records.os, "rename", renamed)
    before = len(os.listdir("/proc/self/fd"))
    records.replace(os.fsencode(tmp_path / "x"), b"a")
    assert done == ["file", "name", "folder"]
    done.clear()
    records.replace(os.fsencode(tmp_path / "x"), b"b", durable=False)
    assert done == ["name"]
    assert (tmp_path / "x").read_bytes() == b"b"
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_somebody_else_is_writing_is_not_overwritten(tmp_path: Path) -> None:
    other = tmp_path / f"x.new-{os.getpid()}"
    other.mkdir()
    with pytest.raises(FileExistsError):
        records.replace(os.fsencode(tmp_path / "x"), b"a")
    assert sorted(os.listdir(tmp_path)) == [other.name]


def test_contents_that_nobody_wants_any_more_go_and_the_others_stay(hal: FakeNode) -> None:
    records.prepare(hal.node)
    for name in ("a", "b", "c.new-7"):
        hal.write(f"{FOLDER}/content/{name}", "x", 0o600)
    hal.write(f"{FOLDER}/other.new-8", "x", 0o600)
    records.write(hal.node, b"{}", {"d": b"text"}, {"a", "d"})
    assert sorted(os.listdir(hal.path(f"{FOLDER}/content"))) == ["a", "d"]
    assert hal.path(f"{FOLDER}/content/d").read_bytes() == b"text"
    assert sorted(os.listdir(hal.path(FOLDER))) == ["content", "record.json"]


def test_contents_that_cannot_be_removed_do_no_harm(hal: FakeNode) -> None:
    records.prepare(hal.node)
    hal.path(f"{FOLDER}/content/a").mkdir()
    records.write(hal.node, b"{}", {}, set())
    assert hal.record() == b"{}"


def test_records_that_are_put_aside_do_not_overwrite_one_another(hal: FakeNode) -> None:
    names = []
    for number in range(3):
        hal.write(f"{FOLDER}/record.json", str(number), 0o600)
        names.append(records.put_aside(hal.node, 7.9))
    assert names == ["record.json.bad-7", "record.json.bad-7-2", "record.json.bad-7-3"]
    assert [hal.path(f"{FOLDER}/{name}").read_text() for name in names] == ["0", "1", "2"]
    assert sorted(os.listdir(hal.path(FOLDER))) == names
    with pytest.raises(
        records.WriteError, match=r"^the unusable record cannot be put aside: No such file or directory$"
    ):
        records.put_aside(hal.node, 7.9)


def test_an_error_without_a_number_is_said_in_its_own_words(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(*_words: Any) -> None:
        raise OSError("odd")

    with monkeypatch.context() as broken:
        broken.setattr(records.os, "makedirs", odd)
        with pytest.raises(records.WriteError) as error:
            records.prepare(hal.node)
    assert str(error.value) == f"{hal.path(FOLDER)} cannot be made: odd"


def test_a_folder_that_another_run_makes_meanwhile_is_fine_and_a_file_is_not(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.makedirs

    def late(*words: Any, **more: Any) -> None:
        real(*words, **more)
        real(*words, **more)

    with monkeypatch.context() as busy:
        busy.setattr(records.os, "makedirs", late)
        records.prepare(hal.node)
    assert hal.path(f"{FOLDER}/content").is_dir()
    hal.path(f"{FOLDER}/content").rmdir()
    hal.path(f"{FOLDER}/content").write_text("")
    with pytest.raises(records.WriteError, match="cannot be made: File exists"):
        records.prepare(hal.node)
