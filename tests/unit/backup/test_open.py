"""At the controller: an archive that is opened, or why it is not, in result.json; and what is no archive."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def sealed(programs: Any, key: SimpleNamespace, tmp_path: Path) -> Path:
    """An archive of hal-mgmt1."""
    stage = tmp_path / "stage"
    (stage / "state").mkdir(parents=True)
    (stage / "state" / "a").write_text("precious")
    (stage / "state" / "link").symlink_to("a")
    (tmp_path / "folder").mkdir()
    programs.archive.pack(str(stage), {"site": "hal", "node": "hal-mgmt1"}, str(tmp_path / "plain"))
    programs.archive.encrypt(str(tmp_path / "plain"), str(tmp_path / "sealed"), key.public)
    return tmp_path / "sealed"


def opens(programs: Any, monkeypatch: pytest.MonkeyPatch, archive: Path, private: bytes, *words: str) -> Any:
    monkeypatch.setattr(programs.open.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(private)))
    folder = archive.parent / "folder"
    status = programs.open.command([str(archive), str(folder), *words])
    return status, json.loads((folder / "result.json").read_text()), sorted(os.listdir(folder))


def test_the_result_is_written_beside_what_was_opened(
    programs: Any, key: SimpleNamespace, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = programs.common.sha256(str(sealed))
    files = {"state/a": programs.common.sha256(str(sealed.parent / "stage" / "state" / "a"))}
    manifest = {"format": 1, "site": "hal", "node": "hal-mgmt1", "files": files}
    for wanted in ("-", digest):
        assert opens(programs, monkeypatch, sealed, key.private, "hal", "hal-mgmt1", wanted) == (
            0,
            {"error": "", "manifest": manifest, "sha256": digest},
            ["archive.tar.gz", "result.json"],
        )
        (sealed.parent / "folder" / "archive.tar.gz").unlink()


def test_an_error_is_written_and_nothing_else(
    programs: Any, key: SimpleNamespace, other_key: SimpleNamespace, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error(archive: Path, private: bytes, *words: str) -> str:
        status, result, left = opens(programs, monkeypatch, archive, private, *words)
        assert (status, left) == (1, ["result.json"])
        assert (result["manifest"], result["sha256"]) == ({}, "")
        return str(result["error"])

    gone = sealed.parent / "gone"
    assert error(gone, key.private, "hal", "x", "-") == f"{gone} is not there"
    size = sealed.stat().st_size
    other = "sealed is an archive of hal-mgmt1 of site hal, not of {} of site {}"
    assert error(sealed, key.private, "hal", "hal-mgmt1", "0" * 64) == (
        f"sealed is damaged: {size} bytes that are not what was stored"
    )
    assert error(sealed, b" \n", "hal", "hal-mgmt1", "-") == (
        "backup_private_key is empty: without it no archive can be read"
    )
    assert error(sealed, key.private, "hal", "hal-mgmt2", "-") == other.format("hal-mgmt2", "hal")
    assert error(sealed, key.private, "pal", "hal-mgmt1", "-") == other.format("hal-mgmt1", "pal")
    assert "sealed was encrypted for key" in error(sealed, other_key.private, "hal", "hal-mgmt1", "-")
    sealed.write_text("no archive")
    assert error(sealed, key.private, "hal", "hal-mgmt1", "-") == "sealed is no encrypted archive"


def packed(tmp_path: Path, *members: tuple[str, bytes | None]) -> str:
    """A tar file with these members; None is a pipe."""
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content or b"")
            member.type = tarfile.REGTYPE if content is not None else tarfile.FIFOTYPE
            archive.addfile(member, io.BytesIO(content or b""))
    return str(tmp_path / "x.tar.gz")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("/etc/x", b"")], "{}: /etc/x leads out of the archive"),
        ([("a/../../x", b"")], "{}: a/../../x leads out of the archive"),
        ([("a..b", b"1"), ("pipe", None)], "{}: pipe is no file, folder or link"),
        ([("a", b"1")], "{} is no backup: it has no MANIFEST.json"),
        ([("MANIFEST.json", b"{")], "{} is damaged: Expecting property name enclosed"),
        ([("MANIFEST.json", b'{"format": 2}')], "{} has format 2; this version reads 1"),
        ([("MANIFEST.json", b"{}")], "{} has format None; this version reads 1"),
        ([("MANIFEST.json", b'{"format": 1, "files": {"b": "0"}}')], "{} is damaged: b is not what the manifest says"),
        (
            [("a", b"1"), ("c", b""), ("MANIFEST.json", b'{"format": 1, "files": {}}')],
            "{} is damaged: a is not what the manifest says",
        ),
    ],
)
def test_what_is_no_archive_is_refused(
    programs: Any, tmp_path: Path, members: list[tuple[str, bytes | None]], said: str
) -> None:
    path = packed(tmp_path, *members)
    with pytest.raises(programs.common.Problem) as refused:
        programs.archive.check(path)
    assert str(refused.value).startswith(said.format(path))


def test_a_manifest_is_what_was_packed(programs: Any, tmp_path: Path) -> None:
    """With the digest of each file; links and folders are in the archive, and have none."""
    stage = tmp_path / "stage"
    (stage / "deep" / "empty").mkdir(parents=True)
    (stage / "deep" / "a").write_text("1")
    (stage / "deep" / "to_a").symlink_to("a")
    (stage / "b").write_text("2")
    path = str(tmp_path / "x.tar.gz")
    packed = programs.archive.pack(str(stage), {"node": "x"}, path)
    digests = {name: programs.common.sha256(str(stage / name)) for name in ("deep/a", "b")}
    assert packed == {"node": "x", "format": 1, "files": digests}
    assert programs.archive.check(path) == packed
    with tarfile.open(path) as archive:
        assert sorted(archive.getnames()) == ["MANIFEST.json", "b", "deep", "deep/a", "deep/empty", "deep/to_a"]
        assert archive.getnames()[:2] == ["MANIFEST.json", "b"]
        assert archive.getmember("deep/to_a").issym()
    assert (stage / "MANIFEST.json").read_text() == json.dumps(packed, indent=1, sort_keys=True)


def test_a_ring_of_keys_goes_away_again(programs: Any, key: SimpleNamespace) -> None:
    with programs.archive.keyring(key.public) as home:
        assert os.path.basename(home).startswith("hal-backup-")
        (fingerprint,) = programs.archive.fingerprints(home)
        assert len(fingerprint) == 40
    assert not os.path.exists(home)
    with pytest.raises(programs.common.Problem, match=r"^gpg: "), programs.archive.keyring(b"no key"):
        pytest.fail("it has no key")


def test_an_archive_is_for_the_one_key(
    programs: Any, key: SimpleNamespace, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not signed by anybody; the agent that gpg started for the private key is told to end."""
    told: list[list[str]] = []
    call = programs.archive.subprocess.call

    def noted(argv: list[str], **options: Any) -> Any:
        told.append(argv)
        return call(argv, **options)

    monkeypatch.setattr(programs.archive.subprocess, "call", noted)
    own = programs.archive.encrypt(str(sealed.parent / "plain"), str(sealed), key.public)
    with programs.archive.keyring(key.private) as home:
        assert programs.archive.fingerprints(home) == [own]
    assert told[-1] == ["gpgconf", "--homedir", home, "--kill", "gpg-agent"]
    programs.archive.decrypt(str(sealed), str(sealed.parent / "again"), key.private)
    assert (sealed.parent / "again").read_bytes() == (sealed.parent / "plain").read_bytes()
