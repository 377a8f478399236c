# -*- coding: utf-8 -*-
"""An archive: a manifest and below it what the sources gave, packed, checked, encrypted. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

from backup_common import FORMAT, Problem, last_line, native, run, sha256, sha256_of, text

MANIFEST = "MANIFEST.json"


def pack(folder, manifest, path):
    """Pack a folder with its manifest into a tar file, and read it again: what cannot be listed was not saved."""
    manifest = dict(manifest, format=FORMAT, files=_digests(folder))
    with open(os.path.join(folder, MANIFEST), "w") as target:
        json.dump(manifest, target, indent=1, sort_keys=True)
    with contextlib.closing(tarfile.open(path, "w:gz")) as archive:
        archive.add(os.path.join(folder, MANIFEST), MANIFEST)
        for name in sorted(os.listdir(folder)):
            if name != MANIFEST:
                archive.add(os.path.join(folder, name), name)
    check(path)
    return manifest


def _digests(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found[text(os.path.relpath(path, folder))] = sha256(path)
    return found


def check(path):
    """Read a whole tar file and return its manifest; refuse it when one byte is not what the manifest says."""
    seen, manifest = {}, None
    try:
        with contextlib.closing(tarfile.open(path, "r:gz")) as archive:
            for member in archive:
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise Problem("%s: %s leads out of the archive" % (path, member.name))
                if not (member.isreg() or member.isdir() or member.issym()):
                    raise Problem("%s: %s is no file, folder or link" % (path, member.name))
                if member.name == MANIFEST:
                    manifest = json.loads(archive.extractfile(member).read().decode("utf-8"))
                elif member.isreg():
                    seen[text(member.name)] = sha256_of(archive.extractfile(member))
    except (tarfile.TarError, EOFError, IOError, OSError, ValueError) as error:
        raise Problem("%s is damaged: %s" % (path, error))
    if manifest is None:
        raise Problem("%s is no backup: it has no %s" % (path, MANIFEST))
    if manifest.get("format") != FORMAT:
        raise Problem("%s has format %s; this version reads %d" % (path, manifest.get("format"), FORMAT))
    if seen != manifest["files"]:
        different = sorted(
            name for name in set(seen) | set(manifest["files"]) if seen.get(name) != manifest["files"].get(name)
        )
        raise Problem("%s is damaged: %s is not what the manifest says" % (path, native(different[0])))
    return native(manifest)


@contextlib.contextmanager
def keyring(key):
    """A folder for gpg that has this key (bytes) and goes away again."""
    home = tempfile.mkdtemp(prefix="hal-backup-")  # short: the socket of gpg's agent is in it
    try:
        run(["gpg", "--homedir", home, "--batch", "--no-tty", "--quiet", "--import"], stdin=key)
        yield home
    finally:
        with open(os.devnull, "wb") as nothing:
            try:
                subprocess.call(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], stdout=nothing, stderr=nothing)
            except OSError:
                pass  # the public key alone starts no agent
        shutil.rmtree(home, ignore_errors=True)


def fingerprints(home):
    """Return the fingerprints of a keyring's keys."""
    listed = run(["gpg", "--homedir", home, "--batch", "--no-tty", "--with-colons", "--fingerprint"]).splitlines()
    found, wanted = [], False
    for line in listed:
        fields = line.split(":")
        wanted = wanted or fields[0] == "pub"
        if fields[0] == "fpr" and wanted:
            found.append(fields[9])
            wanted = False
    return found


def encrypt(path, target, key):
    """Encrypt a file for the one key (bytes). Options that GnuPG 2.0 of CentOS 7 has."""
    with keyring(key) as home:
        known = fingerprints(home)
        if len(known) != 1:
            raise Problem("the public key for backups: %d keys in it, there has to be one" % len(known))
        options = ["--batch", "--no-tty", "--quiet", "--yes", "--trust-model", "always", "--cipher-algo", "AES256"]
        # Already packed by gzip.
        options += ["--compress-algo", "none", "--recipient", known[0], "--output", target, "--encrypt", path]
        run(["gpg", "--homedir", home] + options)
    return known[0]


def decrypt(path, target, key):
    """Decrypt a file with a private key (bytes); nothing is left behind unless all of it was right."""
    name = os.path.basename(path)
    with keyring(key) as home:
        options = ["--batch", "--no-tty", "--quiet", "--status-fd", "1", "--output", target, "--decrypt", path]
        process = subprocess.Popen(
            ["gpg", "--homedir", home] + options,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LC_ALL="C"),
        )
        status, errors = process.communicate()
        words = [
            line.split()[1:] for line in status.decode("utf-8", "replace").splitlines() if line.startswith("[GNUPG:]")
        ]
        said = {line[0] for line in words}
        if process.returncode == 0 and "DECRYPTION_OKAY" in said and "GOODMDC" in said:
            return
        if os.path.exists(target):
            os.unlink(target)
        if b"No secret key" in errors:
            wanted = " ".join(line[1] for line in words if line[0] == "ENC_TO")
            own = " ".join(key[-16:] for key in fingerprints(home))
            raise Problem("%s was encrypted for key %s; the private key given is of %s" % (name, wanted, own or "none"))
        if "NODATA" in said:
            raise Problem("%s is no encrypted archive" % name)
        raise Problem("%s is damaged: gpg cannot decrypt all of it (%s)" % (name, last_line(errors)))
