"""A signature is of one node's key over one archive; nobody else's is believed, and a revoked key's is not either."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

MADE, DIGEST = 1793000000, "0123456789abcdef" * 4


@pytest.fixture
def keys(programs: Any, tmp_path: Path) -> Path:
    """A folder with the private keys of three nodes, and signers/ with the public half of a."""
    for name in "abc":
        programs.sign.make_key(str(tmp_path / name))
    (tmp_path / "signers").mkdir()
    believe(programs, tmp_path, "a")
    return tmp_path


def believe(programs: Any, keys: Path, name: str, ending: str = ".pem") -> None:
    public = programs.sign.public(str(keys / name))
    (keys / "signers" / f"{programs.sign.name_of(public)}{ending}").write_text(public)


def statement(programs: Any, **more: Any) -> bytes:
    said = {"site": "hal", "node": "hal-mgmt1", "made": MADE, "digest": DIGEST, **more}
    return bytes(programs.sign.statement(*said.values()))


def signer(programs: Any, keys: Path, signature: Any, words: bytes) -> str:
    return str(programs.sign.signer(signature, words, str(keys / "signers")))


def test_a_key_is_made_once_and_for_its_owner_alone(programs: Any, tmp_path: Path) -> None:
    programs.sign.make_key(str(tmp_path / "key"))
    key = (tmp_path / "key").read_bytes()
    programs.sign.make_key(str(tmp_path / "key"))
    assert (tmp_path / "key").read_bytes() == key
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["key"]


def test_a_key_that_cannot_be_made_is_no_key(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(programs.common.Problem, match=r"^openssl cannot be started: No such file or directory$"):
        programs.sign.make_key(str(tmp_path / "key"))
    assert os.listdir(tmp_path) == []


def test_what_is_signed_is_one_line_with_all_that_counts(programs: Any) -> None:
    assert statement(programs) == f"hal-backup hal hal-mgmt1 {MADE} {DIGEST}\n".encode()
    assert statement(programs, site="größe") == f"hal-backup größe hal-mgmt1 {MADE} {DIGEST}\n".encode()


def test_openssl_alone_says_the_same(programs: Any, keys: Path) -> None:
    """As an administrator may ask it: ECDSA, SHA-256, and a file of its own for the signature."""
    (keys / "sig").write_bytes(base64.b64decode(programs.sign.sign(str(keys / "a"), b"words")))
    (public,) = (keys / "signers").iterdir()
    ask = ["openssl", "dgst", "-sha256", "-verify", str(public), "-signature", str(keys / "sig")]
    assert subprocess.run(ask, input=b"words", check=False, capture_output=True).returncode == 0
    assert subprocess.run(ask, input=b"Words", check=False, capture_output=True).returncode == 1


def test_the_key_that_signed_is_named(programs: Any, keys: Path) -> None:
    believe(programs, keys, "b")
    for name in "ab":
        signature = programs.sign.sign(str(keys / name), statement(programs))
        own = programs.sign.name_of(programs.sign.public(str(keys / name)))
        assert signer(programs, keys, signature, statement(programs)) == f"{own}.pem"


@pytest.mark.parametrize(
    "other", [{"site": "pal"}, {"node": "hal-mgmt2"}, {"made": MADE + 1}, {"digest": "f" * 64}], ids=str
)
def test_a_signature_is_of_one_archive(programs: Any, keys: Path, other: dict[str, Any]) -> None:
    signature = programs.sign.sign(str(keys / "a"), statement(programs))
    assert signer(programs, keys, signature, statement(programs, **other)) == ""


def test_nobody_else_is_believed(programs: Any, keys: Path) -> None:
    signature = programs.sign.sign(str(keys / "c"), statement(programs))
    assert signer(programs, keys, signature, statement(programs)) == ""
    assert programs.sign.signer(signature, statement(programs), str(keys / "gone")) == ""
    (keys / "signers" / "notes.txt").write_text(programs.sign.public(str(keys / "c")))
    (keys / "signers" / "broken.pem").write_text("no key")
    assert signer(programs, keys, signature, statement(programs)) == ""


def test_a_revoked_key_is_named_as_such_by_whatever_name_it_is_there(programs: Any, keys: Path) -> None:
    """Also when somebody put it there again: revoked stays revoked."""
    signature = programs.sign.sign(str(keys / "a"), statement(programs))
    own = programs.sign.name_of(programs.sign.public(str(keys / "a")))
    believe(programs, keys, "a", ".pem.revoked")
    assert signer(programs, keys, signature, statement(programs)) == f"{own}.pem.revoked"
    (keys / "signers" / f"{own}.pem").rename(keys / "signers" / "0.pem")
    assert signer(programs, keys, signature, statement(programs)) == f"{own}.pem.revoked"


@pytest.mark.parametrize("signature", ["", "AAAA", "not base64!", "A", {"a": 1}, ["AAAA"], 5, "ü", "AAAA" * 100000])
def test_what_is_no_signature_is_nobodys(programs: Any, keys: Path, signature: Any) -> None:
    assert signer(programs, keys, signature, statement(programs)) == ""


def test_without_openssl_nobody_is_called_a_forger(programs: Any, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signature = programs.sign.sign(str(keys / "a"), statement(programs))
    monkeypatch.setenv("PATH", str(keys / "nowhere"))
    with pytest.raises(programs.common.Problem, match=r"^openssl cannot be started: No such file or directory$"):
        signer(programs, keys, signature, statement(programs))
