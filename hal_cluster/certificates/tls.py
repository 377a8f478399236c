"""The site's X.509 authority: certificates for BMCs, for the web server that nodes install from, for whoever shows one.

tls_ca        its private key, 0600, never copied to a node; made by playbooks/authorities.yml
tls_ca.pem    its certificate: what clients believe
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hal_cluster.certificates.authority import BACK
from hal_cluster.certificates.errors import CertificateError

KEY, CERTIFICATE = "tls_ca", "tls_ca.pem"
LONGEST_COMMON_NAME = 64
"""RFC 5280, ub-common-name; longer names stand in the alternative names alone."""


@dataclass(frozen=True)
class TlsAuthority:
    """A key and its certificate, which belong together."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def tls_authority(folder: Path) -> TlsAuthority:
    """Read the authority in a folder.

    CertificateError when a part is missing, others may read the key, the parts do not belong together or it ran out.
    """
    key_file, certificate_file = folder / KEY, folder / CERTIFICATE
    for path in (key_file, certificate_file):
        if not path.is_file():
            raise CertificateError(f"{path} is missing; restore it, or for a new site: playbooks/authorities.yml")
    if key_file.stat().st_mode & 0o077:
        raise CertificateError(f"{key_file}: others may read it; chmod 600, and think of who has")
    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
    except (ValueError, TypeError):
        raise CertificateError(f"{key_file}, {certificate_file}: not a key and a certificate in PEM") from None
    except OSError as error:
        raise CertificateError(f"{error.filename}: cannot be read: {error.strerror}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{key_file}: not a key on an elliptic curve, which playbooks/authorities.yml makes")
    if key.public_key() != certificate.public_key():
        raise CertificateError(f"{certificate_file} is of another key than {key_file}; restore both from one backup")
    if certificate.not_valid_after_utc < datetime.now(timezone.utc):
        raise CertificateError(f"{certificate_file} ran out on {certificate.not_valid_after_utc:%Y-%m-%d}")
    return TlsAuthority(key, certificate)


def tls_sign_request(folder: Path, request: str, names: Sequence[str], addresses: Sequence[str], days: int) -> str:
    """Return the certificate, PEM, for the key of a signing request (PKCS #10, PEM).

    The key alone is taken from the request: what the server is called is what the model says, not what it asks for.
    """
    try:
        asked = x509.load_pem_x509_csr(request.encode("ascii"))
        valid = asked.is_signature_valid
        public = asked.public_key()
    except (ValueError, UnicodeEncodeError, InvalidSignature):
        raise CertificateError("the signing request is not PKCS #10 in PEM") from None
    if not valid:
        raise CertificateError("the signing request is not signed by the key that it is for")
    return _signed(tls_authority(folder), public, names, addresses, days)


def _signed(authority: TlsAuthority, public: object, names: Sequence[str], addresses: Sequence[str], days: int) -> str:
    if days < 1:
        raise CertificateError(f"a certificate for {days} days is not valid; give 1 or more")
    if not names:
        raise CertificateError("a certificate needs a name")
    try:
        places = [ipaddress.ip_address(address) for address in addresses]
        known: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    except ValueError as error:
        raise CertificateError(f"{error}") from None
    known += [x509.IPAddress(place) for place in places]
    now = datetime.now(timezone.utc)
    until = min(now + timedelta(days=days), authority.certificate.not_valid_after_utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:LONGEST_COMMON_NAME])]))
        .issuer_name(authority.certificate.subject)
        .public_key(public)  # type: ignore[arg-type]  # any key that a request may have
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACK)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
