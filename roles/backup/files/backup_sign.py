# -*- coding: utf-8 -*-
"""Who made an archive: a node signs what it sends, the controller asks for it. Python 2.7 and 3.

ECDSA over P-256 and SHA-256 by openssl: the OpenSSL 1.0.2 of CentOS 7 knows it, its OpenSSH 7.4 signs no files yet.
"""

from __future__ import absolute_import, division, print_function

import base64
import hashlib
import os
import tempfile

from backup_common import Problem, run, text

CURVE = "prime256v1"
PUBLIC = ".pem"
REVOKED = ".pem.revoked"


def make_key(path):
    """Make the private key when there is none."""
    if os.path.exists(path):
        return
    handle, new = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as target:
            run(["openssl", "ecparam", "-name", CURVE, "-genkey", "-noout"], stdout=target)
            target.flush()
            os.fsync(target.fileno())
        os.rename(new, path)
    except Exception:
        os.unlink(new)
        raise


def public(path):
    """Return the public half of a private key, PEM."""
    return run(["openssl", "ec", "-in", path, "-pubout"])


def name_of(key):
    """Return the name that the controller gives to a public key, without an ending."""
    return hashlib.sha256(key.strip().encode("ascii")).hexdigest()[:16]


def statement(site, node, made, digest):
    """Return what is signed: bytes. `made`: seconds since 1970; `digest`: of the encrypted archive, SHA-256 in hex."""
    return (u"hal-backup %s %s %d %s\n" % (text(site), text(node), made, text(digest))).encode("utf-8")


def sign(path, words):
    """Return a signature over some bytes, base64."""
    with tempfile.TemporaryFile() as signed:
        run(["openssl", "dgst", "-sha256", "-sign", path], stdin=words, stdout=signed)
        signed.seek(0)
        return base64.b64encode(signed.read()).decode("ascii")


def signer(signature, words, folder):
    """Return the name of the key that made a signature, of those in a folder; empty when none did.

    A key that is no longer believed has a name that ends with .revoked, and then it is not believed by another name.
    """
    run(["openssl", "version"])  # without it nobody could have signed anything
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    with tempfile.NamedTemporaryFile() as signed:
        try:
            signed.write(base64.b64decode(signature))
        except (TypeError, ValueError):
            return ""  # what lies beside a file from elsewhere is anybody's
        signed.flush()
        for ending in (REVOKED, PUBLIC):
            for name in names:
                if name.endswith(ending) and _made(os.path.join(folder, name), signed.name, words):
                    return name
    return ""


def _made(key, signature, words):
    try:
        run(["openssl", "dgst", "-sha256", "-verify", key, "-signature", signature], stdin=words)
    except Problem:
        return False
    return True
