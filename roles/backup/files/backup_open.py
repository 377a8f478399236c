# -*- coding: utf-8 -*-
"""At the controller: decrypt one archive and read all of it. The private key comes by standard input. Python 2.7 and 3.

    backup_open.py ARCHIVE FOLDER SITE NODE SHA256

Leaves archive.tar.gz in FOLDER, and result.json: {error, manifest, sha256}. An error is there and not printed, because
the caller keeps silent about a program that gets a key. SHA256 is what the store says of the archive; - when it comes
from elsewhere.
"""

from __future__ import absolute_import, division, print_function

import os
import sys

import backup_archive
from backup_common import Problem, main, save, sha256


def opened(archive, folder, site, node, wanted, key):
    """Return the manifest of an archive that is whole and of this site and node; else nothing is left in FOLDER."""
    name = os.path.basename(archive)
    if not os.path.exists(archive):
        raise Problem("%s is not there" % archive)
    if wanted != "-" and sha256(archive) != wanted:
        raise Problem("%s is damaged: %d bytes that are not what was stored" % (name, os.path.getsize(archive)))
    if not key.strip():
        raise Problem("backup_private_key is empty: without it no archive can be read")
    plain = os.path.join(folder, "archive.tar.gz")
    try:
        backup_archive.decrypt(archive, plain, key)
        manifest = backup_archive.check(plain)
        if (manifest["site"], manifest["node"]) != (site, node):
            own = "%(node)s of site %(site)s" % manifest
            raise Problem("%s is an archive of %s, not of %s of site %s" % (name, own, node, site))
    except Exception:
        if os.path.exists(plain):
            os.unlink(plain)
        raise
    return manifest


def command(arguments):
    """Open one archive."""
    archive, folder, site, node, wanted = arguments
    key = getattr(sys.stdin, "buffer", sys.stdin).read()
    result = {"error": "", "manifest": {}, "sha256": ""}
    try:
        result["manifest"] = opened(archive, folder, site, node, wanted, key)
        result["sha256"] = sha256(archive)
    except Problem as error:
        result["error"] = str(error)
    save(os.path.join(folder, "result.json"), result)
    return 1 if result["error"] else 0


if __name__ == "__main__":
    main(command)
