"""The certificate that a BMC shows: one of its own as delivered, until another is installed.

OpenBMC's own names "testhost" and no address, so it can be pinned but not checked by name (openbmc/bmcweb,
ssl_key_handler).
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import NameOID
from testbed.errors import VirtualNodesError

from bmc.spec import Spec

DELIVERED_DAYS = 3650
DELIVERED_NAME = "testhost"


class CertificateRefusedError(Exception):
    """A certificate that the BMC does not take; says why."""


class Certificates:
    """Key and certificate of one BMC, in its state folder; a replaced one is shown to the next connection."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        """Take what is there or given, or make a self-signed one; raise VirtualNodesError when they do not fit."""
        self._certificate, self._key = folder / f"{spec.name}.crt", folder / f"{spec.name}.key"
        self._pending: PrivateKeyTypes | None = None
        self._lock = threading.Lock()
        if not self._certificate.exists():
            if spec.certificate and spec.key:
                self._keep(spec.certificate.read_bytes(), spec.key.read_bytes())
            else:
                self._keep(*_delivered())
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self.context.load_cert_chain(self._certificate, self._key)
        except (ssl.SSLError, OSError) as error:
            raise VirtualNodesError(f"{self._certificate}: {error.strerror or error}; its key has to fit") from None

    @property
    def pem(self) -> str:
        """The certificate that is shown now."""
        return self._certificate.read_text()

    def request(self, names: Sequence[str], curve: str = "secp384r1", **subject: str) -> str:
        """Make a key that waits for its certificate; return the request for it (PEM). The key never leaves the BMC."""
        curves: dict[str, type[ec.EllipticCurve]] = {"secp384r1": ec.SECP384R1, "prime256v1": ec.SECP256R1}
        if curve not in curves:
            raise CertificateRefusedError(f"KeyCurveId is {curve}; it is one of {', '.join(curves)}")
        key = ec.generate_private_key(curves[curve]())
        oids = {
            "CommonName": NameOID.COMMON_NAME,
            "Organization": NameOID.ORGANIZATION_NAME,
            "OrganizationalUnit": NameOID.ORGANIZATIONAL_UNIT_NAME,
            "City": NameOID.LOCALITY_NAME,
            "State": NameOID.STATE_OR_PROVINCE_NAME,
            "Country": NameOID.COUNTRY_NAME,
        }
        try:
            name = x509.Name([x509.NameAttribute(oids[field], text) for field, text in subject.items() if text])
            builder = x509.CertificateSigningRequestBuilder().subject_name(name)
            if names:
                others = x509.SubjectAlternativeName([_general_name(text) for text in names])
                builder = builder.add_extension(others, critical=False)
            made = builder.sign(key, hashes.SHA256())
        except ValueError as error:
            raise CertificateRefusedError(f"the request cannot be made: {error}") from None
        with self._lock:
            self._pending = key
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def replace(self, pem: str) -> None:
        """Install a certificate: of the request that waits, of the key in use, or with its own key in the text."""
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
        except ValueError:
            raise CertificateRefusedError("CertificateString holds no certificate in PEM") from None
        candidates: list[PrivateKeyTypes] = []
        if "PRIVATE KEY" in pem:
            try:
                candidates = [serialization.load_pem_private_key(pem.encode(), None)]
            except (ValueError, TypeError):
                raise CertificateRefusedError("the private key in CertificateString cannot be read") from None
        else:
            with self._lock:
                candidates = [self._pending] if self._pending is not None else []
            candidates.append(serialization.load_pem_private_key(self._key.read_bytes(), None))
        for key in candidates:
            if _public(key.public_key()) == _public(certificate.public_key()):
                break
        else:
            raise CertificateRefusedError("the certificate fits no key of this BMC; GenerateCSR first")
        if certificate.not_valid_after_utc < datetime.datetime.now(datetime.timezone.utc):
            raise CertificateRefusedError(f"the certificate ended {certificate.not_valid_after_utc:%Y-%m-%d}")
        public = "".join(part for part in _parts(pem) if "PRIVATE KEY" not in part)
        with self._lock:
            self._keep(public.encode(), _private(key))
            self._pending = None
            self.context.load_cert_chain(self._certificate, self._key)

    def _keep(self, certificate: bytes, key: bytes) -> None:
        for path, content in ((self._certificate, certificate), (self._key, key)):
            new = path.with_suffix(path.suffix + ".new")
            new.unlink(missing_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(content)
            new.replace(path)


def _delivered() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DELIVERED_NAME)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DELIVERED_DAYS))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _private(key)


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _private(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _public(key: object) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_bytes(serialization.Encoding.DER, form))  # type: ignore[attr-defined]  # any kind of key


def _parts(pem: str) -> list[str]:
    """Return the blocks of a PEM text, each with its end line."""
    parts, lines = [], []
    for line in pem.splitlines():
        lines.append(line)
        if line.startswith("-----END "):
            parts.append("\n".join(lines) + "\n")
            lines = []
    return parts
