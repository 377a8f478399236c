"""What OpenSSH's programs answer, the register of what was issued, and files that are put in place as a whole."""

from __future__ import annotations

import io
import stat
import subprocess
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.certificates import authority, cli, first_contact
from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import write
from hal_cluster.certificates.keygen import fingerprint, public_key, run
from hal_cluster.certificates.register import Issued, Register, stamp, when
from tests.unit.hal_cluster.certificates.test_certificates import make_key


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo first >&2; echo last >&2; echo out; exit 1", "sh: last"),
        ("echo one; echo out; exit 255", "sh: out"),
        ("exit 3", "sh: ended with status 3"),
        ("kill -9 $$", "sh: ended with status -9"),
    ],
)
def test_a_program_that_fails_is_quoted(script: str, said: str) -> None:
    with pytest.raises(CertificateError) as caught:
        run("sh", "-c", script)
    assert str(caught.value) == said


def test_a_program_gets_its_input_and_gives_its_output() -> None:
    assert run("cat", stdin="a\nb\n") == "a\nb\n"
    assert run("cat") == ""


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(CertificateError) as caught:
        run("no-such-keygen", "-l")
    assert str(caught.value) == "no-such-keygen is not installed; it comes with OpenSSH's client"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, ": cannot be read: No such file or directory"),
        (b"\xff\xfe", ": cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"", " is not a public key; one begins with its type, as ssh-ed25519"),
        (b"ssh-ed25519\n", " is not a public key; one begins with its type, as ssh-ed25519"),
        (b"ssh-ed25519-cert-v01@openssh.com AAAA\n", " is not a public key; one begins with its type, as ssh-ed25519"),
        (b"ssh-ed25519 AAAA\n", ": OpenSSH cannot read this key"),
    ],
)
def test_what_is_no_public_key_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "key.pub"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError) as caught:
        public_key(file)
    assert str(caught.value) == f"{file}{said}"


def test_a_key_without_a_comment_is_one(tmp_path: Path) -> None:
    file = make_key(tmp_path / "key")
    whole = file.read_text()
    bare = " ".join(whole.split()[:2])
    assert public_key(file) == bare
    file.write_text(f"{bare}\n")
    assert public_key(file) == bare
    with pytest.raises(CertificateError, match=r"^the key: OpenSSH cannot read this key$"):
        fingerprint("nothing")


class TestRegister:
    """The file of what was issued."""

    NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=timezone.utc)
    ONE = Issued(1, "ada", ("ada", "root"), "ssh-ed25519 A", "SHA256:a", stamp(NOW), stamp(NOW + timedelta(days=2)))

    def test_what_is_added_is_read_again(self, tmp_path: Path) -> None:
        register = Register(tmp_path / "register")
        assert (list(register), register.next_serial()) == ([], 1)
        later = Issued(7, "bob", ("bob",), "ssh-ed25519 B", "SHA256:b", "2026-11-21T08:00:00Z", "2026-11-22T08:00:00Z")
        register.add(self.ONE)
        register.add(later)
        register.add(Issued(**{**later.__dict__, "serial": 3}))
        assert [one.serial for one in register] == [1, 7, 3]
        assert (next(iter(register)), register.next_serial()) == (self.ONE, 8)
        assert stat.S_IMODE(register.path.stat().st_mode) == 0o600

    @pytest.mark.parametrize("line", ["{", "[]", '{"serial": 1}', '{"serial": 1, "principals": [], "odd": 1}', "1"])
    def test_a_line_that_is_none_is_named(self, tmp_path: Path, line: str) -> None:
        register = Register(tmp_path / "register")
        register.add(self.ONE)
        with register.path.open("a") as file:
            file.write(f"{line}\n")
        with pytest.raises(CertificateError) as caught:
            list(register)
        assert str(caught.value) == f"{register.path}:2: cannot be read; restore it from its backup"

    def test_it_is_valid_until_its_end_and_not_at_it(self) -> None:
        end = self.NOW + timedelta(days=2)
        assert self.ONE.valid(end - timedelta(seconds=1))
        assert not self.ONE.valid(end)

    def test_times_are_written_in_utc(self) -> None:
        there = datetime(2026, 11, 21, 9, 0, 0, tzinfo=timezone(timedelta(hours=1)))
        assert stamp(there) == "2026-11-21T08:00:00Z"
        assert when("2026-11-21T08:00:00Z") == there


class TestScan:
    """ssh-keyscan, as far as it is asked."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What was asked; the answer is put behind."""
        seen = list[Any]()

        def answer(argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
            seen.append(list(argv))
            assert options["stdin"] == subprocess.DEVNULL
            return subprocess.CompletedProcess(argv, 0, seen[0], "")

        monkeypatch.setattr(subprocess, "run", answer)
        return seen

    def test_each_key_is_shown_once_and_in_order(self, asked: list[Any]) -> None:
        asked.append("# a:22 SSH-2.0\na ssh-rsa BBBB more\n\na ssh-ed25519 AAAA\na ssh-rsa BBBB\n")
        assert first_contact.shown("10.0.0.5") == ["ssh-ed25519 AAAA", "ssh-rsa BBBB"]
        assert asked[1:] == [
            ["ssh-keyscan", "-T", str(first_contact.SCAN_SECONDS), "-t", "ed25519,ecdsa,rsa", "10.0.0.5"]
        ]

    def test_a_comment_is_no_answer(self, asked: list[Any]) -> None:
        asked.append("# a:22 SSH-2.0\n")
        with pytest.raises(CertificateError, match=r"^no SSH answer from a: is it on, is the address right, does sshd"):
            first_contact.shown("a")

    def test_without_the_program_it_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(CertificateError) as caught:
            first_contact.shown("a")
        assert str(caught.value) == "ssh-keyscan is not installed; it comes with OpenSSH's client"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The authorities of a site."""
    made = tmp_path / "state" / "ca"
    (made / "hosts").mkdir(parents=True)
    for name in ("host_ca", "user_ca"):
        make_key(made / name)
    Authority(made).build()
    return made


def test_of_several_revoked_keys_the_first_is_named_and_pinning_again_writes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [public_key(make_key(tmp_path / name)) for name in ("one", "two", "three")]
    marks = {fingerprint(key) for key in keys}
    monkeypatch.setattr(first_contact, "shown", lambda _address: keys)
    into = tmp_path / "new" / "below" / "known"
    assert first_contact.pin("hal05", "a", {"hal05": marks}, Authority(folder), into) == sorted(marks)
    assert stat.S_IMODE(into.parent.stat().st_mode) == 0o700
    assert len(into.read_text().splitlines()) == 3
    before = into.stat().st_ino
    first_contact.pin("hal05", "a", {"hal05": marks}, Authority(folder), into)
    assert into.stat().st_ino == before
    into.write_text("hal05 old\n")
    first_contact.pin("hal05", "a", {"hal05": marks}, Authority(folder), into)
    assert "old" not in into.read_text()

    (folder / "revoked_hosts").write_text("".join(f"@revoked * {key} hal05: lost\n" for key in keys))
    with pytest.raises(CertificateError) as caught:
        first_contact.pin("hal05", "a", {"hal05": marks}, Authority(folder), into)
    assert str(caught.value) == (
        f"hal05: a shows a key that was revoked ({min(marks)}); give it a new one at its console"
    )


def test_the_first_key_of_a_node_is_signed_for_its_names_and_kept(folder: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path / "host")
    (folder / "hosts").rmdir()
    said = Authority(folder).sign_first_host_key(key, "hal05", "hal05.example", "10.0.0.5")
    (tmp_path / "x-cert.pub").write_text(said)
    listed = run("ssh-keygen", "-L", "-f", tmp_path / "x-cert.pub")
    lines = [line.strip() for line in listed.splitlines()]
    assert 'Key ID: "hal05.example"' in lines
    assert "Type: ssh-ed25519-cert-v01@openssh.com host certificate" in lines
    at = lines.index("Principals:")
    assert lines[at + 1 : at + 4] == ["hal05", "hal05.example", "10.0.0.5"]
    begin, end = (datetime.fromisoformat(word) for word in next(x for x in lines if "Valid" in x).split()[2::2])
    assert abs(end - begin - timedelta(days=authority.HOST_DAYS + 1)) < timedelta(hours=2)  # less a change of clocks
    kept = folder / "hosts" / "hal05_10.0.0.5-first.pub"
    assert kept.read_text() == f"{public_key(key)} hal05\n"
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode)) == (0o600, 0o700)


def test_a_file_is_replaced_as_a_whole_with_the_mode_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "list"
    (tmp_path / ".list.new").write_text("of a run that was ended")
    write(file, b"1", 0o666)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"1", 0o666)
    before = file.stat().st_ino
    write(file, b"2", 0o600)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"2", 0o600)
    assert file.stat().st_ino != before
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError) as caught:
        write(tmp_path / "none" / "list", b"1", 0o600)
    assert str(caught.value) == f"{tmp_path / 'none' / 'list'}: cannot be written: No such file or directory"


def test_what_consoles_said_comes_from_a_file_from_standard_input_or_from_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"SHA256:{'a' * 43}"
    file = tmp_path / "consoles"
    file.write_text(f"hal05 {mark}\n")
    assert cli._expected(str(file)) == {"hal05": {mark}}
    monkeypatch.setattr("sys.stdin", io.StringIO(f"hal06 {mark}\n"))
    assert cli._expected("-") == {"hal06": {mark}}
    assert cli._expected("") == {}
    monkeypatch.setattr("sys.stdin", io.StringIO("hal06 nothing\n"))
    with pytest.raises(CertificateError, match=r"^bootstrap_host_keys:1: write "):
        cli._expected("-")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff", "cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_a_file_of_consoles_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "consoles"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError) as caught:
        cli._expected(str(file))
    assert str(caught.value) == f"{file}: {said}"


def test_the_list_shows_what_holds_what_ran_out_and_what_was_revoked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(timezone.utc)
    register = Authority(folder).register
    for serial, user, days in ((1, "ada", 1), (2, "bob", -1), (3, "eve", 1)):
        register.add(Issued(serial, user, (user, "x"), "k", f"SHA256:{user}", stamp(now), stamp(now + timedelta(days))))
    (folder / "revoked_users").write_text("# lost\nserial: 3\n")
    assert cli.main(["--authority", str(folder), "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["SERIAL", "USER", "OPENS", "UNTIL", "STATE", "KEY"]
    assert [[row[0], row[1], row[2], " ".join(row[4:-1]), row[-1]] for row in rows[1:]] == [
        ["1", "ada", "ada,x", "valid", "SHA256:ada"],
        ["2", "bob", "bob,x", "ran out", "SHA256:bob"],
        ["3", "eve", "eve,x", "revoked", "SHA256:eve"],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name one of user, serial, key, node to revoke, not none"),
        (["--serial", "1", "--user", "ada"], "name one of user, serial, key, node to revoke, not user and serial"),
        (["--serial", "one"], "one is not a serial number; python -m hal_cluster.certificates list shows them"),
        (["--serial", "9"], "no certificate 9 was issued; python -m hal_cluster.certificates list shows them"),
    ],
)
def test_what_cannot_be_revoked_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert cli.main(["--authority", str(folder), "revoke", "--reason", "lost", *words]) == 2
    assert capsys.readouterr().err == f"{said}\n"
