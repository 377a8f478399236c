"""First secrets of a node that is being installed: its host key with a certificate, and what its sshd believes.

With them the freshly installed node can be told from any other machine, and Ansible comes in to do the rest: role ssh
writes all of these files anew in the first rollout, and keeps the key (host_key.yml, ``regenerate: fail``).

The private key is in a folder that only its owner can read, as long as ssh-keygen needs it, and in the archive, which
goes to ``hal-provision spool`` by standard input. It is in no record and no log.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.keygen import fingerprint, public_key, run
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import BootNode

KEY = "ssh_host_ed25519_key"
# For OpenSSH 7.4 of CentOS 7, and for none of the nodes' architectures or releases in particular: no Include there.
SSHD_CONFIG = f"""\
# Of the installation. The role "ssh" replaces it; changes made here are lost.
HostKey /etc/ssh/{KEY}
HostCertificate /etc/ssh/{KEY}-cert.pub
TrustedUserCAKeys /etc/ssh/user_ca.pub
RevokedKeys /etc/ssh/revoked_keys
SyslogFacility AUTHPRIV
PermitRootLogin prohibit-password
PubkeyAuthentication yes
AuthorizedKeysFile .ssh/authorized_keys
PasswordAuthentication no
ChallengeResponseAuthentication no
PermitEmptyPasswords no
UsePAM yes
UseDNS no
Subsystem sftp internal-sftp

Match User root
    AuthorizedPrincipalsFile /etc/ssh/principals.root
"""


def first_secrets(
    node: BootNode, network: str, authority: Path, root_principals: Sequence[str] = ("root",)
) -> tuple[bytes, str]:
    """Return a tar for ``hal-provision spool``, and the SHA256 fingerprint of the new host key that is in it.

    ``network``: the one by which Ansible reaches the node; ``authority``: the folder of the site's authorities (ca in
    hal_state_dir); ``root_principals``: as ssh_authorized_principals.root. The certificate has the names that DESIGN
    gives host certificates: short name, FQDN, address. ProvisionError when the authority lacks something.
    """
    if not root_principals or any(not word or word != word.strip() or "\n" in word for word in root_principals):
        raise ProvisionError(
            f"{node.name}: ssh_authorized_principals.root is {list(root_principals)}: words, one at least"
        )
    try:
        with tempfile.TemporaryDirectory(prefix="hal-first-secrets-") as folder:  # 0700: mkdtemp(3)
            key = Path(folder) / KEY
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node.name, "-f", key)
            public = key.with_name(f"{KEY}.pub")
            certificate = Authority(authority).sign_first_host_key(public, node.name, node.fqdn, node.address(network))
            files = {
                KEY: (0o600, key.read_bytes()),
                f"{KEY}.pub": (0o644, public.read_bytes()),
                f"{KEY}-cert.pub": (0o644, certificate.encode()),
                "user_ca.pub": (0o644, _read(authority / "user_ca.pub")),
                "revoked_keys": (0o644, _read(authority / "revoked_keys")),
                "principals.root": (0o644, "".join(f"{word}\n" for word in root_principals).encode()),
                "sshd_config": (0o600, SSHD_CONFIG.encode()),
            }
            return _tar(files), fingerprint(public_key(public))
    except CertificateError as error:
        raise ProvisionError(f"{node.name}: no first secrets: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}; playbooks/authorities.yml makes it") from None


def _tar(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return an archive of files below etc/ssh, root's."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (mode, content) in files.items():
            entry = tarfile.TarInfo(f"etc/ssh/{name}")
            entry.mode, entry.size, entry.mtime = mode, len(content), int(time.time())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
