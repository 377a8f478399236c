"""An authority for servers as playbooks/authorities.yml leaves it.

tests/unit/hal_cluster/certificates/test_authorities.py compares.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hal_cluster.certificates.tls import CERTIFICATE, KEY


def make(folder: Path, *, days: int = 3650, key: ec.EllipticCurvePrivateKey | None = None) -> None:
    """Make key and certificate in a folder; ``key`` signs in its place, so that the two do not belong together."""
    folder.mkdir(parents=True, exist_ok=True)
    own = ec.generate_private_key(ec.SECP256R1())
    public = (key or own).public_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test servers")])
    now = datetime.now(timezone.utc)
    may = dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("encipher_only", "decipher_only"),
        ),
        False,
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3700))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **may), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key or own, hashes.SHA256())
    )
    (folder / KEY).touch(0o600)
    (folder / KEY).write_bytes(
        own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / CERTIFICATE).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
