"""What is set at a BMC once and kept: clock and certificate. Read first, changed where it differs, read again."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cryptography import x509

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Clock, Target
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.protocol import Bmc


def set_ntp(bmc: Bmc, servers: Sequence[str], limits: Limits, *, check: bool) -> bool:
    """Have the BMC ask these servers, and no others, for the time. Return whether that changes something."""
    wanted = bool(servers), tuple(servers)

    def right(clock: Clock) -> bool:
        return (bool(clock.ntp), clock.servers if clock.ntp else ()) == wanted

    before = limits.answers.again(bmc.clock)
    if right(before) or check:
        return not right(before)
    limits.answers.again(lambda: bmc.set_ntp(servers))
    last = limits.answers.until(bmc.clock, right)
    after, failure = last
    if failure is not None:
        raise failure
    if after is None or not right(after):
        now = ", ".join(after.servers) if after and after.ntp else "nobody"
        answer = f"it said yes, and asks {now or 'nobody'} for the time"
        raise BmcError(bmc.target.label, "its time servers to be set", answer, Fault.IGNORED)
    return True


def set_clock(bmc: Bmc, apart_seconds: float, limits: Limits, *, check: bool) -> bool:
    """Set the BMC's clock to ours if they are further apart than that. Return whether that changes something."""

    def right(clock: Clock) -> bool:
        return abs((clock.now - datetime.now(timezone.utc)).total_seconds()) <= apart_seconds

    before = limits.answers.again(bmc.clock)
    if right(before) or check:
        return not right(before)
    limits.answers.again(lambda: bmc.set_clock(datetime.now(timezone.utc)))
    last = limits.answers.until(bmc.clock, right)
    after, failure = last
    if failure is not None:
        raise failure
    if after is None or not right(after):
        answer = f"it said yes, and its clock says {after.now if after else '?'}"
        raise BmcError(bmc.target.label, "its clock to be set", answer, Fault.IGNORED)
    return True


# --- certificate


@dataclass(frozen=True)
class Shown:
    """The certificate that a BMC shows, for clients of the site's authority; ``problem``: why it is not right."""

    until: datetime | None
    problem: str


def shown_certificate(target: Target, ca_file: str, names: Sequence[str], renew_days: int) -> Shown:
    """Look at what a BMC shows: whether the authority vouches for it, the names are in it, and it lasts long enough.

    BmcError (SILENT) if it does not answer, (CONFIGURATION) if the authority's file is not one.
    """
    asked = "its certificate"
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        answer = f"{ca_file}: {error.strerror or error}"
        raise BmcError(target.label, asked, answer, Fault.CONFIGURATION) from None
    try:
        with (
            socket.create_connection((target.address, target.https_port), timeout=target.timeout_seconds) as plain,
            context.wrap_socket(plain, server_hostname=target.address) as tls,
        ):
            der = tls.getpeercert(binary_form=True)
    except ssl.SSLCertVerificationError as error:
        return Shown(None, error.verify_message)
    except ssl.SSLError as error:
        raise BmcError(target.label, asked, f"TLS failed: {error.reason}", Fault.REFUSED) from None
    except OSError as error:
        answer = "no answer" if isinstance(error, TimeoutError) else str(error.strerror or error)
        raise BmcError(target.label, asked, answer, Fault.SILENT) from None
    certificate = x509.load_der_x509_certificate(der or b"")
    until = certificate.not_valid_after_utc
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        there = set(alternatives.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        there = set()
    missing = [name for name in names if name not in there]
    if missing:
        return Shown(until, f"{', '.join(missing)} is not in it")
    left = until - datetime.now(timezone.utc)
    if left < timedelta(days=renew_days):
        return Shown(until, f"it expires in {left.days} days")
    return Shown(until, "")


def install_certificate(
    bmc: Bmc,
    ca_file: str,
    names: Sequence[str],
    renew_days: int,
    sign: Callable[[str, Sequence[str], Sequence[str]], str],
    limits: Limits,
    *,
    check: bool,
) -> bool:
    """Have the BMC show a certificate of the site's authority; return whether that changes it.

    The BMC makes the key, and keeps it. ``sign(request, names, addresses)`` returns the certificate. Done when the BMC
    shows it to a new connection.
    """
    asked = "a new certificate"

    def ask() -> Shown:
        return shown_certificate(bmc.target, ca_file, names, renew_days)

    before = limits.answers.again(ask)
    if not before.problem or check:
        return bool(before.problem)
    try:
        addresses = [str(ipaddress.ip_address(bmc.target.address))]
    except ValueError:
        addresses, names = [], [*names, bmc.target.address]
    request = bmc.signing_request(names)
    bmc.install_certificate(sign(request, names, addresses))
    last = limits.power.until(ask, lambda shown: not shown.problem)
    after, failure = last
    if failure is not None:
        raise failure
    if after is None or after.problem:
        why = after.problem if after else "?"
        raise BmcError(bmc.target.label, asked, f"it said yes, and shows another one: {why}", Fault.IGNORED)
    return True
