"""Calls of OpenSSH's own programs: nothing here knows the format of a key or of a list of revoked ones."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError


def run(*argv: str | Path, stdin: str | None = None, accept: Sequence[int] = (0,)) -> str:
    """Return what a program prints; CertificateError with its last words when it fails or is not there.

    ``accept``: exit statuses that do not mean a failure.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(words, input=stdin or "", capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CertificateError(f"{words[0]} is not installed; it comes with OpenSSH's client") from None
    if done.returncode not in accept:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CertificateError(f"{words[0]}: {said[-1] if said else f'ended with status {done.returncode}'}")
    return done.stdout


def let_in(krl: Path, samples: Sequence[str]) -> list[str]:
    """Return those that a list of revoked ones does not refuse, of public keys and certificates as lines of .pub files.

    CertificateError when the list or one of them cannot be read. OpenSSH 7.4 and later print a line for each in its
    order, which ends in "REVOKED" or "ok", and end with 1 where one is revoked, else 0: do_check_krl in ssh-keygen.c.
    """
    with tempfile.TemporaryDirectory(prefix="hal-revoked-") as scratch:
        files = [Path(scratch) / str(number) for number in range(len(samples))]
        for file, sample in zip(files, samples, strict=True):
            file.write_text(f"{sample}\n", encoding="utf-8")
        answers = run("ssh-keygen", "-Q", "-f", krl, *files, accept=(0, 1)).splitlines()
    if len(answers) != len(samples):
        raise CertificateError(f"{krl}: ssh-keygen -Q was asked about {len(samples)} keys and answered {len(answers)}")
    return [sample for sample, answer in zip(samples, answers, strict=True) if not answer.endswith(": REVOKED")]


def public_key(path: Path) -> str:
    """Return the public key in a file as "type base64"; a private key or a certificate is refused."""
    try:
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if words[:1] == ["-----BEGIN"]:
        raise CertificateError(f"{path} is a private key; name the public one, {path}.pub")
    if len(words) < 2 or "-cert-" in words[0]:
        raise CertificateError(f"{path} is not a public key; one begins with its type, as ssh-ed25519")
    return checked(f"{words[0]} {words[1]}", str(path))


def checked(key: str, where: str) -> str:
    """Return a public key that OpenSSH can read; CertificateError names where it stands."""
    fingerprint(key, where)
    return key


def fingerprint(key: str, where: str = "the key") -> str:
    """Return the SHA256 fingerprint of a public key, as sshd and ssh-keygen print it."""
    try:
        return run("ssh-keygen", "-l", "-E", "sha256", "-f", "-", stdin=f"{key}\n").split()[1]
    except (CertificateError, IndexError):
        raise CertificateError(f"{where}: OpenSSH cannot read this key") from None
