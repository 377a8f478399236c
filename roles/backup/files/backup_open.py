# -*- coding: utf-8 -*-
"""At the controller: decrypt one archive, read all of it, and find what of it may be restored. Python 2.7 and 3.

    backup_open.py REQUEST       the private key comes by standard input

REQUEST is JSON: {archive, folder, site, node, signers, permitted, sources, names}. `signers` is the folder with the
public keys of this node; `permitted` are permissions, by name; `sources` is what the role declares for it; `names` are
those that are asked for. What the store wrote is beside the archive; a copy from elsewhere may lack it.

Leaves archive.tar.gz in the folder, and result.json: {error, made, sha256, plain_sha256, signed_by, sources}. An error
is there and not printed, because the caller keeps silent about a program that gets a key.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import sys
import time

import backup_archive
import backup_contents
import backup_sign
from backup_common import Problem, archive_name, clock, load, main, native, need_room, save, shown
from backup_folder import BESIDE
from hal_node.digest import sha256_of
from restore_common import RESERVE_MB

REQUESTED = ("archive", "folder", "names", "node", "permitted", "signers", "site", "sources")
CLOCK_SECONDS = 3600
"""By how much a node's clock may be ahead of the controller's."""


def opened(request, key):
    """Return what a restore has to know of an archive that may be restored; else nothing is left in the folder."""
    archive, name = request["archive"], os.path.basename(request["archive"])
    if not isinstance(request["names"], list):
        raise Problem("restore_sources is a list: -e '{\"restore_sources\": [%s]}'" % request["names"])
    if not os.path.exists(archive):
        raise Problem("%s is not there" % archive)
    stored, digest, size = _stored(archive), sha256_of(archive), os.path.getsize(archive)
    if stored and stored.get("sha256") != digest:
        raise Problem("%s is damaged: %d bytes that are not what was stored" % (name, size))
    if not key.strip():
        raise Problem("backup_private_key is empty: without it no archive can be read")
    need_room(request["folder"], size, RESERVE_MB, "what is decrypted")
    plain = os.path.join(request["folder"], "archive.tar.gz")
    try:
        backup_archive.decrypt(archive, plain, key)
        manifest, entries = backup_archive.check(plain)
        if (manifest["site"], manifest["node"]) != (request["site"], request["node"]):
            own = "%s of site %s" % (shown(manifest["node"]), shown(manifest["site"]))
            wanted = "%(node)s of site %(site)s" % request
            raise Problem("%s is an archive of %s, not of %s" % (name, own, wanted))
        made = manifest["made"]
        if made > time.time() + CLOCK_SECONDS:  # nothing on the node would be newer
            raise Problem("%s says that it was made at %s: that is in the future" % (name, clock(made)))
        right = archive_name(request["node"], made)
        # Who has the store could give an old one, with its right signature, as new. A copy with nothing beside it is
        # signed by nobody and has any name.
        if stored and name != right:
            raise Problem("%s was made at %s: %s is its name" % (name, clock(made), right))
        return {
            "made": made,
            "plain_sha256": sha256_of(plain),
            "sha256": digest,
            "signed_by": signed_by(request, name, stored.get("signature"), made, digest),
            "sources": backup_contents.chosen(manifest, entries, request["sources"], request["names"]),
        }
    except Exception:
        if os.path.exists(plain):
            os.unlink(plain)
        raise


def _stored(archive):
    """What the store wrote beside an archive; nothing when there is nothing."""
    if not os.path.exists(archive + BESIDE):
        return {}
    stored = load(archive + BESIDE)
    if not stored or not isinstance(stored, dict):
        raise Problem("%s is not what the store writes" % os.path.basename(archive + BESIDE))
    return stored


def signed_by(request, name, signature, made, digest):
    """Who signed the archive: "node", "revoked" for a key that is not believed any more, "nobody".

    Other than the node is refused unless it is permitted. After a break-in the node's key is revoked, and what it
    signed before is still no other's: that is a permission of its own.
    """
    signer = ""
    if signature:
        words = backup_sign.statement(request["site"], request["node"], made, digest)
        signer = backup_sign.signer(signature, words, request["signers"])
    if signer and not signer.endswith(backup_sign.REVOKED):
        return "node"
    if signer:
        why, permission = "it was signed by a key that was revoked since", "restore_revoked_ok"
    elif signature:
        why = "no key that this controller knows of %s made its signature" % request["node"]
        permission = "restore_unsigned_ok"
    else:
        why, permission = "nobody signed it", "restore_unsigned_ok"
    if permission in request["permitted"]:
        return "revoked" if signer else "nobody"
    raise Problem(
        "%s may be from anybody: %s. If you know where it is from, -e %s=true permits it" % (name, why, permission)
    )


def command(arguments):
    """Open one archive."""
    request = native(json.loads(arguments[0]))
    if sorted(request) != sorted(REQUESTED):
        raise Problem("a request has %s; this one has %s" % (", ".join(REQUESTED), ", ".join(sorted(request))))
    key = getattr(sys.stdin, "buffer", sys.stdin).read()
    result = {"error": ""}
    try:
        result.update(opened(request, key))
    except Problem as error:
        result["error"] = str(error)
    except Exception as error:  # nobody would see where it was raised
        result["error"] = "%s: %s" % (error.__class__.__name__, error)
    save(os.path.join(request["folder"], "result.json"), result)
    return 1 if result["error"] else 0


if __name__ == "__main__":
    main(command)
