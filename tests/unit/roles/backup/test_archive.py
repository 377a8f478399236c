"""An archive is packed whole and opened whole, by the right key, for the right node; or not at all, and why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_node.digest import sha256_of
from tests.unit.roles.backup.archives import request

FILES = Path(__file__).resolve().parents[4] / "roles" / "backup" / "files"
LONG_SECONDS = 600  # what has not ended by then never will
Make = Callable[..., Path]


@pytest.fixture
def make(programs: Any, key: SimpleNamespace, tmp_path: Path) -> Make:
    """Return a function that makes an archive with the real job: options are those of the job."""

    def made(name: str = "hal-mgmt1", **options: Any) -> Path:
        content = tmp_path / "state"
        content.mkdir(exist_ok=True)
        (content / "a file").write_text("precious\n" * 5000)
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "public.asc").write_bytes(options.pop("public", key.public))
        source = {"name": "state", "kind": "files", "paths": [str(content)]}
        config = {"site": "hal", "node": name, "key": str(tmp_path / "public.asc"), "work": str(tmp_path / "work")}
        programs.job.save_now({**config, "reserve_mb": 0, "sources": [source], **options}, str(tmp_path / "archive"))
        return tmp_path / "archive"

    return made


def opened(programs: Any, archive: Path, key: bytes, sha256: str = "") -> Any:
    folder = archive.parent / "opened"
    folder.mkdir(exist_ok=True)
    source = {"name": "state", "kind": "files", "paths": [str(archive.parent / "state")]}
    try:
        return programs.open.opened(request(archive, folder, sources=[source], sha256=sha256), key)
    except programs.common.Problem:
        assert list(folder.iterdir()) == [], "nothing of what could not be read is left"
        raise


def test_what_was_saved_is_read_again(programs: Any, key: SimpleNamespace, make: Make, tmp_path: Path) -> None:
    archive = make()
    assert b"precious" not in archive.read_bytes()
    made = opened(programs, archive, key.private)["made"]
    (tmp_path / "opened" / "archive.tar.gz").unlink()
    stored = archive.rename(archive.with_name(programs.common.archive_name("hal-mgmt1", made)))
    result = opened(programs, stored, key.private, sha256_of(str(stored)))
    assert sorted(result["sources"][0]["entries"]) == [f"state{tmp_path}/state", f"state{tmp_path}/state/a file"]
    with tarfile.open(tmp_path / "opened" / "archive.tar.gz") as content:
        member = content.extractfile(f"state{tmp_path}/state/a file")
        assert member is not None
        assert member.read() == b"precious\n" * 5000
    assert list((tmp_path / "work").iterdir()) == [tmp_path / "work" / "lock"], "nothing in clear is left"


def test_runs_in_a_row_have_seconds_of_their_own(
    programs: Any, key: SimpleNamespace, make: Make, tmp_path: Path
) -> None:
    """By which their archives are named."""
    first = opened(programs, make(), key.private)["made"]
    (tmp_path / "opened" / "archive.tar.gz").unlink()
    assert opened(programs, make(), key.private)["made"] > first


def test_a_truncated_archive_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make()
    whole = archive.read_bytes()
    stored = sha256_of(str(archive))
    for length in (len(whole) - 1, len(whole) // 2, 100, 0):
        archive.write_bytes(whole[:length])
        with pytest.raises(programs.common.Problem, match=r"is damaged|not an encrypted archive") as without:
            opened(programs, archive, key.private)
        assert "\n" not in str(without.value)
        with pytest.raises(programs.common.Problem, match="not what was stored"):
            opened(programs, archive, key.private, stored)


def test_a_changed_archive_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make()
    content = bytearray(archive.read_bytes())
    content[-50] ^= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(programs.common.Problem, match="is damaged: gpg cannot decrypt all of it"):
        opened(programs, archive, key.private)


def test_an_archive_that_is_larger_inside_is_refused(programs: Any, key: SimpleNamespace, tmp_path: Path) -> None:
    """Who may send one could fill the controller's disk: 8 kB that are 8 MB. What the job makes it does not pack."""
    sealed, plain = tmp_path / "sealed", tmp_path / "plain"
    with programs.archive.keyring(key.public) as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--trust-model", "always", "--compress-algo", "zlib"]
        to = ["--recipient", programs.archive.fingerprints(home)[0], "--output", str(sealed), "--encrypt"]
        subprocess.run([*gpg, *to], input=bytes(8 * 1024**2), check=True, capture_output=True)
    assert sealed.stat().st_size < 20000
    with pytest.raises(
        programs.common.Problem, match=r"^sealed is damaged: gpg cannot decrypt all of it \(.*too large\)$"
    ):
        programs.archive.decrypt(str(sealed), str(plain), key.private)
    assert not plain.exists()


def test_a_wrong_key_is_named(
    programs: Any, key: SimpleNamespace, other_key: SimpleNamespace, make: Make, tmp_path: Path
) -> None:
    archive = make()
    with programs.archive.keyring(key.public) as home:
        own = programs.archive.fingerprints(home)[0][-16:]
    with programs.archive.keyring(other_key.public) as home:
        other = programs.archive.fingerprints(home)[0][-16:]
    with pytest.raises(programs.common.Problem, match=f"encrypted for key {own}; the private key given is of {other}"):
        opened(programs, archive, other_key.private)
    with pytest.raises(programs.common.Problem, match="backup_private_key is empty"):
        opened(programs, archive, b"\n")
    with pytest.raises(programs.common.Problem, match="gpg: no valid OpenPGP data found"):
        opened(programs, archive, b"not a key\n")


def test_an_archive_of_another_node_or_site_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make("hal-login")
    with pytest.raises(programs.common.Problem, match="archive of hal-login of site hal, not of hal-mgmt1 of site hal"):
        opened(programs, archive, key.private)
    archive = make(site="other")
    with pytest.raises(programs.common.Problem, match="archive of hal-mgmt1 of site other, not of hal-mgmt1 of site"):
        opened(programs, archive, key.private)


def test_a_source_that_is_not_there_is_no_archive(programs: Any, make: Make, tmp_path: Path) -> None:
    gone = {"name": "munge_key", "kind": "files", "paths": ["/nowhere/munge.key"]}
    with pytest.raises(programs.common.Problem, match=r"munge_key: /nowhere/munge\.key is not there"):
        make(sources=[gone])
    with pytest.raises(programs.common.Problem, match=r"no room for an archive in .*: \d+ MB are free"):
        make(reserve_mb=10**9)
    with pytest.raises(programs.common.Problem, match=r"^backup_sources: paths of munge_key has to be a list, not x$"):
        make(sources=[{**gone, "paths": "x"}])
    assert not (tmp_path / "archive").exists()


def test_two_public_keys_are_refused(
    programs: Any, key: SimpleNamespace, other_key: SimpleNamespace, make: Make
) -> None:
    with pytest.raises(programs.common.Problem, match="2 keys in it, there has to be one"):
        make(public=key.public + other_key.public)


def test_a_manifest_is_what_was_packed(programs: Any, tmp_path: Path) -> None:
    """With the digest of each file; links and folders are in the archive, and have none."""
    stage = tmp_path / "stage"
    (stage / "deep" / "empty").mkdir(parents=True)
    (stage / "deep" / "a").write_text("1")
    (stage / "deep" / "to_a").symlink_to("a")
    (stage / "b").write_text("2")
    path = str(tmp_path / "x.tar.gz")
    said = {"site": "hal", "node": "x", "made": 5, "sources": [{"name": "deep"}]}
    packed, entries = programs.archive.pack(str(stage), said, path)
    digests = {name: sha256_of(str(stage / name)) for name in ("deep/a", "b")}
    assert packed == {**said, "format": 1, "files": digests}
    assert {name: entry["type"] for name, entry in entries.items()} == {
        **{"b": "file", "deep": "folder", "deep/a": "file", "deep/empty": "folder", "deep/to_a": "link"}
    }
    assert programs.archive.check(path) == (packed, entries)
    with tarfile.open(path) as archive:
        assert sorted(archive.getnames()) == ["MANIFEST.json", "b", "deep", "deep/a", "deep/empty", "deep/to_a"]
        assert archive.getnames()[:2] == ["MANIFEST.json", "b"]
        assert archive.getmember("deep/to_a").issym()
    assert (stage / "MANIFEST.json").read_text() == json.dumps(packed, indent=1, sort_keys=True)


def test_names_that_are_no_utf8_are_packed_and_read(programs: Any, tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    (stage / "größe").mkdir(parents=True)
    with open(os.fsencode(stage / "größe") + b"/a\xff", "w") as target:
        target.write("1")
    said = {"site": "hal", "node": "x", "made": 5, "sources": [{"name": "größe"}]}
    packed, entries = programs.archive.pack(str(stage), said, str(tmp_path / "x.tar.gz"))
    assert list(packed["files"]) == ["größe/a�"]
    assert sorted(entries) == ["größe", "größe/a�"]


def test_an_archive_that_says_something_else_of_its_files_is_refused(programs: Any, tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "one").write_text("1")
    packed = tmp_path / "archive.tar.gz"
    said = {"site": "hal", "node": "x", "made": 5, "sources": [{"name": "state"}]}
    programs.archive.pack(str(folder), said, str(packed))
    (folder / "state" / "one").write_text("2")
    with tarfile.open(packed, "w:gz") as content:
        content.add(folder / "MANIFEST.json", "MANIFEST.json")
        content.add(folder / "state", "state")
    with pytest.raises(programs.common.Problem, match="state/one is not what the manifest says"):
        programs.archive.check(str(packed))


def test_a_ring_of_keys_goes_away_again(programs: Any, key: SimpleNamespace) -> None:
    with programs.archive.keyring(key.public) as home:
        assert os.path.basename(home).startswith("hal-backup-")
        (fingerprint,) = programs.archive.fingerprints(home)
        assert len(fingerprint) == 40
    assert not os.path.exists(home)
    with pytest.raises(programs.common.Problem, match=r"^gpg: "), programs.archive.keyring(b"no key"):
        pytest.fail("it has no key")


@pytest.mark.parametrize("before", [None, signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_ring_of_keys_goes_away_when_its_program_is_killed(
    key: SimpleNamespace, tmp_path: Path, before: signal.Signals | None
) -> None:
    """With all that it started, or after each process was told to end, as systemd does: the private key is in it."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import backup_archive\n"
        "with backup_archive.keyring(sys.stdin.buffer.read()) as home:\n"
        "    print(home, flush=True); time.sleep(1000)\n"
    )
    argv = [sys.executable, "-B", "-c", script, str(FILES)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env={**os.environ}
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(key.private)
        program.stdin.close()
        home = Path(program.stdout.readline().decode().strip())
        assert list(home.glob("private-keys-v1.d/*.key"))
        if before:
            children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), before)
            time.sleep(0.2)  # one that obeys is gone by then
        os.killpg(program.pid, signal.SIGKILL)
    until = time.monotonic() + LONG_SECONDS
    while home.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not home.exists()


@pytest.mark.parametrize("told", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_new_key_does_not_stay_where_it_is_made(tmp_path: Path, told: signal.Signals) -> None:
    """When its making is stopped, as by Ctrl-C: it opens all that is encrypted for it, and has no passphrase."""
    for name in ("bin", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "gpg").write_text('#!/bin/sh\necho secret >"$2/key"\necho begun\nexec sleep 1000\n')
    (tmp_path / "bin" / "gpg").chmod(0o755)
    search = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        ["sh", str(FILES / "make_key_pair.sh"), str(tmp_path / "keys"), "a test"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(told, signal.SIG_DFL),  # who runs this in the background may ignore it
        env={**os.environ, "PATH": search, "TMPDIR": str(tmp_path / "tmp")},
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        assert list((tmp_path / "tmp").glob("*/key"))
        os.killpg(program.pid, told)
        assert program.wait(LONG_SECONDS) != 0
    assert list((tmp_path / "tmp").iterdir()) == []


def test_an_archive_is_for_the_one_key(
    programs: Any, key: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not signed by anybody; the agent that gpg started for the private key is told to end."""
    told: list[list[str]] = []
    call = programs.archive.subprocess.call

    def noted(argv: list[str], **options: Any) -> Any:
        told.append(argv)
        return call(argv, **options)

    monkeypatch.setattr(programs.archive.subprocess, "call", noted)
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_text("an archive")
    own = programs.archive.encrypt(str(plain), str(sealed), key.public)
    with programs.archive.keyring(key.private) as home:
        assert programs.archive.fingerprints(home) == [own]
    assert told[-1] == ["gpgconf", "--homedir", home, "--kill", "gpg-agent"]
    programs.archive.decrypt(str(sealed), str(tmp_path / "again"), key.private)
    assert (tmp_path / "again").read_bytes() == plain.read_bytes()
