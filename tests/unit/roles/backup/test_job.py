"""The nightly job: one archive, handed over and remembered; nothing in clear is left, whatever happens."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_node.digest import sha256_of

# ssh as the server answers: what it was told, and what came, beside it.
SSH = """#!/bin/sh
printf '%s\\n' "$@" >{folder}/told
cat >{folder}/came
{answer}
"""


@pytest.fixture
def config(programs: Any, key: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A node that saves one folder, with a server and a key that signs."""
    programs.sign.make_key(str(tmp_path / "signing_key"))
    for name in ("work", "state", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "state" / "a").write_text("precious\n" * 3000)
    (tmp_path / "state" / "b").write_text("more")
    (tmp_path / "public.asc").write_bytes(key.public)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    server = {"name": "hal-login", "address": "192.0.2.9", "user": "hal-backup", "identity": str(tmp_path / "id")}
    return {
        "site": "hal",
        "node": "hal-mgmt1",
        "key": str(tmp_path / "public.asc"),
        "work": str(tmp_path / "work"),
        "reserve_mb": 0,
        "max_age_hours": 30,
        "sources": [{"name": "state", "kind": "files", "paths": [str(tmp_path / "state")]}],
        "signing_key": str(tmp_path / "signing_key"),
        "server": server,
    }


def answers(tmp_path: Path, answer: str) -> None:
    """The server answers so; in the shell that runs it $2 is the archive, $4 its digest."""
    path = tmp_path / "bin" / "ssh"
    path.write_text(SSH.format(folder=tmp_path, answer="for last; do :; done; set -- $last\n" + answer))
    path.chmod(0o755)


def written(tmp_path: Path, config: dict[str, Any]) -> str:
    (tmp_path / "config.json").write_text(json.dumps(config))
    return str(tmp_path / "config.json")


def left(config: dict[str, Any]) -> list[str]:
    return sorted(os.listdir(config["work"]))


def test_an_archive_is_handed_over_and_remembered(
    programs: Any, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(tmp_path, "echo stored $2 $4")
    assert programs.job.command([written(tmp_path, config), "save"]) == 0
    seen = json.loads((tmp_path / "work" / "status.json").read_text())
    stored, came = seen["stored"], tmp_path / "came"
    assert seen["last"]["error"] == ""
    assert 0 <= time.time() - seen["last"]["at"] < 3600
    assert stored["archive"] == "hal-mgmt1" + time.strftime("-%Y%m%dT%H%M%SZ.tar.gz.gpg", time.gmtime(stored["at"]))
    assert stored["size"] == came.stat().st_size
    assert stored["sha256"] == sha256_of(str(came))
    assert stored["sources"] == ["state"]
    assert stored["key_sha256"] == sha256_of(config["key"])
    assert capsys.readouterr().out == f"{stored['archive']} is stored, {stored['size']} bytes\n"
    assert left(config) == ["lock", "status.json"]
    assert (tmp_path / "told").read_text().splitlines() == [
        *("-F", "/dev/null", "-T", "-i", str(tmp_path / "id"), "-l", "hal-backup"),
        *("-o", "BatchMode=yes"),
        *("-o", "ConnectTimeout=20"),
        *("-o", "GlobalKnownHostsFile=/etc/ssh/ssh_known_hosts"),
        *("-o", "HostKeyAlias=hal-login"),
        *("-o", "IdentitiesOnly=yes"),
        *("-o", "ServerAliveInterval=30"),
        *("-o", "StrictHostKeyChecking=yes"),
        *("-o", "UserKnownHostsFile=none"),
        "192.0.2.9",
        "put {archive} {size} {sha256} signature={signature}".format(**stored),
    ]


def test_what_is_sent_is_signed(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    """By the key whose public half the controller gets, and asks for by its name."""
    answers(tmp_path, "echo stored $2 $4")
    programs.job.command([written(tmp_path, config), "save"])
    stored = json.loads((tmp_path / "work" / "status.json").read_text())["stored"]
    public = programs.sign.public(config["signing_key"])
    (tmp_path / "signers").mkdir()
    (tmp_path / "signers" / "x.pem").write_text(public)
    words = f"hal-backup hal hal-mgmt1 {stored['at']} {stored['sha256']}\n".encode()
    assert programs.sign.signer(stored["signature"], words, str(tmp_path / "signers")) == "x.pem"
    assert stored["signer"] == programs.sign.name_of(public) == programs.job.status(config)["signer"]


def test_the_public_half_is_printed_and_the_key_is_made_once(
    programs: Any, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(config["signing_key"]).unlink()
    assert programs.job.signer(config) == ""
    for _ in range(2):
        assert programs.job.command([written(tmp_path, config), "key"]) == 0
    once, again = capsys.readouterr().out.split("-----END PUBLIC KEY-----\n")[:2]
    assert once == again
    assert once.startswith("-----BEGIN PUBLIC KEY-----\n")


def test_a_node_without_a_key_saves_nothing(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    Path(config["signing_key"]).unlink()
    with pytest.raises(programs.common.Problem, match=r"^openssl: "):
        programs.job.command([written(tmp_path, config), "save"])
    assert left(config) == ["lock", "status.json"]


@pytest.mark.parametrize("refused", ["link", "setuid"])
def test_what_a_restore_would_refuse_is_told_now(
    programs: Any, config: dict[str, Any], tmp_path: Path, refused: str
) -> None:
    """The archive is made and stored: by hand it can still be opened."""
    answers(tmp_path, "echo stored $2 $4")
    if refused == "link":
        (tmp_path / "state" / "logs").symlink_to("/var/log")
        said = f"state: {tmp_path}/state/logs in the archive is a link that leads to /var/log"
    else:
        (tmp_path / "state" / "a").chmod(0o4755)
        said = f"state: state{tmp_path}/state/a in the archive would run as its owner, whoever calls it (mode 4755)"
    with pytest.raises(programs.common.Problem) as told:
        programs.job.command([written(tmp_path, config), "save"])
    seen = json.loads((tmp_path / "work" / "status.json").read_text())
    name = seen["stored"]["archive"]
    assert str(told.value) == f"{name} is stored, and a restore would refuse it: {said}"
    assert seen["last"]["error"] == str(told.value)
    assert name.startswith("hal-mgmt1-")
    assert programs.job.due(config, seen["stored"], 0) == []


def test_so_is_a_dump_that_a_restore_would_refuse(
    programs: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, "echo stored $2 $4")
    source = {"name": "grafana", "kind": "mariadb", "database": "grafana", "socket": "/run/x"}
    program = tmp_path / "bin" / "mysqldump"
    for line, fails in (("DROP TABLE IF EXISTS \\`a\\`;", False), ("DELIMITER ;;", True)):
        program.write_text(f'#!/bin/sh\necho "{line}"\necho "-- Dump completed"\n')
        program.chmod(0o755)
        config["sources"] = [source]
        if not fails:
            assert programs.job.command([written(tmp_path, config), "save"]) == 0
            continue
        said = r"a restore would refuse it: line 1 of the dump is not one that mysqldump writes: DELIMITER ;;$"
        with pytest.raises(programs.common.Problem, match=said):
            programs.job.command([written(tmp_path, config), "save"])


def test_an_archive_is_not_saved_in_itself(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    """It would be copied into its own copy until the disk is full."""
    config["sources"] = [{"name": "all", "kind": "files", "paths": [str(tmp_path / "work")]}]
    with pytest.raises(programs.common.Problem) as refused:
        programs.job.command([written(tmp_path, config), "save"])
    assert str(refused.value) == f"all: archives are made in {tmp_path}/work, which is in {tmp_path}/work"
    assert left(config) == ["lock", "status.json"]


def test_a_declaration_that_says_too_little_saves_nothing(
    programs: Any, config: dict[str, Any], tmp_path: Path
) -> None:
    config["sources"].append({"name": "more", "kind": "files", "paths": "nowhere"})
    with pytest.raises(programs.common.Problem, match=r"^backup_sources: paths of more has to be a list, not nowhere$"):
        programs.job.command([written(tmp_path, config), "save"])
    assert left(config) == ["lock", "status.json"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "hal-login did not say that it stored the archive: no answer"),
        ("echo stored $2", "hal-login did not say that it stored the archive: stored NAME"),
        ("echo stored $2 $4 twice", "hal-login did not say that it stored the archive: stored NAME DIGEST twice"),
        ("printf %0300d 0", "hal-login did not say that it stored the archive: " + "0" * 200),
        ("printf '\\033[2J'", r"hal-login did not say that it stored the archive: \x1b[2J"),
        ("echo disk is full >&2; exit 1", "hal-login did not take the archive: ssh: disk is full"),
    ],
)
def test_what_the_server_did_not_confirm_was_not_stored(
    programs: Any, config: dict[str, Any], tmp_path: Path, answer: str, said: str
) -> None:
    answers(tmp_path, answer)
    former = {**programs.job.NEVER, "archive": "former", "room": 5}
    programs.job.remember(config, "", former)
    with pytest.raises(programs.common.Problem) as refused:
        programs.job.command([written(tmp_path, config), "save"])
    _, name, _, digest, _ = (tmp_path / "told").read_text().splitlines()[-1].split()
    assert str(refused.value).replace(name, "NAME").replace(digest, "DIGEST") == said
    seen = json.loads((tmp_path / "work" / "status.json").read_text())
    assert (seen["last"]["error"], seen["stored"]) == (str(refused.value), former)
    assert left(config) == ["lock", "status.json"]


def test_an_error_without_words_is_remembered_by_its_kind(
    programs: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(programs.job, "save_now", fails)
    with pytest.raises(RuntimeError):
        programs.job.command([written(tmp_path, config), "save"])
    assert programs.job.remembered(config)["last"]["error"] == "RuntimeError"
    assert programs.job.remembered(config)["stored"] == programs.job.NEVER


def test_one_backup_at_a_time(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    """And one that was killed leaves nothing for long; what is not its own stays."""
    for name in ("run-killed", "other"):
        (tmp_path / "work" / name).mkdir()
    with open(tmp_path / "work" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(programs.common.Problem, match=r"^another backup, or a restore, runs on hal-mgmt1$"):
            programs.job.save_now(config, str(tmp_path / "archive"))
    assert left(config) == ["lock", "other", "run-killed"]
    programs.job.save_now(config, str(tmp_path / "archive"))
    assert left(config) == ["lock", "other"]


def test_room_for_the_next_archive_is_what_this_one_took(
    programs: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copied files with the manifest, and the packed and the encrypted archive."""
    sizes, pack = [], programs.archive.pack

    def packed(folder: str, manifest: Any, path: str) -> Any:
        read = pack(folder, manifest, path)
        sizes.append(sum(one.stat().st_size for one in Path(folder).rglob("*") if one.is_file()))
        sizes.append(2 * Path(path).stat().st_size)
        return read

    monkeypatch.setattr(programs.job.backup_archive, "pack", packed)
    stored = programs.job.save_now(config, str(tmp_path / "archive"))
    assert stored["room"] == sum(sizes)
    asked: list[Any] = []
    monkeypatch.setattr(programs.job, "need_room", lambda *words: asked.append(words))
    programs.job.save_now(config, str(tmp_path / "archive"))
    programs.job.remember(config, "", stored)
    programs.job.save_now({**config, "reserve_mb": 7}, str(tmp_path / "archive"))
    programs.job.remember(config, "", {"archive": "of a former version, without room"})
    programs.job.save_now(config, str(tmp_path / "archive"))
    assert asked == [
        (config["work"], room, reserve, "an archive") for room, reserve in ((0, 0), (stored["room"], 7), (0, 0))
    ]


def test_nothing_in_clear_is_there_any_longer_than_needed(
    programs: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, encrypt = [], programs.archive.encrypt

    def noted(plain: str, sealed: str, public: bytes) -> None:
        seen.append(os.listdir(os.path.dirname(plain)))
        encrypt(plain, sealed, public)

    monkeypatch.setattr(programs.job.backup_archive, "encrypt", noted)
    monkeypatch.setattr(
        programs.job, "send", lambda server, path, stored: seen.append(os.listdir(os.path.dirname(path)))
    )
    stored = programs.job.save_now(config)
    assert seen == [["archive.tar.gz"], [stored["archive"]]]


def test_the_manifest_says_what_was_saved(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(programs.job, "send", lambda *_: None)
    pack = programs.archive.pack

    def packed(*words: Any) -> Any:
        made.append(pack(*words))
        return made[-1]

    monkeypatch.setattr(programs.job.backup_archive, "pack", packed)
    monkeypatch.setattr(programs.sources, "KINDS", {"files": lambda source, into: {"tables": 5}})
    stored = programs.job.save_now(config)
    assert [manifest for manifest, _ in made] == [
        {
            "format": 1,
            "site": "hal",
            "node": "hal-mgmt1",
            "made": stored["at"],
            "sources": [{"name": "state", "kind": "files", "tables": 5}],
            "files": {},
        }
    ]


def test_an_archive_is_made_where_it_is_asked_for(
    programs: Any, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That says nothing of what the server has."""
    assert programs.job.command([written(tmp_path, config), "save", str(tmp_path / "archive")]) == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == sha256_of(str(tmp_path / "archive"))
    assert left(config) == ["lock"]


@pytest.mark.parametrize("words", [["save", "a", "b"], ["stat"], ["status", "x"], ["key", "x"]])
def test_what_is_not_known_is_refused(programs: Any, config: dict[str, Any], tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(programs.common.Problem, match=f"^save, save FILE, key or status, not {' '.join(words)}$"):
        programs.job.command([written(tmp_path, config), *words])
    assert left(config) == []


def test_an_archive_is_due_for_a_reason(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    stored = {"archive": "x", "sources": ["state"], "key_sha256": sha256_of(config["key"])}
    stored["signer"] = programs.job.signer(config)
    assert programs.job.due(config, stored, 30) == []
    for other in ({**stored, "signer": "0" * 16}, {name: stored[name] for name in stored if name != "signer"}):
        assert programs.job.due(config, other, 30) == ["it was not signed by the key of this node"]
    assert programs.job.due(config, programs.job.NEVER, 0) == ["none was ever stored"]
    (tmp_path / "public.asc").write_text("another")
    assert programs.job.due({**config, "sources": []}, stored, 30.6) == [
        "the last one stored is 31 hours old",
        "other sources are declared than it has",
        "it was encrypted for another key",
    ]


def test_days_of_a_certificate_are_whole_ones(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, end = tmp_path / "id-cert.pub", time.mktime((2026, 12, 1, 10, 0, 0, 0, 0, -1))
    told: list[list[str]] = []

    def run(argv: list[str]) -> str:
        told.append(argv)
        return valid

    monkeypatch.setattr(programs.job, "run", run)
    assert programs.job.days_left(str(path)) == -1
    assert told == []
    path.touch()
    valid = "        Valid: forever\n"
    assert programs.job.days_left(str(path)) == -1
    valid = "id-cert.pub:\n        Valid: from 2026-11-01T10:00:00 to 2026-12-01T10:00:00\n"
    for before, days in ((3 * 86400, 3), (3 * 86400 + 1, 3), (3 * 86400 - 1, 2), (0, 0), (-1, -1)):
        monkeypatch.setattr(programs.job.time, "time", lambda before=before: end - before)
        assert programs.job.days_left(str(path)) == days
    assert told[0] == ["ssh-keygen", "-L", "-f", str(path)]


def test_status_says_how_it_is(
    programs: Any,
    config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = {"archive": "x", "at": 1000, "sources": ["state"], "key_sha256": "another", "room": 1}
    programs.job.remember(config, "ssh: no route", stored)
    monkeypatch.setattr(programs.job.time, "time", lambda: 1000 + 3600 * 29.94)
    monkeypatch.setattr(programs.job, "days_left", lambda path: 9 if path == str(tmp_path / "id-cert.pub") else 0)
    assert programs.job.command([written(tmp_path, config), "status"]) == 0
    shown = capsys.readouterr().out
    expected = {
        "age_hours": 29.9,
        "archive": "x",
        "certificate_days_left": 9,
        "due": ["it was encrypted for another key", "it was not signed by the key of this node"],
        "error": "ssh: no route",
        "signer": programs.sign.name_of(programs.sign.public(config["signing_key"])),
        "sources": ["state"],
    }
    assert shown == json.dumps(expected, indent=1, sort_keys=True) + "\n"


def test_status_of_a_node_that_never_saved(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.job.time, "time", lambda: 7200.0)
    assert programs.job.status(config) == {
        "age_hours": 2.0,
        "archive": "",
        "certificate_days_left": -1,
        "due": ["none was ever stored"],
        "error": "",
        "signer": programs.job.signer(config),
        "sources": [],
    }
