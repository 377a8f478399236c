"""How we know that a BMC is the right one: by the site's authority, or by the fingerprint of its certificate."""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
from pathlib import Path
from typing import Any

from requests.adapters import HTTPAdapter

from hal_cluster.bmc.answers import read
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Target

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def fingerprint(text: str) -> str:
    """Return a SHA-256 fingerprint as 64 hexadecimal digits; ValueError if it is not one.

    It may have colons, blanks and a leading ``sha256:``, as openssl and browsers print it.
    """
    plain = re.sub(r"^sha256( fingerprint)?[:=\s]|[:\s]", "", text.strip().lower())
    if not _FINGERPRINT.fullmatch(plain):
        raise ValueError("a SHA-256 fingerprint has 64 hexadecimal digits")
    return plain


class BelievingAdapter(HTTPAdapter):  # type: ignore[misc]  # requests has no types
    """Speaks TLS only with a BMC that shows what the target's file or fingerprint says."""

    def __init__(self, target: Target) -> None:
        """BmcError (CONFIGURATION) if the target has neither, or the file cannot be used."""
        self._tls: dict[str, Any]
        asked = "the check of its certificate"
        if target.fingerprint:
            try:
                pinned = fingerprint(target.fingerprint)
            except ValueError as error:
                raise BmcError(target.label, asked, f"{error}", Fault.CONFIGURATION) from None
            # urllib3 compares before it sends a byte. Nothing else has to be true of a pinned certificate.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._tls = {"ssl_context": context, "assert_fingerprint": pinned, "assert_hostname": False}
        elif target.ca_file:
            try:
                self._tls = {"ssl_context": ssl.create_default_context(cafile=target.ca_file)}
            except (OSError, ssl.SSLError) as error:
                why = "is missing" if not Path(target.ca_file).exists() else f"{error.strerror or error}"
                answer = f"{target.ca_file} {why}; playbooks/authorities.yml makes the site's"
                raise BmcError(target.label, asked, answer, Fault.CONFIGURATION) from None
        else:
            answer = "neither a file of authorities nor a fingerprint is given; nothing is sent to an unknown BMC"
            raise BmcError(target.label, asked, answer, Fault.CONFIGURATION)
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **keywords: Any) -> None:
        """Make connections with our context."""
        super().init_poolmanager(*arguments, **keywords, **self._tls)

    def send(self, request: Any, **keywords: Any) -> Any:
        """Send a request and return the answer. It is read here, up to the limit of hal_cluster.bmc.answers."""
        response = super().send(request, **keywords)
        response._content, response._content_consumed = read(response), True  # where requests keeps what it read
        return response

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        """Leave the context as it was made: requests would make it believe the system's authorities."""
        host, attributes = super().build_connection_pool_key_attributes(request, False, cert)
        attributes.pop("cert_reqs", None)
        attributes.pop("ca_certs", None)
        return host, attributes

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Nothing to be added: the context has it all."""


def shown_fingerprint(target: Target) -> str:
    """Return the SHA-256 fingerprint of the certificate that a BMC shows; OSError for none. Nothing of ours is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only looked at, for a message
    with (
        socket.create_connection((target.address, target.https_port), timeout=target.timeout_seconds) as plain,
        context.wrap_socket(plain) as tls,
    ):
        der = tls.getpeercert(binary_form=True)
    return hashlib.sha256(der or b"").hexdigest()
