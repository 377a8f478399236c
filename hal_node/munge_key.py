# -*- coding: utf-8 -*-
"""MUNGE's key as text. Runs on nodes and at the controller: Python 2.7 and 3.6 and later, standard library only."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import base64
import binascii
import re

# munged(8) refuses keys below 32 bytes; mungekey(8) makes 128 and allows up to 1024.
MIN_BYTES, MAX_BYTES = 32, 1024


class KeyTextError(ValueError):
    """The text is not a usable key. The message never holds a part of the text."""


def decode(text):
    # type: (str) -> bytes
    """Return the key's bytes from hexadecimal or base64 text; blanks and line ends are ignored. Raises KeyTextError."""
    packed = "".join(text.split())
    if re.match(r"^(?:[0-9a-f]{2})+$|^(?:[0-9A-F]{2})+$", packed):
        key = binascii.unhexlify(packed.encode("ascii"))
    elif re.match(r"^[A-Za-z0-9+/]+={0,2}$", packed) and len(packed) % 4 == 0:
        key = base64.b64decode(packed.encode("ascii"))
    else:
        raise KeyTextError("it is neither hexadecimal nor base64 text")
    if not MIN_BYTES <= len(key) <= MAX_BYTES:
        raise KeyTextError("it has %d bytes, it needs %d to %d (mungekey makes 128)" % (len(key), MIN_BYTES, MAX_BYTES))
    if len(set(bytearray(key))) < 8:
        raise KeyTextError("it has fewer than 8 different bytes: not random")
    return key
