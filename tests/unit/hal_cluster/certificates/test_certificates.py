"""Issuing and revoking, with OpenSSH's own ssh-keygen: what it says of a certificate and of a key."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hal_cluster.certificates import cli, first_contact
from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.keygen import fingerprint, public_key

Program = Callable[..., tuple[int, str, str]]


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], check=True)
    return path.with_name(f"{path.name}.pub")


def authorities(place: Path) -> Path:
    """Make the authorities of a site; return their folder."""
    folder = place / "state" / "ca"
    (folder / "hosts").mkdir(parents=True)
    for name in ("host_ca", "user_ca", "admin"):
        make_key(folder / name)
    Authority(folder).build()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return authorities(tmp_path)


@pytest.fixture
def program(folder: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = cli.main(["--authority", str(folder), *map(str, arguments)])
        said = capsys.readouterr()
        assert len(said.err.splitlines()) <= 1, "errors are one line each"
        return status, said.out, said.err

    return run


def shown(certificate: Path) -> str:
    return subprocess.run(
        ["ssh-keygen", "-L", "-f", str(certificate)], check=True, capture_output=True, text=True
    ).stdout


def refused(folder: Path, key: Path) -> bool:
    """What ssh-keygen -Q says of a key or certificate: sshd asks the same list."""
    done = subprocess.run(
        ["ssh-keygen", "-Q", "-f", str(folder / "revoked_keys"), str(key)], capture_output=True, check=False
    )
    return done.returncode != 0


def test_a_certificate_says_who_what_and_until_when(program: Program, folder: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path / "alice")
    status, out, _ = program("issue", "alice", "--key", key, "--principals", "root, on-call", "--days", "7")
    assert status == 0
    assert out.startswith(f"{tmp_path}/alice-cert.pub: certificate 1 of alice, opens root, on-call, until ")
    text = shown(tmp_path / "alice-cert.pub")
    assert 'Key ID: "alice"' in text
    assert re.search(r"Serial: 1$", text, re.MULTILINE)
    assert re.search(r"Principals: \n +root\n +on-call\n", text)
    start, end = re.search(r"Valid: from (\S+) to (\S+)", text).groups()  # type: ignore[union-attr]
    days = (time.mktime(time.strptime(end, "%Y-%m-%dT%H:%M:%S")) - time.time()) / 86400
    assert 6.99 < days <= 7.01
    assert time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S")) < time.time() - 300
    assert oct((tmp_path / "alice-cert.pub").stat().st_mode)[-3:] == "644"
    program("issue", "alice", "--key", key)
    assert re.search(r"Serial: 2$", shown(tmp_path / "alice-cert.pub"), re.MULTILINE)


def test_who_is_revoked_is_refused_and_nobody_else(program: Program, folder: Path, tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        program("issue", name, "--key", make_key(tmp_path / name))
    alice, bob = tmp_path / "alice-cert.pub", tmp_path / "bob-cert.pub"
    assert not refused(folder, alice)
    status, out, _ = program("revoke", "--user", "alice", "--reason", "laptop\nstolen")
    assert (status, out.splitlines()[0]) == (0, "serial: 1")
    assert refused(folder, alice)
    assert not refused(folder, bob)
    assert not refused(folder, tmp_path / "alice.pub")
    assert "laptop stolen\nserial: 1\n" in (folder / "revoked_users").read_text()
    assert program("revoke", "--user", "alice", "--reason", "again")[:2] == (0, "")
    rows = program("list")[1].splitlines()
    assert [row.split()[4] for row in rows[1:]] == ["revoked", "valid"]

    program("revoke", "--key", tmp_path / "bob.pub", "--reason", "x")
    assert refused(folder, tmp_path / "bob.pub")
    assert refused(folder, bob)
    assert (
        program("issue", "bob", "--key", tmp_path / "bob.pub")[2]
        .rstrip()
        .endswith("this key is revoked; bob needs another")
    )


def test_a_revoked_host_key_is_in_known_hosts(program: Program, folder: Path, tmp_path: Path) -> None:
    make_key(tmp_path / "node")
    (folder / "hosts" / "hal05_10.0.0.5.pub").write_text((tmp_path / "node.pub").read_text())
    status, out, _ = program("revoke", "--node", "hal05", "--address", "10.0.0.5", "--reason", "disk lost")
    key = public_key(tmp_path / "node.pub")
    assert (status, out.splitlines()[0]) == (0, f"@revoked * {key} hal05: disk lost")
    lines = (folder.parent / "known_hosts").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["@cert-authority", "@revoked"]
    assert program("revoke", "--node", "hal05", "--address", "10.0.0.5", "--reason", "again")[:2] == (0, "")


def test_building_again_makes_nothing(folder: Path) -> None:
    before = (folder / "revoked_keys").read_bytes()
    assert Authority(folder).build() == []
    assert (folder / "revoked_keys").read_bytes() == before
    (folder / "revoked_keys").unlink()
    assert Authority(folder).build() == [str(folder / "revoked_keys")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["issue", "alice", "--key", "admin"], "name the public key, a file that ends in .pub"),
        (["issue", "alice", "--key", "nothing.pub"], "nothing.pub: cannot be read: No such file or directory"),
        (["issue", "al ice", "--key", "admin.pub"], "'al ice' is not a name"),
        (["issue", "alice", "--key", "admin.pub", "--principals", "root,*"], "'*' is not a name"),
        (["issue", "alice", "--key", "admin.pub", "--days", "0"], "a certificate for 0 days is not valid"),
        (["revoke", "--reason", "x"], "name one of user, serial, key, node to revoke, not none"),
        (["revoke", "--user", "a", "--serial", "1", "--reason", "x"], "not user and serial"),
        (["revoke", "--user", "a", "--reason", " "], "say why"),
        (["revoke", "--user", "a", "--reason", "x"], "a has had no valid certificate since "),
        (["revoke", "--serial", "7", "--reason", "x"], "no certificate 7 was issued"),
        (["revoke", "--serial", "x", "--reason", "x"], "x is not a serial number"),
        (["revoke", "--key", "admin.pub", "--reason", "x"], "is the key by which this controller comes in"),
        (["revoke", "--node", "hal05", "--reason", "x"], "hal05: no key of it was signed here"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    status, out, err = program(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != ".lock"} == {
        name: content for name, content in before.items() if name != ".lock"
    }


def test_a_private_key_is_not_taken_for_a_public_one(tmp_path: Path) -> None:
    make_key(tmp_path / "alice")
    os.rename(tmp_path / "alice", tmp_path / "wrong.pub")
    with pytest.raises(CertificateError, match="is a private key; name the public one"):
        public_key(tmp_path / "wrong.pub")


def test_without_the_authorities_it_says_where_they_come_from(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"host_ca.pub is missing; restore it, or for a new site"):
        Authority(tmp_path)


# --- first contact


def test_each_form_that_a_console_shows_is_read(tmp_path: Path) -> None:
    file = make_key(tmp_path / "node")
    key, one = public_key(file), fingerprint(public_key(file))
    line = subprocess.run(["ssh-keygen", "-lf", str(file)], check=True, capture_output=True, text=True).stdout.strip()
    text = f"# consoles\nhal01 {one}\nhal02   {line}\n\nhal03,10.0.0.3 {key} root@localhost\n"
    expected = {name: {one} for name in ("hal01", "hal02", "hal03", "10.0.0.3")}
    assert first_contact.read_expected(text, "file") == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hal05 SHA256:short", 'file:1: write "NODE SHA256:..." (43 characters) or "NODE ssh-ed25519 AAAA..."'),
        ("hal05", 'file:1: write "NODE SHA256:..."'),
        ("hal05 MD5:" + ":".join(["ab"] * 16), "file:1: an MD5 fingerprint can be forged"),
        ("hal05 " + ":".join(["ab"] * 16), "file:1: an MD5 fingerprint can be forged"),
        ("hal05 ssh-ed25519 " + "A" * 68, "file:1: OpenSSH cannot read this key"),
    ],
)
def test_a_line_that_proves_nothing_is_refused_by_its_place(line: str, message: str) -> None:
    with pytest.raises(CertificateError) as error:
        first_contact.read_expected(line, "file")
    assert message in str(error.value)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    keys = [public_key(make_key(tmp_path / name)) for name in ("ed25519", "other")]
    monkeypatch.setattr(first_contact, "shown", lambda address: keys)
    return keys


def test_only_the_keys_that_the_console_vouched_for_are_pinned(
    folder: Path, scanned: list[str], tmp_path: Path
) -> None:
    into = tmp_path / "known"
    found = first_contact.pin("hal05", "10.0.0.5", {"hal05": {fingerprint(scanned[1])}}, Authority(folder), into)
    assert (found, into.read_text()) == ([fingerprint(scanned[1])], f"hal05 {scanned[1]}\n")
    assert oct(into.stat().st_mode)[-3:] == "600"


def test_another_key_a_missing_line_and_a_revoked_key_pin_nothing(
    folder: Path, scanned: list[str], tmp_path: Path
) -> None:
    into, strange = tmp_path / "known", fingerprint(public_key(folder / "admin.pub"))
    with pytest.raises(CertificateError, match=r"^hal05: 10.0.0.5 shows .*, its console said .*nothing was changed$"):
        first_contact.pin("hal05", "10.0.0.5", {"hal05": {strange}}, Authority(folder), into)
    with pytest.raises(CertificateError, match="hal05: no host key was given for it"):
        first_contact.pin("hal05", "10.0.0.5", {"hal06": {strange}}, Authority(folder), into)
    (folder / "revoked_hosts").write_text(f"@revoked * {scanned[0]} hal05: lost\n")
    with pytest.raises(CertificateError, match="shows a key that was revoked"):
        first_contact.pin("hal05", "10.0.0.5", {"hal05": {fingerprint(scanned[1])}}, Authority(folder), into)
    Authority(folder).build()
    (folder / "revoked_hosts").write_text("# restored from an old backup\n")
    with pytest.raises(CertificateError, match=r"revoked_hosts no longer has key: SHA256:"):
        first_contact.pin("hal05", "10.0.0.5", {"hal05": {fingerprint(scanned[1])}}, Authority(folder), into)
    assert not into.exists()


def test_a_machine_that_does_not_answer_is_no_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_contact, "SCAN_SECONDS", 1)
    with pytest.raises(CertificateError, match=r"no SSH answer from 0\.0\.0\.1: is it on"):  # no machine has it
        first_contact.shown("0.0.0.1")
