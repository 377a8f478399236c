"""The folder of a site's authorities: issue user certificates, revoke keys, make what sshd and ssh read.

host_ca, user_ca      the authorities; made by playbooks/authorities.yml
hosts/                host keys that were signed; NODE_ADDRESS-first.pub with an installation, the others by role ssh
issued.jsonl          user certificates with a serial number
revoked_users         what user_ca no longer vouches for: the list that ssh-keygen -k reads, with reasons as comments
revoked_hosts         host keys that are no longer believed: @revoked lines of known_hosts
revoked_keys          made from revoked_users: the KRL for sshd's RevokedKeys
../known_hosts        made from host_ca.pub and revoked_hosts: what the controller believes
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hal_certificates.errors import CertificateError
from hal_certificates.keygen import fingerprint, public_key, run
from hal_certificates.register import Issued, Register, stamp

BACK = timedelta(minutes=10)
"""How far back a certificate begins: a node whose clock is a little behind must not see one of tomorrow."""

HOST_DAYS = 365
"""How long the first host certificate is valid: as role ssh's (ssh_host_certificate_days), which renews it."""

USERS = "# Certificates and keys of users that are refused: ssh-keygen -k makes revoked_keys of this.\n"


class Authority:
    """The authorities in a folder."""

    def __init__(self, folder: Path) -> None:
        """CertificateError when they are not there."""
        self.folder = folder
        self.register = Register(folder / "issued.jsonl")
        for name in ("host_ca.pub", "user_ca.pub"):
            if not (folder / name).is_file():
                raise CertificateError(
                    f"{folder / name} is missing; restore it, or for a new site: playbooks/authorities.yml"
                )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One at a time: two calls at once would issue one serial number twice."""
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # --- issue

    def issue(self, user: str, key_file: Path, principals: Sequence[str], days: int) -> tuple[Issued, Path]:
        """Sign a user's public key; return the register's entry and where the certificate is, beside the key."""
        if days < 1:
            raise CertificateError(f"a certificate for {days} days is none; give 1 or more")
        for word in (user, *principals):
            if not word or not all(c.isalnum() or c in "._-" for c in word):
                raise CertificateError(f"{word!r} is no name; letters, digits, dots, dashes and underscores make one")
        if key_file.suffix != ".pub":
            raise CertificateError(f"{key_file}: name the public key, a file that ends in .pub")
        key = public_key(key_file)
        if key in self._revoked_keys():
            raise CertificateError(f"{key_file}: this key is revoked; {user} needs another")
        certificate = key_file.with_name(f"{key_file.stem}-cert.pub")
        now = datetime.now(timezone.utc)
        with self.locked(), tempfile.TemporaryDirectory(prefix="hal-certificate-") as scratch:
            copy = Path(scratch) / "key.pub"
            copy.write_text(f"{key} {user}\n")
            one = Issued(
                serial=self.register.next_serial(),
                user=user,
                principals=tuple(principals),
                key=key,
                fingerprint=fingerprint(key),
                issued=stamp(now),
                until=stamp(now + timedelta(days=days)),
            )
            # Relative times: absolute ones are read in this machine's time zone by older ssh-keygen.
            span = f"-{int(BACK.total_seconds())}s:+{days}d"
            signed = ["-I", user, "-z", str(one.serial), "-n", ",".join(principals), "-V", span]
            run("ssh-keygen", "-q", "-s", self.folder / "user_ca", *signed, copy)
            # Registered before it is handed out: a certificate that nobody knows of cannot be revoked.
            self.register.add(one)
            write(certificate, (Path(scratch) / "key-cert.pub").read_bytes(), 0o644)
        return one, certificate

    def sign_first_host_key(self, public: Path, node: str, fqdn: str, address: str) -> str:
        """Sign the host key that a node gets with its installation; return the certificate. For HOST_DAYS.

        ``address``: in the management network. The key is kept as hosts/NODE_ADDRESS-first.pub before it is handed out,
        so that it can be revoked where the node's first rollout, which role ssh keeps the key of, never came.
        """
        key = public_key(public)
        kept = self._first(node, address)
        with tempfile.TemporaryDirectory(prefix="hal-certificate-") as scratch:
            copy = Path(scratch) / "key.pub"
            copy.write_text(f"{key} {node}\n")
            signed = ["-I", fqdn, "-h", "-n", ",".join([node, fqdn, address]), "-V", f"-1d:+{HOST_DAYS}d"]
            run("ssh-keygen", "-q", "-s", self.folder / "host_ca", *signed, copy)
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            write(kept, copy.read_bytes(), 0o600)
            return (Path(scratch) / "key-cert.pub").read_text()

    def _first(self, node: str, address: str) -> Path:
        return self.folder / "hosts" / f"{node}_{address}-first.pub"

    # --- revoke

    def revoke_serials(self, serials: Sequence[int], reason: str) -> list[str]:
        """Refuse certificates by their numbers; return what was added."""
        known = {one.serial: one for one in self.register}
        for serial in serials:
            if serial not in known:
                raise CertificateError(
                    f"no certificate {serial} was issued; python -m hal_certificates list shows them"
                )
        lines = [(f"serial: {serial}", f"{known[serial].user}: {reason}") for serial in serials]
        return self._add_users(lines)

    def revoke_user(self, user: str, reason: str) -> list[str]:
        """Refuse every certificate of a user that has not run out."""
        now = datetime.now(timezone.utc)
        serials = [one.serial for one in self.register if one.user == user and one.valid(now)]
        if not serials:
            raise CertificateError(f"{user} has no valid certificate; python -m hal_certificates list shows all")
        return self.revoke_serials(serials, reason)

    def revoke_key(self, key_file: Path, reason: str) -> list[str]:
        """Refuse a user's key, with and without any certificate."""
        key = public_key(key_file)
        own = self.folder / "admin.pub"
        if own.exists() and public_key(own) == key:
            raise CertificateError(
                f"{own} is the key by which this controller comes in; docs/operations.md says how to replace it"
            )
        return self._add_users([(f"key: {key}", f"{fingerprint(key)}: {reason}")])

    def revoke_node(self, node: str, address: str, reason: str) -> list[str]:
        """No longer believe a node's host key, whatever certificate it has, nor the one of its last installation."""
        signed = self.folder / "hosts" / f"{node}_{address}.pub"
        there = [path for path in (signed, self._first(node, address)) if path.is_file()]
        if not there:
            raise CertificateError(f"{node}: no key of it was signed here ({signed} is missing)")
        with self.locked():
            lines = self.revoked_hosts()
            known = [one.split()[2:4] for one in lines]
            keys = [key for key in dict.fromkeys(map(public_key, there)) if key.split() not in known]
            new = [f"@revoked * {key} {node}: {_words(reason)}" for key in keys]
            if new:
                write(self.folder / "revoked_hosts", ("\n".join([*lines, *new]) + "\n").encode(), 0o600)
        return new

    def revoked_hosts(self) -> list[str]:
        """Return the @revoked lines."""
        path = self.folder / "revoked_hosts"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def revoked_serials(self) -> set[int]:
        """Return the numbers that are refused."""
        return {int(line.split()[1]) for line in self._users() if line.startswith("serial: ")}

    def _revoked_keys(self) -> set[str]:
        return {line.removeprefix("key: ") for line in self._users() if line.startswith("key: ")}

    def _users(self) -> list[str]:
        path = self.folder / "revoked_users"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _add_users(self, entries: Sequence[tuple[str, str]]) -> list[str]:
        today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        with self.locked():
            lines = self._users() or USERS.splitlines()
            new = [(entry, why) for entry, why in entries if entry not in lines]
            for entry, why in new:
                lines += [f"# {today} {_words(why)}", entry]
            if new:
                write(self.folder / "revoked_users", ("\n".join(lines) + "\n").encode(), 0o600)
        return [entry for entry, _ in new]

    # --- what is made from the lists

    def build(self) -> list[str]:
        """Make revoked_keys and the controller's known_hosts anew where the lists changed; return what was made."""
        made = []
        with self.locked():
            lists, krl = self.folder / "revoked_users", self.folder / "revoked_keys"
            for path, text in ((lists, USERS), (self.folder / "revoked_hosts", "")):
                if not path.exists():
                    write(path, text.encode(), 0o600)
            if not krl.exists() or krl.stat().st_mtime_ns < lists.stat().st_mtime_ns:
                with tempfile.TemporaryDirectory(prefix="hal-revoked-") as scratch:
                    new = Path(scratch) / "revoked_keys"
                    run("ssh-keygen", "-q", "-k", "-f", new, "-s", self.folder / "user_ca.pub", lists)
                    run("ssh-keygen", "-Q", "-f", new)  # sshd refuses every key when it cannot read this
                    write(krl, new.read_bytes(), 0o644)
                made.append(str(krl))
            known = self.folder.parent / "known_hosts"
            text = "\n".join([self.known_hosts_line(), *self.revoked_hosts()]) + "\n"
            if not known.exists() or known.read_text(encoding="utf-8") != text:
                write(known, text.encode(), 0o644)
                made.append(str(known))
        return made

    def known_hosts_line(self) -> str:
        """Return the line that believes all host certificates of the site."""
        return f"@cert-authority * {(self.folder / 'host_ca.pub').read_text(encoding='utf-8').strip()}"


def _words(text: str) -> str:
    """Return text as one printable line: it becomes a comment in a list."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file as a whole: sshd may read it at any moment."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        new.chmod(mode)
        new.replace(path)
    except OSError as error:
        raise CertificateError(f"{path}: cannot be written: {error.strerror}") from None
