"""At the controller: an archive that is opened, or why it is not, in result.json."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_node.digest import sha256_of
from tests.unit.roles.backup.archives import Member, folders, manifest, request, write

NAME = "hal-mgmt1-19700101T000005Z.tar.gz.gpg"
SOURCE = {"name": "key", "kind": "files", "paths": ["/etc/munge/munge.key"], "stops": ["munge"]}
MEMBERS = [*folders("key/etc/munge"), Member("key/etc/munge/munge.key", content=b"precious", mode=0o400)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def seal(programs: Any, key: SimpleNamespace, path: Path, members: list[Member], said: Any) -> Path:
    """Encrypt an archive of these members."""
    write(path.with_suffix(".plain"), members, said)
    programs.archive.encrypt(str(path.with_suffix(".plain")), str(path), key.public)
    return path


@pytest.fixture
def sealed(programs: Any, key: SimpleNamespace, tmp_path: Path) -> Path:
    """An archive of hal-mgmt1."""
    return seal(programs, key, tmp_path / NAME, MEMBERS, manifest("key", made=5))


def opens(programs: Any, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], private: bytes) -> Any:
    monkeypatch.setattr(programs.open.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(private)))
    status = programs.open.command([json.dumps(asked)])
    path = Path(asked["folder"]) / "result.json"
    return status, json.loads(path.read_text()), sorted(os.listdir(path.parent))


def test_the_result_is_written_beside_what_was_opened(
    programs: Any, key: SimpleNamespace, sealed: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a restore has to know: of the manifest it is only when the archive was made."""
    digest = sha256_of(str(sealed))
    entry: dict[str, Any] = {"mode": "0400", "user": 0, "group": 0, "size": 8, "type": "file"}
    entry["sha256"] = hashlib.sha256(b"precious").hexdigest()
    for sha256 in ("", digest):
        asked = request(sealed, folder, sources=[SOURCE], sha256=sha256)
        status, result, left = opens(programs, monkeypatch, asked, key.private)
        assert (status, left) == (0, ["archive.tar.gz", "result.json"]), result
        assert result == {
            "error": "",
            "made": 5,
            "plain_sha256": sha256_of(str(folder / "archive.tar.gz")),
            "sha256": digest,
            "signed_by": "nobody",
            "sources": [{**SOURCE, "entries": {"key/etc/munge/munge.key": entry}}],
        }
        with tarfile.open(folder / "archive.tar.gz") as archive:
            content = archive.extractfile("key/etc/munge/munge.key")
            assert content is not None
            assert content.read() == b"precious"
        (folder / "archive.tar.gz").unlink()


def test_an_error_is_written_and_nothing_else(
    programs: Any,
    key: SimpleNamespace,
    other_key: SimpleNamespace,
    sealed: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def error(archive: Path = sealed, private: bytes = key.private, **more: Any) -> str:
        asked = request(archive, folder, **{"sources": [SOURCE], **more})
        status, result, left = opens(programs, monkeypatch, asked, private)
        assert (status, left, list(result)) == (1, ["result.json"], ["error"])
        return str(result["error"])

    gone = sealed.parent / "gone"
    assert error(gone) == f"{gone} is not there"
    size = sealed.stat().st_size
    other = NAME + " is an archive of hal-mgmt1 of site hal, not of {} of site {}"
    assert error(sha256="0" * 64) == f"{NAME} is damaged: {size} bytes that are not what was stored"
    assert error(sha256=["x"]) == f"{NAME} is damaged: {size} bytes that are not what was stored"
    assert error(private=b" \n") == "backup_private_key is empty: without it no archive can be read"
    assert error(node="hal-mgmt2") == other.format("hal-mgmt2", "hal")
    assert error(site="pal") == other.format("hal-mgmt1", "pal")
    assert f"{NAME} was encrypted for key" in error(private=other_key.private)
    assert error(names=["ldap"]) == "the archive has no ldap; it has key"
    assert error(names="key") == "restore_sources is a list: -e '{\"restore_sources\": [key]}'"
    assert error(sources=[]).startswith("backup_sources declares no key for this node")
    assert error(sources=[5]) == "AttributeError: 'int' object has no attribute 'get'"
    assert error(permitted=[]) == (
        f"{NAME} may be from anybody: nobody signed it. If you know where it is from, -e restore_unsigned_ok=true"
        " permits it"
    )
    sealed.write_text("no archive")
    assert error() == f"{NAME} is not an encrypted archive"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, f"{NAME}.json is not what the store writes") for text in ("[]", "{}", "null")),
        *((text, f"{NAME}.json cannot be read: ") for text in ("{", "\x1b[2J")),
    ],
)
def test_what_lies_beside_an_archive_and_is_not_of_the_store_is_named(
    programs: Any,
    key: SimpleNamespace,
    sealed: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    said: str,
) -> None:
    """Who has the store may put anything there; a copy may be cut off."""
    asked = request(sealed, folder, sources=[SOURCE])
    sealed.with_name(f"{NAME}.json").write_text(text)
    status, result, left = opens(programs, monkeypatch, asked, key.private)
    assert (status, left) == (1, ["result.json"])
    assert said in result["error"]
    assert result["error"].isprintable()


def test_an_archive_is_not_opened_where_it_has_no_room(
    programs: Any, key: SimpleNamespace, sealed: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpg would say that it is damaged."""
    monkeypatch.setattr(programs.common, "free_mb", lambda path: 64 if path == str(folder) else 10**6)
    status, result, left = opens(programs, monkeypatch, request(sealed, folder, sources=[SOURCE]), key.private)
    said = f"no room for what is decrypted in {folder}: 64 MB are free, it needs 1 MB and 64 MB have to stay free"
    assert (status, result, left) == (1, {"error": said}, ["result.json"])


def test_an_archive_of_tomorrow_is_refused(programs: Any, key: SimpleNamespace, tmp_path: Path, folder: Path) -> None:
    """Nothing that is on the node would be newer, and nobody would be warned. A clock may be ahead a little."""
    for ahead, refused in ((7200, True), (1800, False)):
        path = seal(programs, key, tmp_path / "x", MEMBERS, manifest("key", made=int(time.time()) + ahead))
        asked = request(path, folder, sources=[SOURCE])
        if refused:
            with pytest.raises(
                programs.common.Problem, match=r"^x says that it was made at .*: that is in the future$"
            ):
                programs.open.opened(asked, key.private)
            assert os.listdir(folder) == []
        else:
            programs.open.opened(asked, key.private)


@pytest.mark.parametrize(
    "name", ["hal-mgmt1-20261126T023000Z.tar.gz.gpg", "hal-login-19700101T000005Z.tar.gz.gpg", "new"]
)
def test_an_old_archive_is_not_given_as_a_new_one(
    programs: Any, key: SimpleNamespace, sealed: Path, folder: Path, name: str
) -> None:
    """By who has the store: the signature is right, and an account that was removed since would be there again."""
    path = sealed.rename(sealed.with_name(name))
    asked = request(path, folder, sources=[SOURCE], sha256=sha256_of(str(path)))
    with pytest.raises(programs.common.Problem) as refused:
        programs.open.opened(asked, key.private)
    made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(5))
    assert str(refused.value) == f"{name} was made at {made}: {NAME} is its name"
    assert os.listdir(folder) == []
    with pytest.raises(programs.common.Problem, match=r" is its name$"):
        programs.open.opened(request(path, folder, sources=[SOURCE], signature="AAAA"), key.private)
    programs.open.opened(request(path, folder, sources=[SOURCE]), key.private)  # a copy with nothing beside it


def test_what_an_archive_says_of_itself_is_no_command_for_the_terminal(
    programs: Any, key: SimpleNamespace, tmp_path: Path, folder: Path
) -> None:
    said = manifest("key", node="\x1b[2J", site="\u202e")
    path = seal(programs, key, tmp_path / "x", MEMBERS, said)
    with pytest.raises(programs.common.Problem) as refused:
        programs.open.opened(request(path, folder, sources=[SOURCE]), key.private)
    assert str(refused.value) == r"x is an archive of \x1b[2J of site \u202e, not of hal-mgmt1 of site hal"


def test_a_request_is_complete(programs: Any) -> None:
    for asked in ({"archive": "x"}, {**request(Path("x"), Path("y")), "more": 1}):
        with pytest.raises(programs.common.Problem, match=r"^a request has archive, folder, names, node, "):
            programs.open.command([json.dumps(asked)])


@pytest.fixture
def signers(programs: Any, tmp_path: Path) -> Path:
    """The keys of hal-mgmt1 that the controller knows: one; and private keys: own and other."""
    (tmp_path / "signers").mkdir()
    for name in ("own", "other"):
        programs.sign.make_key(str(tmp_path / name))
    public = programs.sign.public(str(tmp_path / "own"))
    (tmp_path / "signers" / f"{programs.sign.name_of(public)}.pem").write_text(public)
    return tmp_path / "signers"


def signature(programs: Any, tmp_path: Path, archive: Path, name: str = "own", **more: Any) -> str:
    said = {"site": "hal", "node": "hal-mgmt1", "made": 5, "digest": sha256_of(str(archive)), **more}
    return str(programs.sign.sign(str(tmp_path / name), programs.sign.statement(*said.values())))


def test_who_signed_an_archive_is_asked(
    programs: Any, key: SimpleNamespace, sealed: Path, folder: Path, signers: Path, tmp_path: Path
) -> None:
    right = signature(programs, tmp_path, sealed)

    def signed(given: Any, *permitted: str) -> Any:
        asked = request(sealed, folder, sources=[SOURCE], signature=given, signers=str(signers), permitted=permitted)
        try:
            seen = programs.open.opened(asked, key.private)["signed_by"]
            (folder / "archive.tar.gz").unlink()
            return seen
        except programs.common.Problem as error:
            assert os.listdir(folder) == []
            return str(error).partition(": ")[2].replace("If you know where it is from, -e ", "")

    assert signed(right) == "node"
    assert signed(right, "restore_unsigned_ok", "restore_revoked_ok") == "node"
    unsigned, revoked = (f". restore_{word}_ok=true permits it" for word in ("unsigned", "revoked"))
    forged = "no key that this controller knows of hal-mgmt1 made its signature"
    others = [
        signature(programs, tmp_path, sealed, "other"),
        signature(programs, tmp_path, sealed, node="hal-mgmt2"),
        signature(programs, tmp_path, sealed, made=6),
        signature(programs, tmp_path, sealed.with_suffix(".plain")),
        "AAAA",
        {"a": "b"},
    ]
    for given in others:
        assert signed(given) == signed(given, "restore_revoked_ok") == forged + unsigned
        assert signed(given, "restore_unsigned_ok") == "nobody"
    assert signed("") == signed("", "restore_revoked_ok") == "nobody signed it" + unsigned
    (public,) = signers.iterdir()
    public.rename(f"{public}.revoked")
    said = "it was signed by a key that was revoked since" + revoked
    assert signed(right) == signed(right, "restore_unsigned_ok") == said
    assert signed(right, "restore_revoked_ok") == "revoked"
    for given in others:  # the store, after the break-in
        assert signed(given, "restore_revoked_ok") == forged + unsigned


def test_an_archive_of_before_there_were_signatures_is_opened_when_permitted(
    programs: Any, key: SimpleNamespace, tmp_path: Path, folder: Path
) -> None:
    """Its manifest says all that was declared; only the names count."""
    state = {"name": "slurm_state", "kind": "slurm_state", "conf": "/etc/slurm/slurm.conf", "stops": ["slurmctld"]}
    base = {"name": "slurm_database", "kind": "mariadb", "database": "acct", "socket": "/run/x", "stops": ["slurmdbd"]}
    record = {"name": "node_record", "kind": "files", "paths": ["/var/lib/hal"]}
    old = [{**SOURCE}, {**state, "location": "/var/spool/slurmctld"}, {**base, "tables": 3}, {**record, "left_out": []}]
    members = [
        *MEMBERS,
        *folders("node_record/var/lib/hal"),
        Member("node_record/var/lib/hal/network", "folder"),
        Member("node_record/var/lib/hal/network/pending", "link", target="/run/x"),
        *folders("slurm_database"),
        Member("slurm_database/dump.sql", content=b"-- Dump completed\n"),
        *folders("slurm_state/state"),
        Member("slurm_state/state/clustername", content=b"hal"),
    ]
    path = seal(programs, key, tmp_path / "old", members, manifest(made=5, sources=old))
    result = programs.open.opened(request(path, folder, sources=[SOURCE, state, base, record]), key.private)
    assert [one["name"] for one in result["sources"]] == ["key", "node_record", "slurm_database", "slurm_state"]
    assert sorted(result["sources"][1]["entries"]) == ["node_record/var/lib/hal"]
    assert result["sources"][2]["tables"] == 3
    assert "location" not in result["sources"][3]
