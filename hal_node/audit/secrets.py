# -*- coding: utf-8 -*-
"""Keyed hashes: they tell whether a secret is the same, and cannot be tried out without the node's key.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import hashlib
import hmac
import os
import re

from .node import as_bytes, small_file
from ..expect.values import is_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

LENGTH = 32
#: Declared and observed texts that could hold a secret, when the entry is one.
TEXTS = ('lines', 'block', 'regexp', 'job')
#: Settings of a repository that are secrets in any case.
REPOSITORY = ('password', 'proxy_password', 'sslclientkey')
#: An address that has a user's password in it.
PASSWORD_IN_URL = re.compile(r'://[^/\s@]+@')


def read_key(node):
    # type: (Node) -> bytes
    """Return the node's key, b'' if there is none that can be used."""
    try:
        key = small_file(node.state('record.key'), LENGTH)
    except EnvironmentError:
        return b''
    return key if key is not None and len(key) == LENGTH else b''


def id_of(key):
    # type: (bytes) -> str
    """Return what tells keys apart and says nothing about them; '' without a key."""
    return hashlib.sha256(key).hexdigest()[:8] if key else ''


def is_keyed(name, value):
    # type: (str, Any) -> bool
    """Say whether an attribute is a keyed hash."""
    return bool(name == 'keyed' or name.endswith('_keyed') or is_text(value) and value.startswith('keyed '))


def make_key():
    # type: () -> bytes
    return os.urandom(LENGTH)


def hasher(key):
    # type: (bytes) -> hmac.HMAC
    return hmac.new(key, digestmod=hashlib.sha256)


def keyed(key, text):
    # type: (bytes, str) -> str
    """Return the keyed hash of a text, as hex."""
    return hmac.new(key, as_bytes(text), hashlib.sha256).hexdigest()


def conceal(key, declared, protected):
    # type: (bytes, dict[str, Any], bool) -> dict[str, Any]
    """Return `declared` without what could be a secret: a secret entry's texts, a protected file's checksum."""
    out = dict(declared)
    sha1 = out.pop('sha1', None)
    if sha1 and protected:
        out['sha1_keyed'] = keyed(key, sha1)
    elif sha1:
        out['sha1'] = sha1
    return out


def conceal_texts(key, attributes, patterns=False):
    # type: (bytes, dict[str, Any], bool) -> dict[str, Any]
    """Return attributes of a secret entry with keyed hashes for texts. `patterns`: they may stay, nothing is secret."""
    out = {name: value for name, value in attributes.items() if name not in TEXTS or (patterns and name == 'regexp')}
    if 'block' in attributes:
        out['lines_keyed'] = [keyed(key, line.rstrip()) for line in attributes['block'].splitlines() if line.strip()]
    if 'lines' in attributes:
        out['lines_keyed'] = [keyed(key, line.rstrip()) for line in attributes['lines']]
    if 'job' in attributes:
        out['job_keyed'] = keyed(key, attributes['job'].strip())
    return out
