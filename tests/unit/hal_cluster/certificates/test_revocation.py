"""Revoked is refused: whatever clocks and hands did to the files, with OpenSSH's own ssh-keygen asked about it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster import lock
from hal_cluster.certificates import authority, cli, files, revoked
from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.keygen import fingerprint, let_in, public_key
from tests.unit import playing
from tests.unit.hal_cluster.certificates.test_certificates import authorities, make_key
from tests.unit.interpreters import LOCAL
from tests.unit.modules import PROJECT

Program = Callable[..., tuple[int, list[str], str]]
REFUSED = PROJECT / "roles/ssh/files/refused.sh"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The authorities of a site, and certificates 1 and 2 of alice and bob."""
    folder = authorities(tmp_path)
    for name in ("alice", "bob"):
        Authority(folder).issue(name, make_key(tmp_path / name), [name], 1)
    return folder


@pytest.fixture
def program(folder: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    def run(*words: str | Path) -> tuple[int, list[str], str]:
        more = ("--reason", "lost") if words[0] == "revoke" else ()
        status = cli.main(["--authority", str(folder), *map(str, words), *more])
        said = capsys.readouterr()
        assert len(said.err.splitlines()) <= 1, "errors are one line each"
        return status, said.out.splitlines(), said.err.strip()

    return run


def refused(krl: Path, *files: Path) -> list[bool]:
    """What OpenSSH says of each: sshd asks the list in the same way."""
    words = ["ssh-keygen", "-Q", "-f", str(krl)]
    return [subprocess.run([*words, str(file)], capture_output=True, check=False).returncode == 1 for file in files]


def content(folder: Path) -> dict[str, bytes]:
    there = [*folder.iterdir(), folder.parent / "known_hosts"]
    return {path.name: path.read_bytes() for path in there if path.is_file()}


def sign(authority: Path, user: str, key: Path) -> None:
    words = ["ssh-keygen", "-q", "-s", str(authority), "-I", user, "-n", user, str(key)]
    subprocess.run(words, check=True)


# --- time


def test_a_clock_that_was_ahead_keeps_no_key_valid(program: Program, folder: Path, tmp_path: Path) -> None:
    os.utime(folder / "revoked_keys", (4e9, 4e9))  # 2096
    assert program("revoke", "--user", "alice") == (0, ["serial: 1", str(folder / "revoked_keys")], "")
    os.utime(folder / "revoked_keys", (4e9, 4e9))
    assert program("revoke", "--key", tmp_path / "bob.pub")[0] == 0
    assert refused(folder / "revoked_keys", tmp_path / "alice-cert.pub", tmp_path / "bob.pub") == [True, True]


def at(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """Have the controller's clock be so much ahead."""

    class Ahead:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.now(zone) + timedelta(days)

    monkeypatch.setattr(authority, "datetime", Ahead)


def test_a_clock_that_is_ahead_takes_no_certificate_for_one_that_ran_out(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 300)  # alice's is good for a day
    assert program("revoke", "--user", "alice")[:2] == (0, ["serial: 1", str(folder / "revoked_keys")])
    assert refused(folder / "revoked_keys", tmp_path / "alice-cert.pub", tmp_path / "bob-cert.pub") == [True, False]
    at(monkeypatch, 400)
    status, out, said = program("revoke", "--user", "bob")
    assert (status, out) == (2, [])
    since = said.removeprefix("bob has had no valid certificate since ")
    assert (
        since[10:] == f"{since[10:20]} by this computer's clock; python -m hal_cluster.certificates list shows all"
    ), said


def test_a_list_that_differs_in_its_date_alone_stays(program: Program, folder: Path) -> None:
    program("revoke", "--user", "alice")
    krl = folder / "revoked_keys"
    made = krl.read_bytes()
    krl.write_bytes(made[:20] + bytes(8) + made[28:])  # 1970
    before = krl.read_bytes(), krl.stat().st_ino
    assert program("revoke", "--user", "alice") == (0, [], "")
    assert (krl.read_bytes(), krl.stat().st_ino) == before
    krl.write_bytes(made[:12] + b"\1" + made[13:])
    assert program("build") == (0, [str(krl)], "")
    assert krl.read_bytes()[12] == 0


def test_revoked_once_more_an_old_list_is_replaced(program: Program, folder: Path, tmp_path: Path) -> None:
    old = (folder / "revoked_keys").read_bytes()
    program("revoke", "--user", "alice")
    (folder / "revoked_keys").write_bytes(old)
    assert program("revoke", "--user", "alice") == (0, [str(folder / "revoked_keys")], "")
    assert refused(folder / "revoked_keys", tmp_path / "alice-cert.pub", tmp_path / "bob-cert.pub") == [True, False]


# --- proof


def test_a_list_that_does_not_refuse_is_not_put_in_place(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ssh-keygen that leaves out keys, as one might whose format is another."""
    stand_in = tmp_path / "bin" / "ssh-keygen"
    stand_in.parent.mkdir()
    stand_in.write_text(
        f'#!/bin/sh\ncase $* in *" -k "*) for last; do :; done; sed -i /^key/d "$last" ;; esac\n'
        f'exec {shutil.which("ssh-keygen")} "$@"\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    before = (folder / "revoked_keys").read_bytes()
    status, out, said = program("revoke", "--key", tmp_path / "bob.pub")
    mark = fingerprint(public_key(tmp_path / "bob.pub"))
    assert (status, out) == (2, [])
    assert said == f"the list that ssh-keygen made does not refuse key: {mark}: the revocation is not in effect"
    assert (folder / "revoked_keys").read_bytes() == before


def test_the_list_in_place_is_asked_too(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lost(path: Path, content: bytes, mode: int) -> None:
        if path.name != "revoked_keys":
            files.write(path, content, mode)

    monkeypatch.setattr(revoked, "write", lost)
    status, out, said = program("revoke", "--serial", "2")
    assert (status, out) == (2, [])
    assert said == f"{folder}/revoked_keys does not refuse serial: 2: the revocation is not in effect"


def test_what_a_list_is_asked_about_is_worth_nothing(program: Program, folder: Path, tmp_path: Path) -> None:
    program("revoke", "--user", "alice")
    program("revoke", "--key", tmp_path / "bob.pub")
    certificate, key = (folder / "revoked_samples").read_text().splitlines()
    assert key == f"{public_key(tmp_path / 'bob.pub')} key: {fingerprint(public_key(tmp_path / 'bob.pub'))}"
    assert certificate.endswith(" serial: 1")
    (tmp_path / "sample").write_text(certificate)
    words = ["ssh-keygen", "-L", "-f", str(tmp_path / "sample")]
    shown = subprocess.run(words, env={**os.environ, "TZ": "UTC"}, check=True, capture_output=True, text=True).stdout
    lines = [line.strip() for line in shown.splitlines()]
    assert {"Serial: 1", "Valid: from 1999-01-01T00:00:00 to 1999-01-02T00:00:00"} <= set(lines)
    assert lines[lines.index("Principals:") + 1] == "nobody"
    marks = {fingerprint(public_key(folder / f"{name}.pub")) for name in ("user_ca", "host_ca", "admin", "../../alice")}
    of = next(line for line in lines if line.startswith("Public key:")).split()[-1]
    assert of not in marks, "a key of its own, which is gone"
    private = [path.name for path in folder.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert sorted(private) == ["admin", "host_ca", "user_ca"]
    assert stat.S_IMODE((folder / "revoked_samples").stat().st_mode) == 0o600


def test_asked_about_what_it_cannot_read_openssh_answers_nothing(folder: Path, tmp_path: Path) -> None:
    key = public_key(tmp_path / "bob.pub")
    assert let_in(folder / "revoked_keys", [key]) == [key]
    assert let_in(folder / "revoked_keys", []) == []
    with pytest.raises(CertificateError, match=r"^ssh-keygen: Cannot load public key "):
        let_in(folder / "revoked_keys", [key, "ssh-ed25519 AAAA"])
    (tmp_path / "empty").touch()
    with pytest.raises(CertificateError, match=r"^ssh-keygen: Invalid KRL file"):
        let_in(tmp_path / "empty", [])


def test_what_is_said_drives_no_terminal(program: Program, folder: Path, tmp_path: Path) -> None:
    """An administrator revokes what a user named, and a register may come from elsewhere."""
    assert program("revoke", "--key", tmp_path / "a\x1b[2J.pub")[2].startswith(f"{tmp_path}/a\\x1b[2J.pub: cannot be ")
    one = {**json.loads((folder / "issued.jsonl").read_text().splitlines()[0]), "user": "eve\x1b[2J\u202e"}
    (folder / "issued.jsonl").write_text(json.dumps(one) + "\n")
    assert program("list")[1][1].split()[1] == "eve\\x1b[2J\\u202e"


# --- registers


def test_nothing_is_revoked_by_an_empty_register(program: Program, folder: Path, tmp_path: Path) -> None:
    assert program("build") == (0, [], "")
    assert refused(folder / "revoked_keys", tmp_path / "alice-cert.pub", tmp_path / "bob-cert.pub") == [False, False]
    assert Authority(folder).users.samples() == []
    (folder / "revoked_samples").unlink()  # of a site of before
    assert Authority(folder).users.samples() == []


def test_a_line_that_was_added_by_hand_is_in_effect_when_the_list_was_made(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    with (folder / "revoked_users").open("a") as file:
        file.write(f"\n  serial:  2   # bob\nkey: {(tmp_path / 'alice.pub').read_text()}serial: 2\n")
    said = f"{folder}/revoked_users:3: no list was made since this line was added: "
    with pytest.raises(CertificateError) as caught:
        Authority(folder).users.samples()
    assert str(caught.value) == f"{said}python -m hal_cluster.certificates --authority {folder} build"
    assert program("build") == (0, [str(folder / "revoked_keys")], "")
    assert refused(folder / "revoked_keys", tmp_path / "bob-cert.pub", tmp_path / "alice.pub") == [True, True]
    names = [one.split(" ", 2)[2] for one in Authority(folder).users.samples()]
    assert names == ["serial: 2", f"key: {fingerprint(public_key(tmp_path / 'alice.pub'))}"]
    assert [row.split()[4] for row in program("list")[1][1:]] == ["valid", "revoked"]


@pytest.mark.parametrize(
    "line",
    [
        *("serial: 010", "serial: 0", "serial: 1-9", "serial:", "serial: one", f"serial: {10**19}"),
        *("id: alice", "key: ssh-ed25519", "ssh-ed25519 AAAA", "key: ssh-ed25519-cert-v01@openssh.com AAAA", "alice"),
    ],
)
def test_a_line_that_revokes_nothing_is_named_before_anything_is_done(
    program: Program, folder: Path, tmp_path: Path, line: str
) -> None:
    with (folder / "revoked_users").open("a") as file:
        file.write(f"{line}\n")
    before = content(folder)
    said = f'{folder}/revoked_users:2: "{line}" revokes nothing; write "serial: NUMBER" or "key: TYPE BASE64"'
    for words in (("build",), ("build", "--taken-back"), ("revoke", "--user", "alice"), ("list",)):
        assert program(*words) == (2, [], said)
    assert program("issue", "carol", "--key", tmp_path / "bob.pub") == (2, [], said)
    assert content(folder) == before


def test_a_key_that_openssh_cannot_read_is_named(program: Program, folder: Path) -> None:
    with (folder / "revoked_users").open("a") as file:
        file.write("key: ssh-ed25519 AAAA\n")
    before = content(folder)
    assert program("build") == (2, [], f"{folder}/revoked_users:2: OpenSSH cannot read this key")
    assert content(folder) == before


def test_no_list_forgets_what_a_register_lost(program: Program, folder: Path, tmp_path: Path) -> None:
    """Restored from an old backup, or edited: until somebody says that it was meant."""
    old = (folder / "revoked_users").read_text()
    program("revoke", "--user", "alice")
    program("revoke", "--key", tmp_path / "bob.pub")
    (folder / "revoked_users").write_text(old)
    before = content(folder)
    said = (
        f"{folder}/revoked_users no longer has serial: 1, key: {fingerprint(public_key(tmp_path / 'bob.pub'))}, which"
        " revoked_keys refuses: put the lines back, or, if that was to take a revocation back:"
        f" python -m hal_cluster.certificates --authority {folder} build --taken-back"
    )
    assert program("build") == (2, [], said)
    assert program("revoke", "--serial", "2") == (2, [], said)
    assert program("issue", "bob", "--key", tmp_path / "bob.pub") == (2, [], said), "its key is revoked"
    with pytest.raises(CertificateError) as caught:
        Authority(folder).users.samples()
    assert str(caught.value) == said
    assert content(folder) == before

    assert program("build", "--taken-back") == (0, [str(folder / "revoked_keys")], "")
    assert refused(folder / "revoked_keys", tmp_path / "alice-cert.pub", tmp_path / "bob.pub") == [False, False]
    assert program("build") == (0, [], "")


def test_a_register_that_is_gone_is_no_empty_one(program: Program, folder: Path, tmp_path: Path) -> None:
    program("revoke", "--user", "alice")
    (folder / "revoked_users").unlink()
    before = content(folder)
    said = f"{folder}/revoked_users is missing, and its list is there; restore it from its backup"
    for words in (("build",), ("build", "--taken-back"), ("revoke", "--user", "bob")):
        assert program(*words) == (2, [], said)
    assert content(folder) == before
    for name in ("revoked_keys", "revoked_samples"):  # nor is one of a folder that is another
        (folder / name).unlink()
        with pytest.raises(CertificateError, match=r"revoked_users is missing; restore it, or for a new site: "):
            Authority(folder).users.samples()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("revoked_samples", b"ssh-ed25519 AAAA\n", ":1: cannot be read; restore it from its backup"),
        ("revoked_users", b"\xff", ": cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: "),
        ("revoked_hosts", b"hal05 ssh-ed25519 AAAA x\n", ':1: "hal05 ssh-ed25519 AAAA x" revokes nothing; write "@'),
        ("revoked_hosts", b"#\n@revoked * AAAA\n", ':2: "@revoked * AAAA" revokes nothing; write "@revoked * TYPE'),
        ("revoked_hosts", b"\n@revoked * ssh-ed25519 AAAA x\n", ":2: OpenSSH cannot read this key"),
        (
            "revoked_hosts",
            b"@revoked hal05 ssh-ed25519 AAAA\n",
            ':1: "@revoked hal05 ssh-ed25519 AAAA" revokes nothing',
        ),
    ],
)
def test_what_cannot_be_read_is_named(program: Program, folder: Path, name: str, text: bytes, said: str) -> None:
    (folder / name).write_bytes(text)
    before = content(folder)
    for words in (("build",), ("revoke", "--user", "alice")):
        status, out, error = program(*words)
        assert (status, out) == (2, [])
        assert error.startswith(f"{folder}/{name}{said}")
    assert content(folder) == before


def test_who_changes_the_registers_at_this_moment_is_waited_for_and_named(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0)
    before = content(folder)
    with Authority(folder).locked():
        for words in (("build",), ("revoke", "--user", "alice"), ("issue", "carol", "--key", tmp_path / "bob.pub")):
            status, out, said = program(*words)
            assert (status, out) == (2, [])
            assert said.startswith("the site's authorities: process ")
    assert {**content(folder), ".lock": b""} == {**before, ".lock": b""}
    assert stat.S_IMODE((folder / ".lock").stat().st_mode) == 0o600


# --- authorities and nodes


def test_certificates_of_an_authority_that_was_revoked_are_refused_and_the_own_one_cannot_be(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    former = make_key(tmp_path / "former_ca")
    sign(tmp_path / "former_ca", "carol", make_key(tmp_path / "carol"))
    assert program("revoke", "--key", former)[0] == 0
    asked = [tmp_path / name for name in ("carol-cert.pub", "carol.pub", "alice-cert.pub")]
    assert refused(folder / "revoked_keys", *asked) == [True, False, False]

    before = content(folder)
    status, out, said = program("revoke", "--key", folder / "user_ca.pub")
    assert (status, out) == (2, [])
    assert said.startswith(f"{folder}/user_ca.pub is the authority of all users' certificates; without it nobody ")
    assert content(folder) == before


def test_a_site_with_a_new_authority_is_asked_about_certificates_of_that(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    program("revoke", "--user", "alice")
    for name in ("user_ca", "user_ca.pub"):
        (folder / name).unlink()
    make_key(folder / "user_ca")
    assert program("revoke", "--user", "bob")[0] == 0
    assert let_in(folder / "revoked_keys", Authority(folder).users.samples()) == []


def test_a_node_loses_the_keys_by_which_it_sends_and_signs_backups(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    """What it shows, and what it comes in by: the server of the archives asks the list of users."""
    role = yaml.safe_load((PROJECT / "roles/backup/vars/main.yml").read_text())
    assert role["__backup_signed_dir"] == "{{ hal_state_dir }}/ca/backup"
    name = role["__backup_signed_key"].replace("{{ inventory_hostname }}", "hal05")
    name = name.replace("{{ hal_node.addresses.management }}", "10.0.0.5")
    (folder / "backup").mkdir()
    sender = make_key(tmp_path / "sender")
    shutil.copy(sender, name.replace("{{ __backup_signed_dir }}", str(folder / "backup")))
    shutil.copy(make_key(tmp_path / "host"), folder / "hosts" / "hal05_10.0.0.5.pub")
    sign(folder / "user_ca", "hal-backup", sender)
    assert role["__backup_signers_dir"] == "{{ __backup_signed_dir }}/signers/{{ inventory_hostname }}"
    signers = {name: folder / "backup" / "signers" / name / "1.pem" for name in ("hal05", "hal06")}
    for signer in signers.values():
        signer.parent.mkdir(parents=True)
        signer.touch()

    node = ("revoke", "--node", "hal05", "--address", "10.0.0.5")
    added = [f"@revoked * {public_key(tmp_path / 'host.pub')} hal05: lost", f"key: {public_key(sender)}"]
    made = [str(folder / "revoked_keys"), str(folder.parent / "known_hosts")]
    assert program(*node) == (0, [*added, f"{signers['hal05']}.revoked", *made], "")
    assert [path.is_file() for path in (signers["hal06"], Path(f"{signers['hal05']}.revoked"))] == [True, True]
    assert not signers["hal05"].exists()
    assert refused(folder / "revoked_keys", tmp_path / "sender-cert.pub", tmp_path / "alice-cert.pub") == [True, False]
    assert "hal05, sends backups: lost\nkey: " in (folder / "revoked_users").read_text()
    assert program(*node) == (0, [], "")

    (folder / "hosts" / "hal05_10.0.0.5.pub").unlink()
    assert program(*node) == (0, [], ""), "a key by which it sends is enough"
    (folder / "backup" / "hal05_10.0.0.5.pub").unlink()
    assert program(*node)[0] == 2
    Path(f"{signers['hal05']}.revoked").rename(signers["hal05"])
    assert program(*node) == (0, [f"{signers['hal05']}.revoked"], "")


@pytest.mark.parametrize("address", ["10.0.0.5", ""])
def test_a_node_loses_the_keys_that_it_had_before(program: Program, folder: Path, tmp_path: Path, address: str) -> None:
    """Who has its former disk has them. A node that left the model has no address any more."""
    (folder / "backup").mkdir()
    keys = {}
    for number, name in enumerate(("hal05_10.0.0.5.pub", "hal05_10.0.0.5.pub.17.2026-11-26@03:02:48~")):
        for kind in ("hosts", "backup"):
            keys[kind, number] = make_key(tmp_path / f"{kind}{number}")
            shutil.copy(keys[kind, number], folder / kind / name)
    for other in ("hal05_10.0.0.50.pub", "hal050_10.0.0.5.pub", "hal050_10.0.0.5.pub.17.x~"):
        shutil.copy(make_key(tmp_path / other), folder / "hosts" / other)
    sign(folder / "user_ca", "hal-backup", keys["backup", 0])
    shutil.copy(tmp_path / "backup0-cert.pub", folder / "backup" / "hal05_10.0.0.5-cert.pub")
    status, out, error = program("revoke", "--node", "hal05", "--address", address)
    assert (status, error) == (0, "")
    hosts = [keys["hosts", 0], keys["hosts", 1], *([] if address else [folder / "hosts" / "hal05_10.0.0.50.pub"])]
    assert {line.split(" hal05: ")[0] for line in out if line.startswith("@")} == {
        f"@revoked * {public_key(path)}" for path in hosts
    }
    sent = [f"key: {public_key(keys['backup', number])}" for number in (0, 1)]
    assert [line for line in out if line.startswith("key: ")] == sent


@pytest.mark.parametrize("name", ["*", "hal0?", "hal[0]5", "hal05_*", "../hosts/hal05", " hal05"])
def test_a_pattern_is_no_node(program: Program, folder: Path, tmp_path: Path, name: str) -> None:
    """Else all nodes would be revoked by who thinks of `--limit`."""
    shutil.copy(make_key(tmp_path / "host"), folder / "hosts" / "hal05_10.0.0.5.pub")
    signer = folder / "backup" / "signers" / "hal05" / "1.pem"
    signer.parent.mkdir(parents=True)
    signer.touch()
    before = content(folder)
    said = f"{name!r} is not a name; letters, digits, dots, dashes and underscores make one"
    assert program("revoke", "--node", name) == (2, [], said)
    assert (content(folder), signer.exists()) == (before, True)


@pytest.mark.parametrize("kind", ["hosts", "backup"])
@pytest.mark.parametrize("whose", ["admin", "user_ca", "host_ca", "../../alice"])
def test_a_node_takes_nobody_along_whose_key_it_showed(
    program: Program, folder: Path, tmp_path: Path, kind: str, whose: str
) -> None:
    """Before keys were looked at, or before a user had the key signed: it would lock out the controller, or a user."""
    (folder / "backup").mkdir()
    shutil.copy(make_key(tmp_path / "host"), folder / "hosts" / "hal05_10.0.0.5.pub")
    shown = folder / kind / "hal05_10.0.0.5.pub.17.x~"
    shutil.copy(folder / f"{whose}.pub", shown)
    before = content(folder)
    said = (
        f"{shown} has a key of the controller, the authorities or a user: to revoke it would lock them out. hal05"
        " showed it as its own: move the file to another folder, revoke hal05 again, and look who was root there"
    )
    assert program("revoke", "--node", "hal05", "--address", "10.0.0.5") == (2, [], said)
    assert content(folder) == before
    shown.rename(tmp_path / "shown")
    assert program("revoke", "--node", "hal05", "--address", "10.0.0.5")[0] == 0


@pytest.mark.parametrize("kind", ["hosts", "backup"])
def test_the_key_of_a_node_is_signed_for_no_user(program: Program, folder: Path, tmp_path: Path, kind: str) -> None:
    """Everybody knows its public half. Who had it signed would end the node's rollouts, and its revocation."""
    (folder / "backup").mkdir()
    shutil.copy(make_key(tmp_path / "host"), folder / kind / "hal05_10.0.0.5-first.pub")
    key = tmp_path / "eve.pub"
    key.write_text(f"{public_key(tmp_path / 'host.pub')} eve@laptop\n")
    before = content(folder)
    said = f"{key}: this is a key of hal05; eve needs one that nobody else has"
    assert program("issue", "eve", "--key", key) == (2, [], said)
    assert {**content(folder), ".lock": b""} == {**before, ".lock": b""}
    assert not (tmp_path / "eve-cert.pub").exists()
    assert program("revoke", "--node", "hal05", "--address", "10.0.0.5")[0] == 0


def test_a_host_key_that_the_register_lost_stays_revoked(program: Program, folder: Path, tmp_path: Path) -> None:
    shutil.copy(make_key(tmp_path / "host"), folder / "hosts" / "hal05_10.0.0.5.pub")
    program("revoke", "--node", "hal05", "--address", "10.0.0.5")
    (folder / "revoked_hosts").unlink()
    before = content(folder)
    mark = fingerprint(public_key(tmp_path / "host.pub"))
    said = f"{folder}/revoked_hosts no longer has key: {mark}, which known_hosts refuses: put the lines back"
    for words in (("build",), ("revoke", "--user", "alice"), ("revoke", "--node", "hal05", "--address", "10.0.0.5")):
        status, out, error = program(*words)
        assert (status, out) == (2, [])
        assert error.startswith(said)
    assert content(folder) == before
    with pytest.raises(CertificateError, match="revoked_hosts is missing; restore it, or for a new site: "):
        Authority(folder).hosts.spread()
    (folder / "revoked_hosts").touch()
    with pytest.raises(CertificateError) as caught:
        Authority(folder).hosts.spread()
    assert str(caught.value).startswith(said)
    assert program("build", "--taken-back") == (0, [str(folder.parent / "known_hosts")], "")
    assert "@revoked" not in (folder.parent / "known_hosts").read_text()


def test_no_node_is_given_known_hosts_of_a_register_that_has_lost_a_line(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    """They would believe again whoever has the key of a node that was broken into."""
    shutil.copy(make_key(tmp_path / "host"), folder / "hosts" / "hal05_10.0.0.5.pub")
    show = {"ansible.builtin.debug": {"msg": "{{ __ssh_known_hosts_lines }}"}}
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(PROJECT / "roles/ssh/vars/main.yml")],
        "tasks": [show],
    }
    text, variables = yaml.safe_dump([play]), {"ssh_authority_dir": str(folder)}
    program("revoke", "--node", "hal05", "--address", "10.0.0.5")
    done = playing.play_text(tmp_path, text, "hal01", **variables)
    shown = json.loads(done.stdout)["plays"][0]["tasks"][0]["hosts"]["hal01"]["msg"]
    authority = f"@cert-authority * {(folder / 'host_ca.pub').read_text().strip()}"
    assert shown == [authority, f"@revoked * {public_key(tmp_path / 'host.pub')} hal05: lost"]

    (folder / "revoked_hosts").write_text("# restored\n")
    done = playing.play_text(tmp_path, text, "hal01", **variables)
    assert done.returncode != 0
    mark = fingerprint(public_key(tmp_path / "host.pub"))
    assert f"{folder}/revoked_hosts no longer has key: {mark}, which known_hosts refuses: " in done.stdout


# --- files


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[tuple[str, str]] = []
    sync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        did.append(("fsync", os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def replaced(old: Path, new: Path) -> Path:
        assert new.read_bytes() == b"old"
        did.append(("rename", str(new)))
        return replace(old, new)

    (tmp_path / "list").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    files.write(tmp_path / "list", b"new", 0o644)
    assert did == [("fsync", f"{tmp_path}/.list.new"), ("rename", f"{tmp_path}/list"), ("fsync", str(tmp_path))]


def test_whose_folder_it_is_cannot_have_another_file_opened_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate is written beside its user's key, in his folder, maybe by root."""
    secret, sync = tmp_path / "secret", os.fsync
    secret.touch(0o600)

    def swapped(handle: int) -> None:
        (tmp_path / ".list.new").unlink()
        (tmp_path / ".list.new").symlink_to(secret)
        monkeypatch.setattr(os, "fsync", sync)

    monkeypatch.setattr(os, "fsync", swapped)
    files.write(tmp_path / "list", b"new", 0o644)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_a_disk_that_fails_leaves_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").write_bytes(b"old")

    def failed(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failed)
    with pytest.raises(CertificateError) as caught:
        files.write(tmp_path / "list", b"new", 0o644)
    assert str(caught.value) == f"{tmp_path}/list: cannot be written: Input/output error"
    assert (tmp_path / "list").read_bytes() == b"old"


def test_a_full_disk_leaves_the_register_of_certificates_whole(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line would be in the way of each certificate that is issued, and revoked, from then on."""
    before = content(folder)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        said = f"{folder}/issued.jsonl: cannot be written: No space left on device"
        assert program("issue", "carol", "--key", make_key(tmp_path / "carol")) == (2, [], said)
    assert {name: before[name] for name in before if name != ".lock"} == {
        name: text for name, text in content(folder).items() if not name.startswith(".")
    }
    assert program("issue", "carol", "--key", tmp_path / "carol.pub")[0] == 0
    assert [one.serial for one in Authority(folder).register] == [1, 2, 3]


def test_without_room_for_what_is_made_meanwhile_it_says_so(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    status, out, said = program("build")
    assert (status, out) == (2, [])
    assert said.startswith(f"{tmp_path}/none/hal-revoked-")
    assert said.endswith(": No such file or directory")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert program("build") == (2, [], "hal_cluster.certificates: No space left on device")


# --- on nodes


def asked(krl: Path, samples: list[str]) -> subprocess.CompletedProcess[str]:
    """What the program of the node's promise says of a list."""
    words = ["/bin/sh", "-c", REFUSED.read_text(), "refused", str(krl), *samples]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_node_says_how_many_its_list_refuses_and_whom_it_lets_in(
    program: Program, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    empty, old = tmp_path / "empty", tmp_path / "old"
    shutil.copy(folder / "revoked_keys", empty)
    program("revoke", "--user", "alice")
    shutil.copy(folder / "revoked_keys", old)
    program("revoke", "--key", tmp_path / "bob.pub")
    program("revoke", "--user", "bob")
    samples = Authority(folder).users.samples()
    mark = fingerprint(public_key(tmp_path / "bob.pub"))
    assert asked(folder / "revoked_keys", samples).stdout == "3 of 3 refused\n"
    assert asked(old, samples).stdout == f"1 of 3 refused, let in: key: {mark}, serial: 2\n"
    assert asked(empty, samples).stdout == f"0 of 3 refused, let in: serial: 1, key: {mark}, serial: 2\n"
    assert asked(empty, []).stdout == "0 of 0 refused\n"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_node_that_cannot_read_its_list_says_nothing_of_it(program: Program, folder: Path, tmp_path: Path) -> None:
    program("revoke", "--key", tmp_path / "bob.pub")
    key = public_key(tmp_path / "bob.pub")
    (tmp_path / "text").write_text(f"{key}\n")
    for krl, samples in (
        (tmp_path / "none", [f"{key} bob"]),
        (tmp_path / "none", []),
        (tmp_path / "text", []),
        (folder / "revoked_keys", [*[f"{key} bob"] * 300, "ssh-ed25519 AAAA x"]),  # it has answered for most by then
    ):
        done = asked(krl, samples)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1


def test_the_promise_asks_the_nodes_list_for_what_the_register_has(
    program: Program, folder: Path, tmp_path: Path
) -> None:
    """And not whether the node has the file that was spread: that one may be old itself."""
    node, name = tmp_path / "node", "what was revoked is refused"
    program("revoke", "--user", "alice")
    shutil.copy(folder / "revoked_keys", node)
    here = {"chdir": str(PROJECT)}
    ask: dict[str, Any] = {"role": "ssh", "limit_ids": [name], "report_only": True}
    text = yaml.safe_dump(
        [
            {
                "hosts": "all",
                "gather_facts": False,
                "tasks": [
                    {"name": "With the list", "hal_expect": ask},
                    {"name": "Add to the register", "ansible.builtin.command": {"cmd": "{{ revoke }}", **here}},
                    {"name": "With the former list", "hal_expect": ask},
                    {"name": "Put an old list there", "ansible.builtin.copy": {"src": str(node), "dest": "{{ list }}"}},
                    {"name": "With the file that is spread", "hal_expect": ask},
                    {"name": "Change the register", "ansible.builtin.command": {"cmd": "{{ add }}"}},
                    {"name": "With a line more", "hal_expect": ask},
                ],
            }
        ]
    )
    certificates = f"{shlex.quote(sys.executable)} -m hal_cluster.certificates"
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": LOCAL,
        "ssh_authority_dir": str(folder),
        "__ssh_revoked_keys": str(node),
        "list": str(folder / "revoked_keys"),
        "revoke": f"{certificates} --authority {folder} revoke --serial 2 --reason lost",
        "add": f"sed -i '$a serial: 9' {folder}/revoked_users",
    }
    done = playing.play_text(tmp_path, text, "hal01", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    found = {
        task["task"]["name"]: [(one["status"], one["observed"], one["expected"]) for one in answer["results"]]
        for task in tasks
        if "results" in (answer := task["hosts"]["hal01"])
    }
    old = ("fail", "1 of 2 refused, let in: serial: 2", {"equal": "2 of 2 refused"})
    assert found["With the list"] == [("pass", "1 of 1 refused", {"equal": "1 of 1 refused"})]
    assert found["With the former list"] == [old]
    assert found["With the file that is spread"] == [old]
    ((status, observed, _),) = found["With a line more"]
    assert (status, observed) == ("unknown", None)
    assert f"{folder}/revoked_users:6: no list was made since this line was added" in done.stdout
