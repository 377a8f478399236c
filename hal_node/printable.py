# -*- coding: utf-8 -*-
"""Print text that others chose: nothing in it drives a terminal, begins a line, hides, or goes on for ever.

Names of files and processes, what a server or a package says: whoever wrote it, an administrator reads it. At the
controller this is hal_inventory/printable.py.

Runs on nodes, beside programs of roles and under Ansible: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import codecs
import sys

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

UNSEEN = u"\u115f\u1160\u3164\uffa0"  # letters without a shape
MOST_SHOWN = 8192  # characters of a line; the kernel takes no longer path than 4096 bytes
try:
    CHARACTER = unichr  # type: ignore[name-defined]  # noqa: F821  Python 2's
except NameError:
    CHARACTER = chr
BYTES_KEPT = "hal_bytes_kept"


def _bytes_kept(error):
    # type: (Any) -> tuple[str | bytes, int]
    """Keep bytes that are not UTF-8, as Python 3's surrogateescape does; Python 2 has none, and encodes all."""
    wrong = error.object[error.start:error.end]
    if isinstance(error, UnicodeEncodeError):
        halves = (mark.encode("utf-8", "surrogatepass") for mark in wrong)  # JSON may have other ones
        return b"".join(bytes(bytearray([ord(mark) & 0xff])) if 0xdc80 <= ord(mark) <= 0xdcff else half
                        for mark, half in zip(wrong, halves)), error.end
    return u"".join(CHARACTER(0xdc00 + byte) for byte in bytearray(wrong)), error.end


codecs.register_error(BYTES_KEPT, _bytes_kept)


def shown(text, kept=u""):
    # type: (str | bytes, str) -> bytes
    """Return bytes or text as one printable line, in UTF-8.

    ASCII and the letters and digits of all scripts are shown. Anything else, what drives a terminal above all, is an
    escape that "printf %b" undoes: \\x1b a byte, \\u202e a character. So a backslash in a name is two.
    `kept`: what else stays as it is, in a text that nobody has to get back.
    """
    # Text becomes bytes, too: in the C locale Python 3.6 takes each byte of a name for a character.
    data = text if isinstance(text, bytes) else text.encode("utf-8", BYTES_KEPT)
    marks = data.decode("utf-8", BYTES_KEPT)[:MOST_SHOWN + 1]
    line = u"".join(mark if mark in kept else _shown(mark) for mark in marks)
    return (line if len(line) <= MOST_SHOWN else line[:MOST_SHOWN - 3] + u"...").encode("utf-8")


def _shown(mark):
    # type: (str) -> str
    number = ord(mark)
    if mark == u"\\":
        return mark * 2
    if 0x20 <= number < 0x7f or (number > 0x9f and mark.isalnum() and mark not in UNSEEN):
        return mark
    if number < 0x80 or 0xdc80 <= number <= 0xdcff:
        return u"\\x%02x" % (number & 0xff)
    return (u"\\u%04x" if number <= 0xffff else u"\\U%08x") % number


def say(text, stream=None):
    # type: (str | bytes, Any) -> None
    """Print a line with text in it that others chose, whatever the locale."""
    write(shown(text) + b"\n", stream)


def write(data, stream=None):
    # type: (bytes, Any) -> None
    """Print bytes as they are: what is shown, or data for programs, in which JSON has escapes of its own."""
    stream = stream or sys.stdout
    stream.flush()
    getattr(stream, "buffer", stream).write(data)
    stream.flush()
