"""Whatever is wrong with a record, a disk or a file: one clear line or a finding; no hang, no half-written record."""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import record as records
from ansible.module_utils.hal_node.audit.files import HASH_SECONDS
from ansible.module_utils.hal_node.audit.seal import SealError
from ansible.module_utils.hal_node.expect.process import FILE_TIMEOUT_SECONDS

from tests.unit.hal_node.audit.conftest import FakeNode, entry, kinds

CONF = "file:/etc/chrony.conf"


def sealed(hal: FakeNode) -> bytes:
    hal.write("/etc/chrony.conf", "server a\n")
    hal.seal(entry(CONF))
    return hal.record()


def changed(content: bytes, **more: Any) -> bytes:
    return json.dumps({**json.loads(content), **more}).encode()


@pytest.mark.parametrize(
    ("spoil", "status", "reason"),
    [
        (lambda one: b"", "corrupt", "not JSON: cut off, or overwritten"),
        (lambda one: one[: len(one) // 2], "corrupt", "not JSON: cut off, or overwritten"),
        (lambda one: b"\xff\x00" + one, "corrupt", "not JSON: cut off, or overwritten"),
        (lambda one: b"[" * 100000, "corrupt", "not JSON: cut off, or overwritten"),
        (lambda one: b"[]", "corrupt", "JSON, but no record: it has no format"),
        (lambda one: changed(one, format="1"), "corrupt", "JSON, but no record: it has no format"),
        (lambda one: changed(one, serial=None), "corrupt", '"serial" is not a number'),
        (lambda one: changed(one, entries={}), "corrupt", '"entries" is not a list'),
        (lambda one: changed(one, entries=[1]), "corrupt", "entry 1: not a mapping"),
        (lambda one: changed(one, entries=[{"resource": "x"}]), "corrupt", 'entry 1: "resource" is not kind:name'),
        (
            lambda one: changed(one, entries=[{"resource": "file:x"}]),
            "corrupt",
            'entry 1: "resource" has no absolute path',
        ),
        (lambda one: changed(one, packages={"explained": []}), "corrupt", None),
        (lambda one: changed(one, effective={"a": "b"}), "corrupt", '"effective" has what is not a number'),
        (lambda one: changed(one, roles={"a": 1}), "corrupt", '"roles" has what is not a mapping'),
        (lambda one: changed(one, format=2, entries="other"), "newer", "format 2; this version knows up to 1"),
        (lambda one: changed(one, node="hal06"), "foreign", "it is of hal06"),
        (
            lambda one: changed(one, machine_id="f" * 32),
            "foreign",
            "it is of another machine or installation of this name (machine-id ffffffff, here 01234567)",
        ),
    ],
)
def test_a_record_that_cannot_be_used_is_said_and_the_copy_is_used(
    hal: FakeNode, spoil: Any, status: str, reason: str | None
) -> None:
    good = sealed(hal)
    hal.write("/var/lib/hal/record.json", spoil(good), 0o600)
    alone = hal.look()
    assert (alone["record"]["status"], alone["record"]["used"]) == (status, "none")
    assert reason is None or alone["record"]["reason"] == reason
    assert "\n" not in alone["record"]["reason"]
    assert alone["counts"]["resources"] == 0
    assert alone["packages"]["unknown"] == "there is no record to compare with"
    with_copy = hal.look(record=records.pack(good))
    assert (with_copy["record"]["status"], with_copy["record"]["used"]) == (status, "copy")
    assert with_copy["counts"]["resources"] == 1
    assert with_copy["differences"] == []


def test_no_record_is_said(hal: FakeNode) -> None:
    answer = hal.look()
    assert answer["record"]["status"] == "none"
    assert answer["record"]["reason"] == "there is no record on the node"


@pytest.mark.parametrize("copy", ["x", "AAAA", base64.b64encode(b"no zlib").decode(), "ä"])
def test_a_copy_that_cannot_be_unpacked_is_said_and_the_own_record_is_used(hal: FakeNode, copy: str) -> None:
    sealed(hal)
    record = hal.look(record=copy)["record"]
    assert record["used"] == "own"
    assert record["reason"].startswith("the copy of the controller is corrupt: ")


def test_a_cut_off_copy_is_said(hal: FakeNode) -> None:
    packed = records.pack(sealed(hal))
    for length in range(0, len(packed), 40):
        assert hal.look(record=packed[:length])["record"]["used"] == "own"


def test_a_record_older_than_the_copy_or_tampered_with_is_not_believed(hal: FakeNode) -> None:
    first = sealed(hal)
    hal.write("/etc/chrony.conf", "server b\n")
    second = hal.seal(entry(CONF))
    hal.write("/var/lib/hal/record.json", first, 0o600)
    older = hal.look(record=second["record"])
    assert older["record"]["status"] == "older"
    assert older["record"]["reason"] == "seal 1 is here, the controller has seal 2"
    assert older["differences"] == []
    tampered = json.loads(base64_record(second["record"]))
    tampered["entries"] = []
    hal.write("/var/lib/hal/record.json", records.to_bytes(tampered), 0o600)
    differs = hal.look(record=second["record"])
    assert (differs["record"]["status"], differs["counts"]["resources"]) == ("differs", 1)


def base64_record(packed: str) -> bytes:
    content: bytes = records.unpack(packed)
    return content


def test_a_node_that_was_sealed_elsewhere_gives_its_newer_record(hal: FakeNode) -> None:
    sealed(hal)
    first = records.pack(hal.record())
    hal.seal(entry(CONF))
    record = hal.look(record=first)["record"]
    assert (record["status"], record["serial"]) == ("ok", 2)
    assert records.unpack(record["packed"]) == hal.record()
    assert "packed" not in hal.look(record=record["packed"])["record"]


def test_an_exposed_record_is_said(hal: FakeNode) -> None:
    sealed(hal)
    assert hal.look()["record"]["problem"] == ""
    hal.path("/var/lib/hal/record.json").chmod(0o644)
    assert hal.look()["record"]["problem"].endswith("record.json has mode 0644, it should have 0600")


def test_everything_under_the_state_folder_is_root_only(hal: FakeNode) -> None:
    sealed(hal)
    folder = hal.path("/var/lib/hal")
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_corrupt_record_is_kept_aside_and_a_new_one_begun(hal: FakeNode) -> None:
    sealed(hal)
    hal.write("/var/lib/hal/record.json", b'{"format": 1', 0o600)
    answer = hal.seal(entry(CONF))
    assert answer["serial"] == 1
    (problem,) = answer["problems"]
    assert problem.startswith("the record was corrupt (not JSON: cut off, or overwritten): kept as record.json.bad-")
    (aside,) = hal.path("/var/lib/hal").glob("record.json.bad-*")
    assert aside.read_bytes() == b'{"format": 1'
    assert hal.look()["differences"] == []


def test_of_another_node_is_kept_aside_too(hal: FakeNode) -> None:
    hal.write("/var/lib/hal/record.json", changed(sealed(hal), node="hal06"), 0o600)
    answer = hal.seal(entry(CONF))
    assert "foreign (it is of hal06)" in answer["problems"][0]
    assert json.loads(hal.record())["node"] == "hal05"


def test_of_a_newer_version_is_left_alone(hal: FakeNode) -> None:
    newer = changed(sealed(hal), format=7)
    hal.write("/var/lib/hal/record.json", newer, 0o600)
    with pytest.raises(SealError, match="newer than this version of the project: format 7; this version knows up to 1"):
        hal.seal(entry(CONF))
    assert hal.record() == newer


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_full_disk_leaves_the_old_record(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    before = sealed(hal)
    hal.write("/etc/chrony.conf", "server b\n")

    def full(*_arguments: Any) -> Any:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        # Only in the parent: the child that reads files answers through os.write.
        real, me = getattr(os, call), os.getpid()
        broken.setattr(records.os, call, lambda *one: full() if os.getpid() == me else real(*one))
        with pytest.raises(SealError) as error:
            hal.seal(entry(CONF))
    assert str(error.value) == f"the record was not written, the old one is as it was: {os.strerror(number)}"
    assert hal.record() == before
    assert not [path for path in hal.path("/var/lib/hal").rglob("*") if ".new-" in path.name]
    assert kinds(hal.look()) == [(CONF, "changed", "sha256")]


def test_a_really_full_disk(hal: FakeNode) -> None:
    """A limit of the file size is as good as a full disk, and needs no mount."""
    import resource
    import signal

    before = sealed(hal)
    hal.write("/etc/chrony.conf", "server b\n" * 1000)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, limit[1]))
        with pytest.raises(SealError, match=r"not written, the old one is as it was: File too large"):
            hal.seal(entry(CONF))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, old)
    assert hal.record() == before


def test_a_file_in_place_of_the_state_folder(hal: FakeNode) -> None:
    hal.write("/var/lib/hal", "x")
    with pytest.raises(SealError, match=r"/var/lib/hal cannot be made: File exists"):
        hal.seal(entry(CONF))
    assert hal.look()["record"]["status"] == "none"


def test_what_a_killed_run_left_is_taken_away(hal: FakeNode) -> None:
    sealed(hal)
    hal.write("/var/lib/hal/record.json.new-77", "half", 0o600)
    hal.seal(entry(CONF))
    assert not hal.path("/var/lib/hal/record.json.new-77").exists()


def test_a_second_run_waits_then_gives_up_with_one_line(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sealed(hal)
    monkeypatch.setattr(records.locked.__wrapped__, "__defaults__", (0.3,))
    with records.locked(hal.node), pytest.raises(SealError, match="another run has been writing this record for more"):
        hal.seal(entry(CONF))
    assert hal.record() == before
    hal.seal(entry(CONF))


def test_a_reader_that_hangs_does_not_keep_the_lock(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(hal)
    monkeypatch.setattr(records.locked.__wrapped__, "__defaults__", (0.3,))
    with records.locked(hal.node):
        child = os.fork()  # as what reads files does, and then waits for a file system that does not answer
        if child == 0:
            time.sleep(600)
            os._exit(0)
    try:
        sealed(hal)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_two_runs_at_once_both_count(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "server a\n")
    hal.write("/etc/other", "x\n")
    children = []
    for resource in (CONF, "file:/etc/other") * 4:
        child = os.fork()
        if child == 0:
            try:
                hal.seal(entry(resource))
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    record = json.loads(hal.record())
    assert record["serial"] == 8
    assert [one["resource"] for one in record["entries"]] == [CONF, "file:/etc/other"]


def test_audits_while_a_run_seals_see_one_or_the_other(hal: FakeNode) -> None:
    sealed(hal)
    with records.locked(hal.node):
        assert hal.look()["record"]["status"] == "ok"


@pytest.mark.parametrize("what", ["fifo", "socket", "directory", "link"])
def test_something_else_where_the_record_should_be(hal: FakeNode, what: str) -> None:
    sealed(hal)
    path = hal.path("/var/lib/hal/record.json")
    path.unlink()
    put(path, what)
    record = hal.look()["record"]
    assert record["status"] == ("none" if what == "link" else "corrupt")
    assert record["used"] == "none"


def put(path: Path, what: str) -> None:
    if what == "fifo":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            here = Path.cwd()
            os.chdir(path.parent)  # the path of a socket is short
            try:
                listening.bind(path.name)
            finally:
                os.chdir(here)
    elif what == "directory":
        path.mkdir()
    elif what == "link":
        path.symlink_to("nowhere")


@pytest.mark.parametrize("what", ["fifo", "socket", "directory", "link"])
def test_something_else_where_a_file_should_be_is_a_type(hal: FakeNode, what: str) -> None:
    sealed(hal)
    path = hal.path("/etc/chrony.conf")
    path.unlink()
    put(path, what)
    (difference,) = hal.look()["differences"]  # of what hangs it would be "unreadable"
    assert (difference["kind"], difference["should"], difference["is"]) == ("type", "file", what)


@pytest.mark.root  # who makes devices
def test_a_device_where_a_file_should_be_is_not_opened(hal: FakeNode) -> None:
    sealed(hal)
    hal.path("/etc/chrony.conf").unlink()
    os.mknod(hal.path("/etc/chrony.conf"), 0o20644, os.makedev(1, 5))  # /dev/zero never ends
    assert [(one["kind"], one["is"]) for one in hal.look()["differences"]] == [("type", "char")]


def test_a_fifo_is_not_opened(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.module_utils.hal_node.audit import files as hal_audit_files

    os.mkfifo(hal.path("/etc/pipe"))
    monkeypatch.setattr(hal_audit_files.os, "open", None)
    seen = hal_audit_files.file_attributes(os.fsencode(hal.path("/etc/pipe")), {"path": "/etc/pipe"}, b"")
    assert seen["type"] == "fifo"


@pytest.mark.parametrize("what", ["fifo", "socket"])
def test_something_else_where_a_table_should_be_is_unreadable(hal: FakeNode, what: str) -> None:
    hal.write("/etc/sshd_config", "a\n")
    hal.seal(entry("user:alice"), entry("line:/etc/sshd_config#0", declared={"state": "present", "lines": ["a"]}))
    for name in ("/etc/passwd", "/etc/sshd_config"):
        hal.path(name).unlink()
        put(hal.path(name), what)
    answer = hal.look(checks=["uid_0"])
    assert [one[1] for one in kinds(answer)] == ["unreadable", "unreadable"]
    assert answer["checks"][0]["status"] == "unknown"


def test_a_symlink_loop_is_unreadable(hal: FakeNode) -> None:
    sealed(hal)
    hal.path("/etc/chrony.conf").rename(hal.path("/chrony.conf"))
    hal.path("/etc/loop").symlink_to("loop")
    hal.seal(entry("file:/etc/loop/x"), entry("line:/etc/loop#0", declared={"state": "present", "lines": ["x"]}))
    notes = {one["resource"]: (one["kind"], one["note"]) for one in hal.look()["differences"]}
    assert notes["file:/etc/loop/x"] == ("unreadable", "/etc/loop/x: Too many levels of symbolic links")
    assert notes["line:/etc/loop#0"] == ("unreadable", "/etc/loop: Too many levels of symbolic links")
    assert notes[CONF][0] == "missing"


def test_a_file_of_10_gigabytes_costs_nothing(hal: FakeNode) -> None:
    sealed(hal)
    with open(hal.path("/etc/chrony.conf"), "wb") as stream:
        stream.truncate(10 * 1024**3)
    answer = hal.look()
    (difference,) = answer["differences"]
    assert (difference["kind"], difference["attribute"], difference["is"]) == ("changed", "size", 10 * 1024**3)
    assert answer["cpu_seconds"] < 1
    sealing = hal.seal(entry(CONF))
    assert sealing["observed"] == 1
    assert hal.look()["differences"] == []
    with open(hal.path("/etc/chrony.conf"), "ab") as stream:
        stream.write(b"x")
    assert kinds(hal.look()) == [(CONF, "changed", "size")]


def test_a_large_file_is_hashed_when_its_size_is_the_recorded_one(hal: FakeNode) -> None:
    big = hal.write("/etc/chrony.conf", b"")
    with open(big, "r+b") as stream:
        stream.truncate(65 * 1024 * 1024)
    hal.seal(entry(CONF))
    with open(big, "r+b") as stream:
        stream.write(b"x")
    assert kinds(hal.look()) == [(CONF, "changed", "sha256")]


def test_hashing_gives_up_before_the_guard_takes_it_for_a_hang() -> None:
    assert HASH_SECONDS < FILE_TIMEOUT_SECONDS


def test_names_that_are_not_utf_8_are_escaped(hal: FakeNode) -> None:
    sealed(hal)
    hal.path("/etc/cron.d").mkdir()
    open(os.fsencode(hal.path("/etc/cron.d")) + b"/\xff\nnew", "w").close()
    (extra,) = hal.look(watched=[{"path": "/etc/cron.d", "what": "jobs"}])["extra"]
    assert (extra["path"], extra["note"]) == (
        "/etc/cron.d/\\xff\\x0anew",
        "its name is not UTF-8, or has control characters",
    )
    json.dumps(extra).encode("ascii")


def test_a_link_to_a_name_that_is_not_utf_8(hal: FakeNode) -> None:
    hal.path("/etc").mkdir(exist_ok=True)
    os.symlink(b"\xff", os.fsencode(hal.path("/etc/link")))
    hal.seal(entry("file:/etc/link"))
    assert hal.look()["differences"] == []
    os.unlink(hal.path("/etc/link"))
    os.symlink(b"\xfe", os.fsencode(hal.path("/etc/link")))
    (difference,) = hal.look()["differences"]
    assert (difference["should"], difference["is"]) == ("\\xff", "\\xfe")


def test_a_clock_that_went_back_is_a_failed_check(hal: FakeNode) -> None:
    sealed(hal)
    hal.now -= 86400
    answer = hal.look(checks=["clock"])
    assert answer["differences"] == []
    (check,) = answer["checks"]
    assert check["status"] == "fail"
    assert check["reason"].startswith("the clock went back: the record was sealed at ")
    again = hal.seal(entry(CONF))
    assert "the clock went back" in again["problems"][0]
    assert again["serial"] == 2


@pytest.mark.root  # who can become somebody else
def test_an_unreadable_file_is_unreadable(hal: FakeNode) -> None:
    """As another user, in a child: root reads everything."""
    hal.write("/etc/secret", "x", 0o600)
    hal.write("/etc/line", "a\n", 0o600)
    hal.seal(entry("file:/etc/secret"), entry("line:/etc/line#0", declared={"state": "present", "lines": ["a"]}))
    record = records.pack(hal.record())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for path in [hal.root, *hal.root.parents]:
            if path != Path("/"):
                path.chmod(path.stat().st_mode | 0o011)
        os.setgid(65534)
        os.setuid(65534)
        answer = hal.look(record=record)
        os.write(writer, json.dumps([answer["record"]["status"], kinds(answer)]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        status, found = json.loads(stream.read())
    os.waitpid(child, 0)
    assert status == "corrupt"
    assert found == [["file:/etc/secret", "unreadable", ""], ["line:/etc/line#0", "unreadable", ""]]


def test_secrets_are_not_known_without_the_key(hal: FakeNode) -> None:
    hal.write("/etc/secret", "x", 0o600)
    hal.seal(entry("file:/etc/secret"))
    hal.path("/var/lib/hal/record.key").unlink()
    (difference,) = hal.look()["differences"]
    assert (difference["kind"], difference["note"]) == ("unreadable", "the key of its hash is lost")


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"run": {"now": "soon"}}, 'run.now has to be seconds since the epoch, not "soon"'),
        ({"entries": [{"resource": "chrony"}]}, 'entry 1 of the run: "resource" is not kind:name'),
        (
            {"entries": [entry("file:/x", declared={"lines": "a"})]},
            'entry 1 of the run: "declared.lines" is not a list',
        ),
        ({"windows": [[1]]}, "windows are pairs of begin and end"),
        ({"roles": {"time": []}}, "role time of the run: it has to be a mapping with a list of tasks"),
    ],
)
def test_a_request_that_is_none_is_refused_before_anything_is_written(
    hal: FakeNode, request_: dict[str, Any], text: str
) -> None:
    from ansible.module_utils.hal_node.audit.seal import seal

    with pytest.raises(SealError) as error:
        seal({"node": "hal05", "run": {}, "entries": [], **request_}, hal.node)
    assert text in str(error.value)
    assert not hal.path("/var/lib/hal").exists()


@pytest.mark.parametrize("program", ["rpm", "systemctl", "getfacl"])
def test_without_a_program_only_what_it_tells_is_unknown(hal: FakeNode, program: str) -> None:
    hal.units["chronyd.service"] = {}
    hal.programs["getfacl"] = lambda words: (0, "", "")
    hal.write("/etc/chrony.conf", "server a\n")
    hal.write("/etc/yum.repos.d/x.repo", "")
    hal.seal(
        entry(CONF, units=["chronyd.service"]),
        entry("package:chrony", declared={"state": "present"}),
        entry("service:chronyd.service", declared={"enabled": True}),
    )
    hal.missing.add(program)
    answer = hal.look(watched=[{"path": "/etc/yum.repos.d"}], checks=["packages", "kernel"])
    wanted = {"rpm": ["package:chrony"], "systemctl": ["service:chronyd.service"], "getfacl": []}[program]
    assert [(one[0], one[1]) for one in kinds(answer)] == [(one, "unreadable") for one in wanted]
    assert answer["problems"]
    assert all(f"there is no program {program}" in one for one in answer["problems"])
    if program == "rpm":
        assert [one["status"] for one in answer["checks"]] == ["unknown", "unknown"]
        assert answer["packages"]["unknown"] == "there is no program rpm"


def test_a_file_system_that_hangs_costs_its_own_files_only(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.module_utils.hal_node.audit import files as hal_audit_files
    from ansible.module_utils.hal_node.expect import process as hal_expect_process

    hal.write("/proc/self/mountinfo", "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /gpfs rw - gpfs gpfs0 rw\n")
    names = ["/etc/chrony.conf", *(f"/gpfs/{number}" for number in range(50))]
    for name in names:
        hal.write(name, "x\n")
    hal.seal(*[entry(f"file:{name}") for name in names])
    real = hal_audit_files.file_attributes

    def hanging(path: bytes, *more: Any) -> Any:
        if b"/gpfs/" in path:
            time.sleep(600)
        return real(path, *more)

    monkeypatch.setattr(hal_audit_files, "file_attributes", hanging)
    monkeypatch.setattr(hal_expect_process.read_guarded, "__defaults__", (5, None))  # for those that answer, too
    monkeypatch.setattr(hal_expect_process, "AFTER_A_HANG_SECONDS", 0.3)
    began = time.monotonic()
    answer = hal.look()
    assert time.monotonic() - began < 600
    assert [one[:2] for one in kinds(answer)] == [(f"file:{name}", "unreadable") for name in sorted(names[1:])]
    assert "not asked: 3 reads before it did not come to an end" in {one["note"] for one in answer["differences"]}
