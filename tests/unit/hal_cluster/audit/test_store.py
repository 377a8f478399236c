"""What the controller keeps: for its owner only, whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.sealing import folded, requests
from hal_cluster.audit.store import Store, pack, read_json, unpack, write_json

SPOOL = {
    "node": "n",
    "entries": [],
    "roles": {},
    "reached": [],
    "skipped": [],
    "windows": [],
    "handled": [],
    "run": {"id": "r"},
}


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()}


def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    store = Store(tmp_path / "audit")
    store.key()
    write_json(store.spool("r1", "hal01"), {})
    write_json(store.proposal("hal01"), {})
    store.keep_record("hal01", pack(b"{}"), hashlib.sha256(b"{}").hexdigest())
    assert modes(store.folder) == {"0o600"}
    folders = [store.folder, *(path for path in store.folder.rglob("*") if path.is_dir())]
    assert {oct(path.stat().st_mode & 0o777) for path in folders} == {"0o700"}


def test_the_key_stays(tmp_path: Path) -> None:
    key = Store(tmp_path / "audit").key()
    assert Store(tmp_path / "audit").key() == key == (tmp_path / "audit/key").read_bytes()
    assert len(key) == 32
    assert Store(tmp_path / "other").key() != key


def test_a_damaged_key_is_named(tmp_path: Path) -> None:
    Store(tmp_path / "audit").key()
    (tmp_path / "audit/key").write_bytes(b"x")
    with pytest.raises(AuditError, match=r"audit/key has 1 bytes instead of 32"):
        Store(tmp_path / "audit").key()


def test_spools_come_oldest_first_and_go_when_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run in ("20261122T0", "20261121T0"):
        write_json(store.spool(run, "hal01"), {**SPOOL, "run": {"id": run}})
    found = requests(store, "hal01", "20261122T0")
    assert [arguments["run"]["id"] for _, arguments in found] == ["20261121T0", "20261122T0"]
    assert all(arguments["run"]["now"] > 0 for _, arguments in found)
    for path, _ in found:
        store.done(path)
    assert store.pending("hal01") == []
    assert list((store.folder / "spool").iterdir()) == []


def test_a_run_that_goes_on_keeps_its_spool_from_others(tmp_path: Path) -> None:
    store = Store(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[4])!r})\n"
        "from hal_cluster.audit.store import Store, write_json\n"
        f"s = Store({str(tmp_path)!r}); s.begin('other'); write_json(s.spool('other', 'hal01'), {{}})\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert store.pending("hal01", "mine") == []
        other.kill()
    assert [path.parent.name for path in store.pending("hal01", "mine")] == ["other"]


def test_a_run_is_over_when_it_says_so_though_a_worker_of_it_is_still_about_to_end(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin("r")
    write_json(store.spool("r", "hal01"), {})
    # As Ansible's workers, which are forks, it has the handle of the lock.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(store._lock,)) as worker:
        assert store.pending("hal01") == []
        store.end("r")
        assert [path.parent.name for path in store.pending("hal01")] == ["r"]
        worker.kill()


def test_two_that_look_whether_a_run_is_over_are_not_in_each_others_way(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_json(store.spool("r", "hal01"), {})
    other = os.open(store.spool("r", "hal01").parent, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_SH)  # as a second rollout does while it looks
        assert [path.parent.name for path in store.pending("hal01")] == ["r"]
    finally:
        os.close(other)


def test_a_spool_that_is_none_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.spool("r", "hal01")
    write_json(path, {"node": "hal01"})
    with pytest.raises(AuditError, match="has no entries"):
        requests(store, "hal01", "r")
    path.write_text("{")
    with pytest.raises(AuditError, match=r"hal01\.json cannot be read"):
        requests(store, "hal01", "r")


def test_a_record_that_changed_on_its_way_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(AuditError, match="hal01: the record that came back"):
        store.keep_record("hal01", pack(b"{}"), "0" * 64)
    assert not store.record("hal01").exists()
    with pytest.raises(AuditError, match="damaged"):
        unpack("no base64!")


def test_a_write_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "last.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [one.name for one in path.parent.iterdir()] == ["last.json"]


def test_hosts_are_folded(tmp_path: Path) -> None:
    assert folded(["hal02", "hal01", "hal-login"]) == "hal[01-02],hal-login"
    assert folded(["a[", "b"]) == "a[,b"


def test_a_node_that_was_installed_anew_has_nothing_of_the_former_system(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for host in ("hal01", "hal02"):
        store.keep_record(host, pack(b"{}"), hashlib.sha256(b"{}").hexdigest())
        write_json(store.spool("over", host), {})
    write_json(store.spool("other", "hal01"), {})
    store.forget("hal01")
    store.forget("hal01")  # of one that is not there
    assert [path for path in tmp_path.rglob("*") if path.is_file()] != []
    assert not store.record("hal01").exists()
    assert store.pending("hal01") == []
    assert store.record("hal02").exists()
    assert [path.parent.name for path in store.pending("hal02")] == ["over"]
