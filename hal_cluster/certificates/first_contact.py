"""First contact: is the machine that answers the one whose host key somebody read from its console?

What was read is a fingerprint or the key itself, a line a node:

    hal05 SHA256:0ZQ...                   as ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub prints it
    hal06 256 SHA256:81k... root@localhost (ED25519)    the whole of that line
    hal07 ssh-ed25519 AAAA...             a line of known_hosts
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import write
from hal_cluster.certificates.keygen import fingerprint

FINGERPRINT = re.compile(r"(?:\d+ +)?(SHA256:[A-Za-z0-9+/]{43})=?(?: .*)?$")
KEY = re.compile(r"((?:ssh|ecdsa)-[\w@.-]+ [A-Za-z0-9+/=]{40,})(?: .*)?$")
SCAN_SECONDS = 10


def read_expected(text: str, where: str) -> dict[str, set[str]]:
    """Return the fingerprints by node name; CertificateError names the line that is neither of the three forms."""
    expected: dict[str, set[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.split("#", 1)[0].strip()
        if not stripped:
            continue
        names, _, value = stripped.partition(" ")
        key = expected_of(value.strip(), f"{where}:{number}")
        for name in names.split(","):
            expected.setdefault(name, set()).add(key)
    return expected


def expected_of(value: str, where: str) -> str:
    """Return the fingerprint that a fingerprint or a key stands for."""
    if match := FINGERPRINT.match(value):
        return match[1]
    if match := KEY.match(value):
        return fingerprint(match[1], where)
    if value.startswith("MD5:") or re.match(r"(?:[0-9a-f]{2}:){15}", value):
        raise CertificateError(
            f"{where}: an MD5 fingerprint can be forged; ssh-keygen -l -E sha256 -f FILE prints another"
        )
    raise CertificateError(f'{where}: write "NODE SHA256:..." (43 characters) or "NODE ssh-ed25519 AAAA..."')


def shown(address: str) -> list[str]:
    """Return the host keys that a machine shows, as "type base64"; CertificateError when it shows none."""
    argv = ["ssh-keyscan", "-T", str(SCAN_SECONDS), "-t", "ed25519,ecdsa,rsa", address]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CertificateError("ssh-keyscan is not installed; it comes with OpenSSH's client") from None
    keys = [" ".join(line.split()[1:3]) for line in done.stdout.splitlines() if line and not line.startswith("#")]
    if not keys:
        raise CertificateError(f"no SSH answer from {address}: is it on, is the address right, does sshd run?")
    return sorted(set(keys))


def pin(node: str, address: str, expected: Mapping[str, set[str]], authority: Authority, into: Path) -> list[str]:
    """Write a known_hosts with exactly the keys of a node that somebody read from its console; return them.

    CertificateError, and nothing is written, when the node shows another key or one that was revoked, or when that
    cannot be told: the register has lost a line.
    """
    if node not in expected:
        raise CertificateError(f"{node}: no host key was given for it; read one from its console (docs/operations.md)")
    keys = {fingerprint(key): key for key in shown(address)}
    authority.hosts.refuse_lost()
    revoked = authority.hosts.keys()
    if again := sorted(digest for digest, key in keys.items() if key in revoked):
        raise CertificateError(
            f"{node}: {address} shows a key that was revoked ({again[0]}); give it a new one at its console"
        )
    matching = sorted(expected[node] & keys.keys())
    if not matching:
        raise CertificateError(
            f"{node}: {address} shows {', '.join(sorted(keys))}, its console said {', '.join(sorted(expected[node]))}: "
            "another machine answers there, or the line was misread; nothing was changed"
        )
    into.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "".join(f"{node} {keys[digest]}\n" for digest in matching)
    if not into.exists() or into.read_text(encoding="utf-8") != text:
        write(into, text.encode(), 0o600)
    return matching
