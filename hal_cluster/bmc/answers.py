"""What a BMC answers over HTTPS, read up to a limit: a packed answer of 0.4 MB may become 600 MB."""

from __future__ import annotations

from typing import Any

import requests

from hal_inventory.bounded import BoundError, limited
from hal_inventory.errors import HalError

_UNPACKED = ("", "identity", "gzip", "deflate")
"""The packings that are taken, one at a time. Packed twice, or by brotli, an answer may grow a million times."""

_CHUNK = 4096
"""Bytes that are unpacked at once: gzip makes at most 4 MB of them."""


class AnswerError(HalError, requests.exceptions.RequestException):  # type: ignore[misc]  # requests has no types
    """An answer that was not read. The text says why."""


def read(response: Any) -> bytes:
    """Return the body of requests' answer; AnswerError for a longer one than any honest BMC gives."""
    packing = str(response.headers.get("Content-Encoding") or "").strip().lower()
    if packing not in _UNPACKED:
        raise AnswerError("an answer that is packed in a way that nobody asked for: not read")
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        try:
            limited(body)
        except BoundError as error:
            response.close()
            raise AnswerError(f"{error}") from None
    return bytes(body)
