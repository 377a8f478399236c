# -*- coding: utf-8 -*-
"""Images that nodes install: checked, published as a whole, pruned. Python 2.7 and 3.

An image is a folder NAME-VERSION-ARCH with the root file system, manifest.json (what it is, its size and sha256) and
manifest.json.sig (ECDSA on P-256 with SHA-256, DER). OpenSSL 1.0.2 of CentOS 7 checks that; it knows no Ed25519.
"""

from __future__ import absolute_import, division, print_function

import os
import re
import shutil
import stat
import subprocess

import reimage_store
from hal_node.digest import sha256_of
from provision_common import Problem, read_json, text
from provision_store import armed

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
IMAGE = re.compile(r"[a-z0-9][a-z0-9._-]{0,100}\Z")
PARTS = ("name", "version", "arch", "file", "size", "sha256", "created")
FILES = ("rootfs.tar.xz", "rootfs.tar.gz", "rootfs.tar", "rootfs.squashfs")


def signed(folder, key):
    """Return the manifest of an image that is signed; Problem says in one line why it is not. Its root is not read."""
    name = os.path.basename(folder.rstrip("/"))
    manifest, signature = os.path.join(folder, MANIFEST), os.path.join(folder, SIGNATURE)
    for path in (manifest, signature, key):
        if not os.path.isfile(path):
            raise Problem("%s: %s is missing" % (name, path))
    try:
        asked = subprocess.Popen(["openssl", "dgst", "-sha256", "-verify", key, "-signature", signature, manifest],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = text(asked.communicate()[0]).strip()
    except OSError as error:
        raise Problem("openssl cannot be run: %s" % error.strerror)
    # Only now is the manifest believed.
    if asked.returncode != 0 or "Verified OK" not in said:
        raise Problem("%s: the manifest is not signed by this site's key (%s)" % (name, key))
    image = read_json(manifest)
    missing = [part for part in PARTS if part not in image]
    if missing:
        raise Problem("%s: the manifest has no %s" % (name, ", ".join(missing)))
    expected = "%s-%s-%s" % (image["name"], image["version"], image["arch"])
    if expected != name:
        raise Problem("%s: the manifest is of %s" % (name, expected))
    if image["file"] not in FILES:
        raise Problem("%s: the manifest names %s; one of %s is taken" % (name, image["file"], ", ".join(FILES)))
    return image


def check(folder, key, arch=None):
    """Return the manifest of an image that is whole and signed; Problem says in one line why it is not."""
    name, image = os.path.basename(folder.rstrip("/")), signed(folder, key)
    if arch and image["arch"] != arch:
        raise Problem("%s: is for %s, and %s is needed" % (name, image["arch"], arch))
    file, size = image["file"], image["size"]
    path = os.path.join(folder, file)
    there = os.path.getsize(path) if os.path.isfile(path) else 0
    if there != size:
        raise Problem("%s: %s has %d bytes, and %d were signed" % (name, file, there, size))
    if sha256_of(path) != image["sha256"]:
        raise Problem("%s: %s is damaged: its sha256 is not the signed one" % (name, file))
    return image


def published(place):
    """Return the names of published images, oldest first: by when they were made, which is signed.

    One that is not signed says nothing that is believed, and comes before all that are.
    """
    try:
        names = [name for name in os.listdir(place.images)
                 if IMAGE.match(name) and os.path.isfile(os.path.join(place.images, name, MANIFEST))]
    except OSError as error:
        raise Problem("%s: cannot be read: %s" % (place.images, error.strerror))
    return [name for _, name in sorted((_created(place, name), name) for name in names)]


def _created(place, name):
    try:
        return text(signed(os.path.join(place.images, name), place.key)["created"])  # 2026-11-22T10:00:00Z
    except Problem:
        return ""


def publish(place, folder):
    """Check an image that was brought beside the others, and show it at once and whole; return its name."""
    source = os.path.realpath(folder)
    name = os.path.basename(source)
    if not IMAGE.match(name):
        raise Problem("%s: no name for an image: small letters, digits, . _ -" % name)
    _only(source, (MANIFEST, SIGNATURE, check(source, place.key)["file"]))
    target = os.path.join(place.images, name)
    if os.path.exists(target):
        raise Problem("%s is published; a changed image is a new version" % name)
    if os.stat(source).st_dev != os.stat(place.images).st_dev:
        raise Problem("%s: bring it into a folder of the file system of %s, where a rename shows it at once"
                      % (source, place.images))
    for part in os.listdir(source):
        os.chmod(os.path.join(source, part), 0o644)
    os.chmod(source, 0o755)
    os.rename(source, target)
    return name


def _only(folder, wanted):
    """Raise Problem unless a folder has these files and nothing else: the web server would show the rest too."""
    for part in sorted(os.listdir(folder)):
        if part not in wanted:
            raise Problem("%s: %s is not part of an image; it has %s"
                          % (os.path.basename(folder), part, ", ".join(wanted)))
        if not stat.S_ISREG(os.lstat(os.path.join(folder, part)).st_mode):
            raise Problem("%s: %s is not a regular file" % (os.path.basename(folder), part))


def prune(place, now):
    """Remove the oldest images but `keep` of each name and architecture, never one that a node is armed with.

    Nor one that was confirmed for a reimage which is not over. Return what was removed. The last one that is whole
    stays, however many damaged ones are newer. Without the key no image is known to be good, and none is removed.
    """
    if not os.path.isfile(place.key):
        raise Problem("%s is missing: nothing says which images are good, and none is removed" % place.key)
    used = " ".join(order["config"] + " ".join(order["files"].values())
                    for order in (armed(place, name, now) for name in place.names()) if order)
    confirmed = reimage_store.images_in_use(place)
    groups = {}
    for name in published(place):
        parts = name.rsplit("-", 2)  # NAME-VERSION-ARCH; neither version nor architecture has a dash
        groups.setdefault((parts[0], parts[-1]), []).append(name)
    removed = []
    for names in groups.values():
        keep = set(names[-place.keep:])
        if not any(_good(place, name) for name in reversed(names[-place.keep:])):
            keep |= set([name for name in reversed(names) if _good(place, name)][:1])
        for name in names:
            if name not in keep and name not in confirmed and "/%s/" % name not in used:
                shutil.rmtree(os.path.join(place.images, name))
                removed.append(name)
    return sorted(removed)


def _good(place, name):
    try:
        check(os.path.join(place.images, name), place.key)
    except Problem:
        return False
    return True


def wrong(place):
    """Return why published images may not be installed, by name."""
    faults = {}
    for name in published(place):
        try:
            check(os.path.join(place.images, name), place.key)
        except Problem as problem:
            faults[name] = "%s" % problem
    return faults
