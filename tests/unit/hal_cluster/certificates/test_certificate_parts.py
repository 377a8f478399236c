"""What the authorities write, sign and list, entry by entry, and where one more or one less would be another."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hal_cluster.certificates import authority as subject
from hal_cluster.certificates import cli, first_contact, keygen, revoked
from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import write
from hal_cluster.certificates.register import Issued, Register, stamp, when
from hal_cluster.certificates.tls import tls_authority
from tests.unit.authority import make
from tests.unit.hal_cluster.certificates.server import tls_certificate

LATER, LONG_AGO = "2999-01-01T00:00:00Z", "2000-01-01T00:00:00Z"


def issued(serial: int, user: str = "alice", until: str = LATER) -> Issued:
    return Issued(serial, user, (user,), f"ssh-ed25519 {user}", f"SHA256:{serial}", LONG_AGO, until)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is asked of OpenSSH, which makes a certificate beside a key and a list where it is told to."""
    asked: list[list[str]] = []

    def run(*argv: str | Path, stdin: str | None = None, accept: tuple[int, ...] = (0,)) -> str:
        words = [str(word) for word in argv]
        asked.append(words)
        if "-Q" in words:
            return "".join(f"{file}: REVOKED\n" for file in words[4:])
        if "-t" in words:
            Path(f"{words[-1]}.pub").write_text("ssh-ed25519 NEW")
        elif "-k" in words:
            Path(words[words.index("-f") + 1]).write_bytes(b"x" * 28 + Path(words[-1]).read_bytes())
        elif "-s" in words:
            key = Path(words[-1])
            key.with_name("key-cert.pub").write_text(f"certificate of {key.read_text()}")
        return f"256 SHA256:{(stdin or '').split()[-1] if stdin else ''} x (ED25519)\n"

    for module in (subject, keygen, revoked):
        monkeypatch.setattr(module, "run", run)
    return asked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "ca"
    folder.mkdir(parents=True)
    for name in ("host_ca", "user_ca"):
        (folder / f"{name}.pub").write_text(f"ssh-ed25519 {name}\n")
    return folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_certificate_is_valid_before_its_end() -> None:
    now = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
    assert issued(1, until=stamp(now + timedelta(seconds=1))).valid(now)
    assert not issued(1, until=stamp(now)).valid(now)
    assert when(stamp(now)) == now
    assert stamp(now.astimezone(timezone(timedelta(hours=5)))) == "2026-11-22T12:00:00Z"


def test_a_register_is_added_to_and_counts_on(tmp_path: Path) -> None:
    register = Register(tmp_path / "issued.jsonl")
    assert (list(register), register.next_serial()) == ([], 1)
    for one in (issued(5), issued(3, "bob")):
        register.add(one)
    assert list(register) == [issued(5), issued(3, "bob")]
    assert register.next_serial() == 6
    assert mode(register.path) == 0o600
    for line in ("{", '{"serial": 1}', "[]", json.dumps({"principals": [], "more": 1})):
        register.path.write_text(f"{json.dumps({**issued(1).__dict__})}\n{line}\n")
        with pytest.raises(CertificateError, match=r"issued\.jsonl:2: cannot be read; restore it from its backup$"):
            list(register)


def test_a_certificate_is_for_who_is_named_and_is_registered(ran: Any, folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "my.key.pub"
    key.write_text("ssh-ed25519 AAAA alice@home")
    one, certificate = Authority(folder).issue("alice", key, ["root", "on-call_1.x"], 1)
    assert (one.serial, one.user, one.principals, one.key) == (1, "alice", ("root", "on-call_1.x"), "ssh-ed25519 AAAA")
    assert one.fingerprint == "SHA256:AAAA"
    assert when(one.until) - when(one.issued) == timedelta(days=1)
    assert certificate == tmp_path / "my.key-cert.pub"
    assert (certificate.read_text(), mode(certificate)) == ("certificate of ssh-ed25519 AAAA alice\n", 0o644)
    (signed,) = [words for words in ran if "-I" in words]
    assert signed[:-1] == [
        *("ssh-keygen", "-q", "-s", str(folder / "user_ca"), "-I", "alice", "-z", "1"),
        *("-n", "root,on-call_1.x", "-V", "-600s:+1d"),
    ]
    assert list(Authority(folder).register) == [one]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.key-cert.pub", "my.key.pub", "state"]


@pytest.mark.parametrize(("user", "principals"), [("", ["a"]), ("a/b", ["a"]), ("a", ["b", ""]), ("a", ["b,c"])])
def test_what_is_no_name_is_signed_for_nobody(folder: Path, tmp_path: Path, user: str, principals: list[str]) -> None:
    with pytest.raises(CertificateError, match=r"is not a name; letters, digits, .* make one$"):
        Authority(folder).issue(user, tmp_path / "a.pub", principals, 1)


def test_the_first_host_key_is_kept_before_it_is_handed_out(ran: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "node.pub").write_text("ssh-ed25519 NODE")
    made = Authority(folder).sign_first_host_key(tmp_path / "node.pub", "hal05", "hal05.site", "10.0.0.5")
    assert made == "certificate of ssh-ed25519 NODE hal05\n"
    kept = folder / "hosts/hal05_10.0.0.5-first.pub"
    assert (kept.read_text(), mode(kept), mode(kept.parent)) == ("ssh-ed25519 NODE hal05\n", 0o600, 0o700)
    assert ran[-1][:-1] == [
        *("ssh-keygen", "-q", "-s", str(folder / "host_ca"), "-I", "hal05.site", "-h"),
        *("-n", "hal05,hal05.site,10.0.0.5", "-V", "-1d:+365d"),
    ]


def test_both_keys_of_a_node_are_revoked_each_once(ran: Any, folder: Path) -> None:
    (folder / "hosts").mkdir()
    (folder / "hosts/hal05_10.0.0.5.pub").write_text("ssh-ed25519 NOW")
    (folder / "hosts/hal05_10.0.0.5-first.pub").write_text("ssh-ed25519 FIRST")
    (folder / "hosts/hal06_10.0.0.6-first.pub").write_text("ssh-ed25519 SIX")
    one = Authority(folder)
    assert one.hosts.lines() == []
    now, first = (f"@revoked * ssh-ed25519 {key} hal05: disk lost" for key in ("NOW", "FIRST"))
    assert one.revoke_node("hal05", "10.0.0.5", " disk\x07\nlost ") == [now, first]
    assert one.revoke_node("hal05", "10.0.0.5", "again") == []
    assert one.revoke_node("hal06", "10.0.0.6", "x") == ["@revoked * ssh-ed25519 SIX hal06: x"]
    assert one.hosts.lines() == [now, first, "@revoked * ssh-ed25519 SIX hal06: x"]
    assert mode(folder / "revoked_hosts") == 0o600
    signed = folder / "hosts/hal07_10.0.0.7.pub"
    with pytest.raises(CertificateError) as error:
        one.revoke_node("hal07", "10.0.0.7", "x")
    assert str(error.value) == f"hal07: no key of it was signed here ({signed} is missing)"


def test_what_is_revoked_is_noted_once_with_its_reason(ran: Any, folder: Path, tmp_path: Path) -> None:
    one = Authority(folder)
    year = datetime.now(timezone.utc) - timedelta(days=365)
    within, before = (stamp(year + timedelta(hours=hours)) for hours in (1, -1))
    for each in (issued(1), issued(2, until=before), issued(3, until=within), issued(4, "bob")):
        one.register.add(each)
    days = {datetime.now(timezone.utc).strftime("%Y-%m-%d")}
    assert one.revoke_user("alice", "left") == ["serial: 1", "serial: 3"]
    assert one.revoke_serials([3, 4], "all") == ["serial: 4"]
    (tmp_path / "a.pub").write_text("ssh-ed25519 AAAA")
    assert one.revoke_key(tmp_path / "a.pub", "lost") == ["key: ssh-ed25519 AAAA"]
    assert one.revoke_key(tmp_path / "a.pub", "lost") == []
    days.add(datetime.now(timezone.utc).strftime("%Y-%m-%d"))  # midnight may have been between
    text = re.sub("# (" + "|".join(days) + ") ", "# DAY ", (folder / "revoked_users").read_text())
    assert text.splitlines() == [
        *revoked.HEAD.splitlines(),
        *("# DAY alice: left", "serial: 1", "# DAY alice: left", "serial: 3"),
        *("# DAY bob: all", "serial: 4", "# DAY SHA256:AAAA: lost", "key: ssh-ed25519 AAAA"),
    ]
    assert mode(folder / "revoked_users") == 0o600
    assert one.users.entries() == {"serial: 1": 3, "serial: 3": 5, "serial: 4": 7, "key: ssh-ed25519 AAAA": 9}
    with pytest.raises(CertificateError) as error:
        one.revoke_serials([4, 9], "x")
    assert str(error.value) == "no certificate 9 was issued; python -m hal_cluster.certificates list shows them"


def test_the_controllers_own_key_is_not_revoked(ran: Any, folder: Path, tmp_path: Path) -> None:
    (folder / "admin.pub").write_text("ssh-ed25519 ADMIN us")
    (tmp_path / "a.pub").write_text("ssh-ed25519 ADMIN others")
    with pytest.raises(CertificateError, match=r"admin\.pub is the key by which this controller comes in; "):
        Authority(folder).revoke_key(tmp_path / "a.pub", "x")
    (tmp_path / "b.pub").write_text("ssh-ed25519 OTHER")
    assert Authority(folder).revoke_key(tmp_path / "b.pub", "x") == ["key: ssh-ed25519 OTHER"]


def test_lists_are_made_of_the_registers(ran: Any, folder: Path) -> None:
    one, krl, known = Authority(folder), folder / "revoked_keys", folder.parent / "known_hosts"
    assert one.build() == [str(krl), str(known)]
    assert [words[1:3] for words in ran] == [["-q", "-k"], ["-Q", "-f"], ["-Q", "-f"]], "made, and asked twice"
    assert ran[0][5:7] == ["-s", str(folder / "user_ca.pub")]
    names = ("revoked_users", "revoked_hosts", "revoked_keys", "revoked_samples")
    assert [mode(folder / name) for name in names] == [0o600, 0o600, 0o644, 0o600]
    assert ((folder / "revoked_users").read_text(), (folder / "revoked_hosts").read_text()) == (revoked.HEAD, "")
    assert (known.read_text(), mode(known)) == ("@cert-authority * ssh-ed25519 host_ca\n", 0o644)
    assert one.build() == []
    (folder / "revoked_hosts").write_text("# lost\n@revoked * ssh-ed25519 AAAA hal05\n\n")
    assert one.build() == [str(known)]
    assert known.read_text() == "@cert-authority * ssh-ed25519 host_ca\n# lost\n@revoked * ssh-ed25519 AAAA hal05\n\n"
    with (folder / "revoked_users").open("a") as file:
        file.write("serial: 7\n")
    assert one.build() == [str(krl)]
    signed = next(words for words in ran if "-z" in words)
    assert signed[1:-1] == [
        *("-q", "-s", str(folder / "user_ca"), "-I", "revoked", "-z", "7"),
        *("-n", "nobody", "-V", "19990101:19990102"),
    ]
    assert (folder / "revoked_samples").read_text() == "certificate of serial: 7\n"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    (tmp_path / ".a.new").write_text("left by somebody")
    write(path, b"one", 0o640)
    assert (path.read_text(), mode(path), [one.name for one in tmp_path.iterdir()]) == ("one", 0o640, ["a"])
    with pytest.raises(CertificateError) as error:
        write(tmp_path / "none" / "a", b"", 0o600)
    assert str(error.value) == f"{tmp_path}/none/a: cannot be written: No such file or directory"


def test_certificates_are_listed_in_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Authority(folder)
    for each in (issued(1), issued(2, "bob", LONG_AGO), issued(10, "carolina")):
        one.register.add(each)
    (folder / "revoked_users").write_text("serial: 10\n")
    assert cli.main(["--authority", str(folder), "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "SERIAL  USER      OPENS     UNTIL                 STATE    KEY",
        "1       alice     alice     2999-01-01T00:00:00Z  valid    SHA256:1",
        "2       bob       bob       2000-01-01T00:00:00Z  ran out  SHA256:2",
        "10      carolina  carolina  2999-01-01T00:00:00Z  revoked  SHA256:10",
    ]


def test_who_is_revoked_by_the_program(ran: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in (issued(1), issued(2, "bob")):
        Authority(folder).register.add(each)
    assert cli.main(["--authority", str(folder), "revoke", "--serial", "2", "--reason", "x"]) == 0
    made = [str(folder / "revoked_keys"), str(folder.parent / "known_hosts")]
    assert capsys.readouterr().out.splitlines() == ["serial: 2", *made]


def test_what_a_console_said_is_read_from_a_file_or_given(
    monkeypatch: pytest.MonkeyPatch, ran: Any, tmp_path: Path
) -> None:
    pin = f"SHA256:{'a' * 43}"
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"hal05 {pin}= # console\n"))
    assert cli._expected("-") == {"hal05": {pin}}
    assert cli._expected("") == {}
    (tmp_path / "keys").write_text(f"hal05 {pin}\nhal05 ssh-ed25519 {'B' * 40}\n")
    assert cli._expected(str(tmp_path / "keys")) == {"hal05": {pin, f"SHA256:{'B' * 40}"}}
    monkeypatch.setattr(sys, "stdin", io.StringIO("hal05 x"))
    for source, words in (
        ("-", "bootstrap_host_keys:1: write "),
        (str(tmp_path / "none"), f"{tmp_path}/none: cannot be read: No such file or directory"),
    ):
        with pytest.raises(CertificateError, match=f"^{words}"):
            cli._expected(source)
    (tmp_path / "keys").write_bytes(b"\xff")
    with pytest.raises(CertificateError, match=r"keys: cannot be read: 'utf-8' codec"):
        cli._expected(str(tmp_path / "keys"))


def test_what_is_pinned_already_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, ran: Any, folder: Path) -> None:
    monkeypatch.setattr(first_contact, "shown", lambda _: ["ssh-ed25519 AAA", "ssh-rsa BBB"])
    into, said = folder / "own" / "known", {"hal05": {"SHA256:BBB", "SHA256:AAA", "SHA256:CCC"}}
    assert first_contact.pin("hal05", "10.0.0.5", said, Authority(folder), into) == ["SHA256:AAA", "SHA256:BBB"]
    assert into.read_text() == "hal05 ssh-ed25519 AAA\nhal05 ssh-rsa BBB\n"
    assert (mode(into), mode(into.parent)) == (0o600, 0o700)
    before = into.stat()
    assert first_contact.pin("hal05", "10.0.0.5", said, Authority(folder), into) == ["SHA256:AAA", "SHA256:BBB"]
    assert (into.stat().st_ino, into.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    first_contact.pin("hal05", "10.0.0.5", {"hal05": {"SHA256:AAA"}}, Authority(folder), into)
    assert into.read_text() == "hal05 ssh-ed25519 AAA\n"


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Any]:
    asked: list[Any] = []

    def run(argv: list[str], **how: Any) -> Any:
        asked.append((argv, how.get("input")))
        assert how["check"] is False, "its words say what was wrong"
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_the_keys_that_a_machine_shows_are_each_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out = "# 10.0.0.5:22 SSH-2.0\n10.0.0.5 ssh-rsa BBB\n\n10.0.0.5 ssh-ed25519 AAA x\n10.0.0.5 ssh-rsa BBB\n"
    asked = answering(monkeypatch, SimpleNamespace(stdout=out))
    assert first_contact.shown("10.0.0.5") == ["ssh-ed25519 AAA", "ssh-rsa BBB"]
    assert asked == [(["ssh-keyscan", "-T", "10", "-t", "ed25519,ecdsa,rsa", "10.0.0.5"], None)]
    answering(monkeypatch, FileNotFoundError())
    with pytest.raises(CertificateError, match=r"^ssh-keyscan is not installed; it comes with OpenSSH's client$"):
        first_contact.shown("10.0.0.5")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (FileNotFoundError(), "x is not installed; it comes with OpenSSH's client"),
        (SimpleNamespace(returncode=1, stdout="out", stderr="a\nb\n"), "x: b"),
        (SimpleNamespace(returncode=1, stdout="out\n", stderr=""), "x: out"),
        (SimpleNamespace(returncode=3, stdout="", stderr=" "), "x: ended with status 3"),
    ],
)
def test_a_program_that_fails_is_told_by_its_last_words(
    monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(CertificateError) as error:
        keygen.run("x", Path("y"))
    assert str(error.value) == words
    asked = answering(monkeypatch, SimpleNamespace(returncode=0, stdout="out", stderr="odd"))
    assert (keygen.run("x", Path("y")), keygen.run("x", stdin="z")) == ("out", "out")
    assert asked == [(["x", "y"], ""), (["x"], "z")]


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (_text(f"-----BEGIN OPENSSH {'PRIVATE'} KEY-----"), "{} is a private key; name the public one, {}.pub"),
        (_text("ssh-ed25519"), "{} is not a public key; one begins with its type, as ssh-ed25519"),
        (_text(""), "{} is not a public key; one begins with its type, as ssh-ed25519"),
        (
            _text("ssh-ed25519-cert-v01@openssh.com AAAA"),
            "{} is not a public key; one begins with its type, as ssh-ed25519",
        ),
        (_text("ssh-ed25519 AAAA"), "{}: OpenSSH cannot read this key"),
        (lambda path: path.mkdir(), "{}: cannot be read: Is a directory"),
    ],
)
def test_what_is_no_public_key_is_named(tmp_path: Path, write: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "key"
    write(path)
    with pytest.raises(CertificateError) as error:
        keygen.public_key(path)
    assert str(error.value) == words.replace("{}", str(path))


def test_a_servers_certificate_says_no_more_than_that(tmp_path: Path) -> None:
    make(tmp_path / "ca")
    name = "a" * 65
    before = datetime.now(timezone.utc).replace(microsecond=0)
    made = x509.load_pem_x509_certificate(tls_certificate(tmp_path / "ca", [name, "b"], [], 1)[1].encode())
    own = tls_authority(tmp_path / "ca")
    assert made.issuer == own.certificate.subject
    assert [one.value for one in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["a" * 64]
    assert timedelta() <= made.not_valid_before_utc + subject.BACK - before < timedelta(hours=1)
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(days=1) + subject.BACK
    basic = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, False, None)
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert (usage.critical, list(usage.value)) == (False, [ExtendedKeyUsageOID.SERVER_AUTH])
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert (names.critical, names.value.get_values_for_type(x509.DNSName)) == (False, [name, "b"])
    signer = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    expected = x509.AuthorityKeyIdentifier.from_issuer_public_key(own.key.public_key())
    assert (signer.critical, signer.value) == (False, expected)
