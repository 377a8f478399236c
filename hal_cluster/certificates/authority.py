"""The folder of a site's authorities: issue user certificates, revoke keys, make what sshd and ssh read.

host_ca, user_ca      the authorities; made by playbooks/authorities.yml
hosts/                host keys that were signed; NODE_ADDRESS-first.pub with an installation, the others by role ssh
backup/               of role backup: keys by which nodes send archives, NODE_ADDRESS.pub, and by which they sign them,
                      signers/NODE/*.pem (*.pem.revoked: believed no longer)
*.pub.*~              in both: keys that a node had before it was made anew, or installed again
issued.jsonl          user certificates with a serial number
revoked_*             what is believed no longer, and what is made of it: hal_cluster.certificates.revoked
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import refuse_missing, write
from hal_cluster.certificates.keygen import fingerprint, public_key, run
from hal_cluster.certificates.node_keys import is_of_no_node, nodes_with
from hal_cluster.certificates.register import Issued, Register, stamp
from hal_cluster.certificates.revoked import RevokedHosts, RevokedUsers
from hal_cluster.lock import locked

BACK = timedelta(minutes=10)
"""How far back a certificate begins: a node whose clock is a little behind must not see one of tomorrow."""

HOST_DAYS = 365
"""How long the first host certificate is valid: as role ssh's (ssh_host_certificate_days), which renews it."""

STILL = timedelta(days=365)
"""For how long after its end a certificate is revoked with its user: this clock may be ahead, and a node's behind."""

NOT_REVOKED = {
    "admin.pub": "is the key by which this controller comes in; docs/operations.md says how to replace it",
    "user_ca.pub": "is the authority of all users' certificates; without it nobody comes in, nor does this controller",
}


class Authority:
    """The authorities in a folder."""

    def __init__(self, folder: Path) -> None:
        """CertificateError when they are not there."""
        self.folder = folder
        self.register = Register(folder / "issued.jsonl")
        self.users = RevokedUsers(folder)
        self.hosts = RevokedHosts(folder)
        for name in ("host_ca.pub", "user_ca.pub"):
            refuse_missing(folder / name)

    def locked(self) -> AbstractContextManager[None]:
        """One at a time: two calls at once would issue one serial number twice."""
        return locked(self.folder / ".lock", CertificateError, "the site's authorities")

    # --- issue

    def issue(self, user: str, key_file: Path, principals: Sequence[str], days: int) -> tuple[Issued, Path]:
        """Sign a user's public key; return the register's entry and where the certificate is, beside the key."""
        if days < 1:
            raise CertificateError(f"a certificate for {days} days is not valid; give 1 or more")
        for word in (user, *principals):
            _refuse_no_name(word)
        if key_file.suffix != ".pub":
            raise CertificateError(f"{key_file}: name the public key, a file that ends in .pub")
        key = public_key(key_file)
        self.users.refuse_lost()
        if f"key: {key}" in self.users.entries():
            raise CertificateError(f"{key_file}: this key is revoked; {user} needs another")
        # Else the node's next rollout is refused: node_keys.problem.
        if nodes := nodes_with(self.folder, key):
            raise CertificateError(
                f"{key_file}: this is a key of {', '.join(nodes)}; {user} needs one that nobody else has"
            )
        certificate = key_file.with_name(f"{key_file.stem}-cert.pub")
        now = datetime.now(timezone.utc)
        with self.locked(), tempfile.TemporaryDirectory(prefix="hal-certificate-") as scratch:
            copy = Path(scratch) / "key.pub"
            copy.write_text(f"{key} {user}\n")
            issued = Issued(
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
            signed = ["-I", user, "-z", str(issued.serial), "-n", ",".join(principals), "-V", span]
            run("ssh-keygen", "-q", "-s", self.folder / "user_ca", *signed, copy)
            # Registered before it is handed out: a certificate that nobody knows of cannot be revoked.
            self.register.add(issued)
            write(certificate, (Path(scratch) / "key-cert.pub").read_bytes(), 0o644)
        return issued, certificate

    def sign_first_host_key(self, public: Path, node: str, fqdn: str, address: str) -> str:
        """Sign the host key that a node gets with its installation; return the certificate. For HOST_DAYS.

        ``address``: in the management network. The key is kept as hosts/NODE_ADDRESS-first.pub before it is handed out,
        so that it can be revoked where the node's first rollout, which role ssh keeps the key of, never came. Those of
        earlier installations are kept as former ones.
        """
        key = public_key(public)
        kept = self._first(node, address)
        with tempfile.TemporaryDirectory(prefix="hal-certificate-") as scratch:
            copy = Path(scratch) / "key.pub"
            copy.write_text(f"{key} {node}\n")
            signed = ["-I", fqdn, "-h", "-n", ",".join([node, fqdn, address]), "-V", f"-1d:+{HOST_DAYS}d"]
            run("ssh-keygen", "-q", "-s", self.folder / "host_ca", *signed, copy)
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            if kept.exists():
                kept.rename(f"{kept}.{sha256(kept.read_bytes()).hexdigest()[:16]}~")
            write(kept, copy.read_bytes(), 0o600)
            return (Path(scratch) / "key-cert.pub").read_text()

    def _first(self, node: str, address: str) -> Path:
        return self.folder / "hosts" / f"{node}_{address}-first.pub"

    # --- revoke

    def revoke_serials(self, serials: Sequence[int], reason: str) -> list[str]:
        """Refuse certificates by their numbers; return what was added."""
        known = {issued.serial: issued for issued in self.register}
        for serial in serials:
            if serial not in known:
                raise CertificateError(
                    f"no certificate {serial} was issued; python -m hal_cluster.certificates list shows them"
                )
        return self._add_users([(f"serial: {serial}", f"{known[serial].user}: {reason}") for serial in serials])

    def revoke_user(self, user: str, reason: str) -> list[str]:
        """Refuse every certificate of a user, but those that ran out long ago."""
        since = datetime.now(timezone.utc) - STILL
        serials = [issued.serial for issued in self.register if issued.user == user and issued.valid(since)]
        if not serials:
            raise CertificateError(
                f"{user} has had no valid certificate since {stamp(since)} by this computer's clock;"
                " python -m hal_cluster.certificates list shows all"
            )
        return self.revoke_serials(serials, reason)

    def revoke_key(self, key_file: Path, reason: str) -> list[str]:
        """Refuse a user's key, with and without any certificate."""
        key = public_key(key_file)
        for name, why in NOT_REVOKED.items():
            own = self.folder / name
            if own.exists() and public_key(own) == key:
                raise CertificateError(f"{own} {why}")
        return self._add_users([(f"key: {key}", f"{fingerprint(key)}: {reason}")])

    def revoke_node(self, node: str, address: str, reason: str) -> list[str]:
        """No longer believe a node's host key, whatever certificate it has, nor the one of its last installation.

        Nor take backups that are sent by its key, nor believe one that it signed; nor any key that it had before it was
        made anew. What a node shows to others is in the register of hosts, what it comes in by in that of users.
        ``address``: in the management network; empty for a node that left the model, then at each address it had.
        """
        _refuse_no_name(node)  # a pattern would be many
        shows, sends = self._keys_of("hosts", node, address), self._keys_of("backup", node, address)
        signers = sorted((self.folder / "backup" / "signers" / node).glob("*.pem"))
        if not (shows or sends or signers):
            signed = self.folder / "hosts" / f"{node}_{address}.pub"
            raise CertificateError(f"{node}: no key of it was signed here ({signed} is missing)")
        with self.locked():
            self._refuse_lost()
            added = self.hosts.add(shows, f"{node}: {_words(reason)}")
        added += self._add_users([(f"key: {key}", f"{node}, sends backups: {reason}") for key in sends])
        return added + [str(signer.rename(f"{signer}.revoked")) for signer in signers]

    def _keys_of(self, folder: str, node: str, address: str) -> list[str]:
        """The keys of a node, NODE_ADDRESS.pub and -first.pub, and former ones, which copy: backup names .pub.*~.

        CertificateError when one is somebody else's: kept before keys were looked at, or signed for a user since.
        """
        own = f"{node}_{address or '*'}"
        paths = [path for end in (".pub*", "-first.pub*") for path in sorted((self.folder / folder).glob(own + end))]
        keys = {path: public_key(path) for path in paths if not path.name.endswith("-cert.pub")}
        for path, key in keys.items():
            if is_of_no_node(self.folder, key):
                raise CertificateError(
                    f"{path} has a key of the controller, the authorities or a user: to revoke it would lock them out."
                    f" {node} showed it as its own: move the file to another folder, revoke {node} again, and look who"
                    " was root there"
                )
        return list(keys.values())

    def _add_users(self, entries: Sequence[tuple[str, str]]) -> list[str]:
        today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        with self.locked():
            self._refuse_lost()
            return self.users.add([(entry, f"{today} {_words(why)}") for entry, why in entries])

    def _refuse_lost(self) -> None:
        """CertificateError when a register has lost a line: before anything is added to one or made of one."""
        self.users.refuse_lost()
        self.hosts.refuse_lost()

    # --- what is made from the registers

    def build(self, taken_back: bool = False) -> list[str]:
        """Make revoked_keys and the controller's known_hosts of the registers; return those that are others now.

        CertificateError, and nothing is made, when a register has lost a line; with ``taken_back`` that was meant.
        """
        with self.locked():
            if not taken_back:
                self._refuse_lost()
            return [str(path) for path in (*self.users.build(), *self.hosts.build())]


def _refuse_no_name(word: str) -> None:
    if not word or not all(c.isalnum() or c in "._-" for c in word):
        raise CertificateError(f"{word!r} is not a name; letters, digits, dots, dashes and underscores make one")


def _words(text: str) -> str:
    """Return text as one printable line: it becomes a comment in a list."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
