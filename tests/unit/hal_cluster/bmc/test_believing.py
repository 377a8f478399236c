"""Which BMC is believed: by the site's authorities or by its fingerprint, and none unseen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hal_cluster.bmc import operations
from hal_cluster.bmc.errors import Fault
from tests.unit.hal_cluster.bmc.emulated import NOT_PATIENT, PATIENT, Emulated, Emulation
from tests.unit.hal_cluster.bmc.test_faults import failure


def test_a_certificate_of_another_authority(
    openbmc: Emulated, emulation: Emulation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tests.unit.authority import make

    other = tmp_path_factory.mktemp("other")
    make(other)
    error = failure(lambda: operations.power(openbmc.client(ca_file=str(other / "tls_ca.pem")), NOT_PATIENT))
    assert error.fault is Fault.CERTIFICATE
    assert "login of root: its certificate is from another authority; it shows sha256:" in str(error)
    assert f"{other}/tls_ca.pem does not vouch for it" in str(error)


def test_one_as_it_came_from_the_factory_is_pinned(emulation: Emulation) -> None:
    bmc = emulation.make("hal05", "openbmc", certificate=None, key=None)
    error = failure(lambda: operations.power(bmc.client(), NOT_PATIENT))
    assert "its certificate is signed only by itself; it shows sha256:" in str(error)
    shown = str(error).split("sha256:")[1][:64]
    for written in (shown, f"sha256:{shown.upper()}", ":".join(shown[at : at + 2] for at in range(0, 64, 2))):
        operations.power(bmc.client(fingerprint=written, ca_file=""), PATIENT)
    operations.power(bmc.client(fingerprint=shown), PATIENT)  # beside the authority, which does not know it


def test_a_pin_is_tried_again_when_the_bmc_was_silent_at_first(emulation: Emulation) -> None:
    bmc = emulation.make("hal05", "openbmc", certificate=None, key=None)
    shown = str(failure(lambda: operations.power(bmc.client(), NOT_PATIENT))).split("sha256:")[1][:64]
    bmc.fault(silent=True)
    paused = list[float]()

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        bmc.fault(silent=False)

    client = bmc.client(fingerprint=shown, timeout_seconds=1.0)
    operations.power(client, replace(PATIENT, answers=replace(PATIENT.answers, sleep=sleep)))
    assert paused


def test_a_fingerprint_of_another_one(openbmc: Emulated) -> None:
    error = failure(lambda: operations.power(openbmc.client(fingerprint="ab" * 32, ca_file=""), NOT_PATIENT))
    assert "its certificate is not the one that was pinned; it shows sha256:" in str(error)
    assert error.fault is Fault.CERTIFICATE
    operations.power(openbmc.client(fingerprint="ab" * 32), PATIENT)  # the authority vouches for it: the pin is old


def test_a_certificate_that_ran_out(emulation: Emulation) -> None:
    from datetime import datetime, timedelta, timezone
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    from hal_cluster.certificates.tls import tls_authority

    spec = emulation.spec("hal05", "openbmc")
    authority, key = tls_authority(emulation.authority), ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(timezone.utc)
    old = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hal05-bmc")]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(spec.address))]), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    assert spec.certificate is not None
    assert spec.key is not None
    spec.certificate.write_bytes(old.public_bytes(serialization.Encoding.PEM))
    spec.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    bmc = emulation.serve(spec)[0]
    error = failure(lambda: operations.power(bmc.client(), NOT_PATIENT))
    assert "its certificate has expired; it shows sha256:" in str(error)


def test_a_certificate_of_another_address(emulation: Emulation) -> None:
    other = emulation.spec("hal06", "openbmc")
    bmc = emulation.make("hal05", "openbmc", certificate=other.certificate, key=other.key)
    error = failure(lambda: operations.power(bmc.client(), NOT_PATIENT))
    assert "its certificate is for another name or address; it shows sha256:" in str(error)


def test_nobody_is_believed_unseen(openbmc: Emulated, tmp_path: Path) -> None:
    error = failure(lambda: openbmc.client(ca_file=""))
    assert "neither a file of authorities nor a fingerprint is given" in str(error)
    error = failure(lambda: openbmc.client(ca_file="/nowhere/ca.pem"))
    assert "the check of its certificate: /nowhere/ca.pem is missing" in str(error)
    error = failure(lambda: openbmc.client(ca_file=str(tmp_path)))
    assert f"the check of its certificate: {tmp_path} " in str(error)
    assert "[Errno" not in str(error)
    assert "; playbooks/authorities.yml makes the site's" in str(error)
    error = failure(lambda: openbmc.client(ca_file="", fingerprint="12:34"))
    assert "a SHA-256 fingerprint has 64 hexadecimal digits" in str(error)


def test_the_environment_changes_nothing(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies would see the password, and a bundle of authorities would let others in."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere")
    operations.power(openbmc.client(), PATIENT)
