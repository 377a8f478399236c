"""playbooks/authorities.yml: what a running site needs comes about whatever is wrong with its authority for servers."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.unit import playing
from tests.unit.authority import make

PLAYBOOK = "playbooks/authorities.yml"
# What is wrong with the authority for servers touches no other task; that those before do nothing again is seen once.
FOR_SERVERS = ("--start-at-task", "Refuse to make a key for a certificate that has lost its own")
KNOWN_HOSTS = ("--start-at-task", "Trust host keys that the authority has signed and nobody has revoked, and no others")


def play(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return a finished run for a site whose folder this is; its pair of keys for backups is there already."""
    (state / "backup").mkdir(parents=True, exist_ok=True)
    (state / "backup" / "public.asc").touch()
    return playing.play(PLAYBOOK, *arguments, sites=("hal",), state=state)


def profile(pem: bytes) -> dict[str, object]:
    """Return what a certificate says, but for whom it is, how long, and which key it has."""
    found = x509.load_pem_x509_certificate(pem)
    key = found.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    said: dict[str, object] = {"curve": key.curve.name, "hash": found.signature_hash_algorithm.name}  # type: ignore[union-attr]
    for extension in found.extensions:
        value: object = extension.value
        if isinstance(value, x509.SubjectKeyIdentifier):
            value = value == x509.SubjectKeyIdentifier.from_public_key(key)
        said[extension.oid.dotted_string] = (extension.critical, value)
    return said


def test_a_site_of_before_gets_its_authority_for_servers_and_loses_nothing(tmp_path: Path) -> None:
    state = tmp_path / "site"
    done = play(state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stat.S_IMODE((state / "ca" / "tls").stat().st_mode) == 0o700
    made = (state / "ca" / "tls_ca.pem").read_bytes()
    make(tmp_path / "tests")
    assert profile(made) == profile((tmp_path / "tests" / "tls_ca.pem").read_bytes()), "tests use another authority"
    assert "changed=0" in play(state).stdout

    (state / "ca" / "tls_ca").rename(tmp_path / "kept")
    (state / "known_hosts").unlink()
    done = play(state, *KNOWN_HOSTS)
    assert done.returncode != 0
    assert "tls_ca is missing, and tls_ca.pem is there: restore the key" in " ".join(done.stdout.split())
    assert (state / "known_hosts").exists(), "first contact waits for the authority for servers"

    (state / "ca" / "tls_ca.pem").unlink()
    done = play(state, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (state / "ca" / "tls_ca").exists()

    (tmp_path / "kept").rename(state / "ca" / "tls_ca")
    done = play(state, "--check", *FOR_SERVERS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (state / "ca" / "tls_ca.pem").exists()
    assert play(state, *FOR_SERVERS).returncode == 0
    assert (state / "ca" / "tls_ca.pem").read_bytes() != made
