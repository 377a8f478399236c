"""playbooks/authorities.yml: what a running site needs comes about whatever is wrong with its authority for servers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.unit import warm
from tests.unit.authority import make

ROOT = Path(__file__).resolve().parents[3]


def play(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return a finished run for a site whose folder this is; its pair of keys for backups is there already."""
    (state / "backup").mkdir(parents=True, exist_ok=True)
    (state / "backup" / "public.asc").touch()
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    inventory = str(ROOT / "inventory" / "hal" / "hal.yml")
    words = ("-i", inventory, "-e", f"hal_state_dir={state}", str(ROOT / "playbooks" / "authorities.yml"))
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACKS_ENABLED": ""}
    return warm.run([program, *words, *arguments], environment, timeout=300)


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
    done = play(state)
    assert done.returncode != 0
    assert "tls_ca is missing, and tls_ca.pem is there: restore the key" in " ".join(done.stdout.split())
    assert (state / "known_hosts").exists(), "first contact waits for the authority for servers"

    (state / "ca" / "tls_ca.pem").unlink()
    done = play(state, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (state / "ca" / "tls_ca").exists()

    (tmp_path / "kept").rename(state / "ca" / "tls_ca")
    done = play(state, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (state / "ca" / "tls_ca.pem").exists()
    assert play(state).returncode == 0
    assert (state / "ca" / "tls_ca.pem").read_bytes() != made
