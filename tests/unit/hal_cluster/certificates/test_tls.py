"""The authority for servers: what it signs, and what it refuses, with OpenSSL as the judge."""

from __future__ import annotations

import ipaddress
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from hal_cluster.certificates import cli
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.tls import tls_authority, tls_sign_request
from tests.unit.authority import make
from tests.unit.hal_cluster.certificates.server import tls_certificate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make(tmp_path / "ca")
    return tmp_path / "ca"


def verified(folder: Path, certificate: str, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What OpenSSL says of a certificate for a server."""
    (tmp_path / "shown.pem").write_text(certificate)
    return subprocess.run(
        [
            "openssl",
            "verify",
            "-purpose",
            "sslserver",
            *options,
            "-CAfile",
            folder / "tls_ca.pem",
            tmp_path / "shown.pem",
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, name: str = "somebody-else") -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def test_a_server_is_known_by_its_names_and_addresses(folder: Path, tmp_path: Path) -> None:
    key, certificate = tls_certificate(folder, ["hal05-bmc.hal.example", "hal05-bmc"], ["10.64.1.105"], 365)
    for options in (("-verify_hostname", "hal05-bmc"), ("-verify_ip", "10.64.1.105")):
        assert verified(folder, certificate, tmp_path, *options).returncode == 0
    assert verified(folder, certificate, tmp_path, "-verify_ip", "10.64.1.106").returncode != 0
    private = serialization.load_pem_private_key(key.encode(), None)
    assert private.public_key() == x509.load_pem_x509_certificate(certificate.encode()).public_key()
    make(tmp_path / "other")
    assert verified(tmp_path / "other", certificate, tmp_path).returncode != 0, "another authority vouches for it"


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_of_a_request_the_key_alone_is_taken(folder: Path, tmp_path: Path, kind: str) -> None:
    key = ec.generate_private_key(ec.SECP384R1()) if kind == "ec" else rsa.generate_private_key(65537, 2048)
    certificate = tls_sign_request(folder, request(key), ["hal05-bmc"], ["10.64.1.105"], 30)
    read = x509.load_pem_x509_certificate(certificate.encode())
    assert read.public_key() == key.public_key()
    named = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["hal05-bmc"]
    assert named.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.64.1.105")]
    assert "somebody-else" not in read.subject.rfc4514_string()
    assert verified(folder, certificate, tmp_path).returncode == 0


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    make(tmp_path / "ca", days=10)
    _, certificate = tls_certificate(tmp_path / "ca", ["front"], [], 3650)
    until = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    assert until - datetime.now(timezone.utc) < timedelta(days=11)


def test_a_long_name_stands_in_the_alternative_names(folder: Path, tmp_path: Path) -> None:
    name = f"{'a' * 60}.{'b' * 60}.example"
    _, certificate = tls_certificate(folder, [name], [], 30)
    assert verified(folder, certificate, tmp_path, "-verify_hostname", name).returncode == 0


@pytest.mark.parametrize(
    ("names", "addresses", "days", "said"),
    [
        (["front"], [], 0, "a certificate for 0 days is not valid; give 1 or more"),
        ([], ["10.0.0.1"], 30, "a certificate needs a name"),
        (["front"], ["10.0.0"], 30, "'10.0.0' does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_what_is_no_certificate_is_refused(
    folder: Path, names: list[str], addresses: list[str], days: int, said: str
) -> None:
    with pytest.raises(CertificateError) as error:
        tls_certificate(folder, names, addresses, days)
    assert str(error.value) == said


def test_a_request_that_is_none_is_refused(folder: Path) -> None:
    whole = request(ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(CertificateError, match="not PKCS #10 in PEM"):
        tls_sign_request(folder, "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", ["front"], [], 30)
    lines = whole.splitlines()
    lines[-2] = lines[-2][:-8] + "AAAAAA" + lines[-2][-2:]  # in the signature
    with pytest.raises(CertificateError, match=r"not signed by the key that it is for|not PKCS #10"):
        tls_sign_request(folder, "\n".join(lines) + "\n", ["front"], [], 30)


def test_an_authority_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "tls_ca").chmod(0o640)
    with pytest.raises(CertificateError, match=r"tls_ca: others may read it; chmod 600"):
        tls_authority(folder)
    make(tmp_path / "other", key=ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(CertificateError, match=r"tls_ca.pem is of another key than .*tls_ca; restore both"):
        tls_authority(tmp_path / "other")
    make(tmp_path / "old", days=-1)
    with pytest.raises(CertificateError, match=r"tls_ca.pem ran out on 20"):
        tls_authority(tmp_path / "old")
    (tmp_path / "old" / "tls_ca").write_text("no key\n")
    with pytest.raises(CertificateError, match="not a key and a certificate in PEM"):
        tls_authority(tmp_path / "old")
    with pytest.raises(
        CertificateError, match=r"nowhere/tls_ca is missing; restore it, or for a new site: playbooks/a"
    ):
        tls_authority(tmp_path / "nowhere")


def test_the_program_shows_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--authority", str(folder), "servers"]) == 0
    assert "CN=test servers, until 20" in capsys.readouterr().out
    (folder / "tls_ca.pem").unlink()
    assert cli.main(["--authority", str(folder), "servers"]) == 2
    assert capsys.readouterr().err.startswith(f"{folder}/tls_ca.pem is missing")
