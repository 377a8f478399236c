"""What is believed no longer: two registers, the lists that are made of them, and the proof that a list refuses it.

revoked_users     register: a line for each certificate and key of users, above it when and why
revoked_keys      made of it: the KRL for sshd's RevokedKeys
revoked_samples   for each line of it what a list is asked about: the key, or a certificate with the number
revoked_hosts     register: host keys, as @revoked lines
../known_hosts    made of it and of host_ca.pub: what the controller believes

A register only grows. One that has lost a line was changed by hand or restored from an old backup: no list is made of
it that refuses less than the one in place, unless somebody says that a revocation was taken back. Whether a list is
another one is seen by its content, never by a time: clocks go wrong.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.files import lines_of, refuse_missing, write
from hal_cluster.certificates.keygen import checked, fingerprint, let_in, run

HEAD = "# Certificates and keys of users that are refused: playbooks/revoke.yml makes revoked_keys of this.\n"
NUMBER = re.compile(r"[1-9][0-9]{0,18}")
"""A serial number: 0 is what certificates without one have; ssh-keygen takes 010 for 8."""

LONG_AGO = "19990101:19990102"
"""When certificates were valid that are made to ask a list about: in the past by every clock."""

_DATE = slice(20, 28)
"""When a KRL was made, in the KRL: "generated_date" of PROTOCOL.krl in OpenSSH."""


class RevokedUsers:
    """Certificates and keys of users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.register = folder / "revoked_users"
        self.list = folder / "revoked_keys"
        self._samples = folder / "revoked_samples"

    def entries(self) -> dict[str, int]:
        """Return what is refused, each as a line for ssh-keygen -k, and at which line of the register it stands.

        CertificateError when a line is neither a serial number nor a key, or the register is missing beside its list.
        """
        refused: dict[str, int] = {}
        for number, line in enumerate(self._lines(), 1):
            text = line.partition("#")[0].strip()
            kind, _, value = text.partition(":")
            words = value.split()
            if kind == "serial" and len(words) == 1 and NUMBER.fullmatch(words[0]):
                refused.setdefault(f"serial: {words[0]}", number)
            elif kind == "key" and len(words) > 1 and "-cert-" not in words[0]:
                refused.setdefault(f"key: {words[0]} {words[1]}", number)
            elif text:
                raise CertificateError(
                    f'{self.register}:{number}: "{text}" revokes nothing; write "serial: NUMBER" or "key: TYPE BASE64"'
                )
        return refused

    def samples(self) -> list[str]:
        """Return what every list of the site has to refuse: for each entry a line of a .pub file, its name as comment.

        CertificateError when an entry has none, because no list was made since, and when the register has lost one. Or
        is missing: that nothing was revoked is said by an empty one.
        """
        refuse_missing(self.register)
        self.refuse_lost()
        known = self._known()
        entries = self.entries()
        if missing := [entry for entry in entries if entry not in known]:
            raise CertificateError(
                f"{self.register}:{entries[missing[0]]}: no list was made since this line was added:"
                f" python -m hal_cluster.certificates --authority {self.folder} build"
            )
        return [known[entry] for entry in entries]

    def refuse_lost(self) -> None:
        """CertificateError when the register no longer has what the list in place was made of."""
        entries = self.entries()
        lost = [_name(sample) for entry, sample in self._known().items() if entry not in entries]
        _refuse(self.register, lost, self.list)

    def add(self, new: Sequence[tuple[str, str]]) -> list[str]:
        """Add entries with their reasons; return those that were not there."""
        there, lines = self.entries(), self._lines() or HEAD.splitlines()
        added = {entry: why for entry, why in new if entry not in there}
        for entry, why in added.items():
            lines += [f"# {why}", entry]
        if added:
            write(self.register, _text(lines), 0o600)
        return list(added)

    def build(self) -> list[Path]:
        """Make the list of the register and prove that it refuses each entry; return it if another one was in place."""
        entries = self.entries()
        made = []
        if not self.register.exists():
            write(self.register, HEAD.encode(), 0o600)
        with tempfile.TemporaryDirectory(prefix="hal-revoked-") as scratch:  # 0700: mkdtemp(3)
            lines, new = Path(scratch) / "lines", Path(scratch) / "list"
            lines.write_bytes(_text(entries))
            samples = self._sampled(entries, Path(scratch))
            run("ssh-keygen", "-q", "-k", "-f", new, "-s", self.folder / "user_ca.pub", lines)
            _prove(new, samples, "the list that ssh-keygen made")
            content = new.read_bytes()
        write(self._samples, _text(samples), 0o600)
        if not self.list.is_file() or _undated(self.list.read_bytes()) != _undated(content):
            write(self.list, content, 0o644)
            made.append(self.list)
        _prove(self.list, samples, str(self.list))
        return made

    def _sampled(self, entries: dict[str, int], scratch: Path) -> list[str]:
        """Return a line of a .pub file for each entry: the key, or a certificate with the number, worth nothing itself.

        It is of a key that is gone with ``scratch``, for nobody's account, and ran out long ago. It has to be signed by
        the authority: ssh-keygen asks no list about another.
        """
        key = scratch / "key"
        if any(entry.startswith("serial: ") for entry in entries):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        samples = []
        for entry, number in entries.items():
            kind, _, value = entry.partition(": ")
            if kind == "key":
                samples.append(f"{value} key: {fingerprint(value, f'{self.register}:{number}')}")
                continue
            signed = ["-I", "revoked", "-z", value, "-n", "nobody", "-V", LONG_AGO, f"{key}.pub"]
            run("ssh-keygen", "-q", "-s", self.folder / "user_ca", *signed)
            samples.append(f"{' '.join((scratch / 'key-cert.pub').read_text().split()[:2])} {entry}")
        return samples

    def _known(self) -> dict[str, str]:
        """The samples that are there, by entry."""
        samples = {}
        for number, line in enumerate(lines_of(self._samples), 1):
            words = line.split(" ", 2)
            if len(words) < 3:
                raise CertificateError(f"{self._samples}:{number}: cannot be read; restore it from its backup")
            samples[words[2] if words[2].startswith("serial: ") else f"key: {words[0]} {words[1]}"] = line
        return samples

    def _lines(self) -> list[str]:
        if self.list.exists() and not self.register.exists():
            raise CertificateError(f"{self.register} is missing, and its list is there; restore it from its backup")
        return lines_of(self.register)


class RevokedHosts:
    """Host keys of nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.register = folder / "revoked_hosts"
        self.list = folder.parent / "known_hosts"

    def lines(self) -> list[str]:
        """Return the @revoked lines."""
        return lines_of(self.register)

    def keys(self) -> list[str]:
        """Return the keys, as "type base64"; CertificateError names the line that is not a key."""
        return [checked(key, where) for key, where in self._entries()]

    def refuse_lost(self) -> None:
        """CertificateError when the register no longer has what the list in place was made of."""
        self._refuse_lost(self.keys())

    def spread(self) -> list[str]:
        """Return the register's lines for the nodes.

        CertificateError when it has lost one, or is missing: that nothing was revoked is said by an empty one. OpenSSH
        is not asked: a rollout reads this for each node.
        """
        refuse_missing(self.register)
        self._refuse_lost([key for key, _ in self._entries()])
        return self.lines()

    def _entries(self) -> list[tuple[str, str]]:
        """The keys, and where each stands. Of a key for one name only, ssh believes the host by its other names."""
        entries = []
        for number, line in enumerate(self.lines(), 1):
            where = f"{self.register}:{number}"
            words = line.split()
            if words and not words[0].startswith("#"):
                if words[:2] != ["@revoked", "*"] or len(words) < 4:
                    raise CertificateError(f'{where}: "{line}" revokes nothing; write "@revoked * TYPE BASE64 REASON"')
                entries.append((f"{words[2]} {words[3]}", where))
        return entries

    def _refuse_lost(self, keys: Sequence[str]) -> None:
        before = [" ".join(line.split()[2:4]) for line in lines_of(self.list) if line.startswith("@revoked ")]
        _refuse(self.register, [f"key: {fingerprint(key)}" for key in before if key not in keys], self.list)

    def add(self, keys: Iterable[str], why: str) -> list[str]:
        """Add keys with a reason; return the lines of those that were not there."""
        there = self.keys()
        added = [f"@revoked * {key} {why}" for key in dict.fromkeys(keys) if key not in there]
        if added:
            write(self.register, _text([*self.lines(), *added]), 0o600)
        return added

    def build(self) -> list[Path]:
        """Make what the controller believes of the register; return it if it was otherwise."""
        self.keys()
        if not self.register.exists():
            write(self.register, b"", 0o600)
        content = _text([self.believed(), *self.lines()])
        if self.list.is_file() and self.list.read_bytes() == content:
            return []
        write(self.list, content, 0o644)
        return [self.list]

    def believed(self) -> str:
        """Return the line that believes all host certificates of the site."""
        return f"@cert-authority * {(self.folder / 'host_ca.pub').read_text(encoding='utf-8').strip()}"


def _prove(krl: Path, samples: Sequence[str], what: str) -> None:
    """CertificateError when a list does not refuse all of them."""
    if names := [_name(sample) for sample in let_in(krl, samples)]:
        raise CertificateError(f"{what} does not refuse {', '.join(names)}: the revocation is not in effect")


def _refuse(register: Path, lost: Sequence[str], made: Path) -> None:
    if lost:
        raise CertificateError(
            f"{register} no longer has {', '.join(lost)}, which {made.name} refuses: put the lines back,"
            " or, if that was to take a revocation back:"
            f" python -m hal_cluster.certificates --authority {register.parent} build --taken-back"
        )


def _name(sample: str) -> str:
    return sample.split(" ", 2)[2]


def _undated(krl: bytes) -> tuple[bytes, bytes]:
    return krl[: _DATE.start], krl[_DATE.stop :]


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
