"""A server with a key and a certificate of a site's authority."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hal_cluster.certificates.tls import tls_sign_request


def tls_certificate(folder: Path, names: Sequence[str], addresses: Sequence[str], days: int) -> tuple[str, str]:
    """Return a new key and its certificate, both PEM, as `tls_sign_request` makes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    asked = request.public_bytes(serialization.Encoding.PEM).decode("ascii")
    return pem, tls_sign_request(folder, asked, names, addresses, days)
