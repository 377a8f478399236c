# -*- coding: utf-8 -*-
"""An archive: a manifest and below it what the sources gave, packed, checked, encrypted. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import json
import os
import resource
import subprocess
import tarfile
import tempfile

from backup_common import FORMAT, MEGABYTE, Problem, dumped, known, last_line, native, run, shown
from hal_node.digest import sha256_of, sha256_of_rest

MANIFEST = "MANIFEST.json"
# Limits for what a hostile node may have sent: a thousand times what HAL's nodes save.
MANIFEST_BYTES = 64 * MEGABYTE
MOST_DIGITS = 20
MOST_ENTRIES = 1000000
MOST_MEGABYTES = 256 * 1024
MEMORY_MB = 2048
MOST_FOLDERS = 200
"""In each other: what removes a folder calls itself for each."""
# What a clock, a file system and a C program can hold: seconds from 1970, a user's number.
LAST_SECOND = 2**40
LAST_USER = 2**32 - 2


def pack(folder, manifest, path):
    """Pack a folder with its manifest into a tar file, and return what `check` reads of it."""
    manifest = dict(manifest, format=FORMAT, files=_digests(folder))
    with open(os.path.join(folder, MANIFEST), "w") as target:
        target.write(dumped(manifest))
    # The bytes of a name as they are, which a newer Python's own format would not keep.
    with contextlib.closing(tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT)) as archive:
        archive.add(os.path.join(folder, MANIFEST), MANIFEST)
        for name in sorted(os.listdir(folder)):
            if name != MANIFEST:
                archive.add(os.path.join(folder, name), name)
    return check(path)


def _digests(folder):
    digests = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                digests[known(os.path.relpath(path, folder))] = sha256_of(path)
    return digests


def check(path):
    """Read a whole tar file and return its manifest and entries; refuse it when one byte is not what the manifest says.

    Entries by name: {type: file, folder or link; mode, user, group, size, sha256, target}. The archive may be of
    anybody: whatever is in it, this ends, takes so much memory and no more, and says in one line what is wrong.
    """
    entries, manifest, size = {}, None, 0
    try:
        with bounded_memory(), contextlib.closing(tarfile.open(path, "r:gz")) as archive:
            for member in archive:
                name = known(member.name)
                _refuse_header(path, name, member)
                size += member.size
                if len(entries) >= MOST_ENTRIES or size > MOST_MEGABYTES * MEGABYTE:
                    raise Problem(
                        "%s has more than %d files, or %d MB of them" % (path, MOST_ENTRIES, MOST_MEGABYTES)
                    )
                if name == MANIFEST and manifest is None and member.isreg() and member.size <= MANIFEST_BYTES:
                    manifest = _manifest(archive.extractfile(member).read())
                    continue
                _refuse_place(path, name, entries)
                entries[name] = _entry(archive, member)
    except Problem:
        raise
    except MemoryError:
        raise Problem("%s is not a backup: to read it takes more than %d MB" % (path, MEMORY_MB))
    except Exception as error:  # of tarfile, gzip, zlib, struct and json: which one depends on the Python
        raise Problem("%s is damaged: %s" % (path, shown(str(error) or error.__class__.__name__)))
    if manifest is None:
        raise Problem("%s is not a backup: it has no %s" % (path, MANIFEST))
    _refuse_manifest(path, manifest)
    seen = {name: entry["sha256"] for name, entry in entries.items() if entry["type"] == "file"}
    if seen != manifest["files"]:
        different = sorted(
            name for name in set(seen) | set(manifest["files"]) if seen.get(name) != manifest["files"].get(name)
        )
        raise Problem("%s is damaged: %s is not what the manifest says" % (path, shown(different[0])))
    return manifest, entries


def _manifest(content):
    def number(digits):
        if len(digits) > MOST_DIGITS:  # to read a million takes hours
            raise ValueError("a number of %d digits" % len(digits))
        return int(digits)

    return native(json.loads(content.decode("utf-8"), parse_int=number))


def _refuse_header(path, name, member):
    """A file, folder or link, with numbers that mean something. Before tarfile uses them to find the next member."""
    if member.issparse() or not (member.isreg() or member.isdir() or member.issym()):
        raise Problem("%s: %s is not a file, folder or link" % (path, shown(name)))
    if any("\0" in known(word) for word in (member.name, member.linkname, member.uname, member.gname)):
        raise Problem("%s: %s, its owner or its target is not a name" % (path, shown(name)))
    ids = (member.uid, member.gid)
    if member.size < 0 or not abs(member.mtime) < LAST_SECOND or not all(0 <= number <= LAST_USER for number in ids):
        raise Problem("%s: %s has a size, time or owner that no file has" % (path, shown(name)))


def _refuse_place(path, name, entries):
    """A name is normal, there once, and in a folder of the archive: never behind a link of it."""
    if name.startswith("/") or ".." in name.split("/"):
        raise Problem("%s: %s leads out of the archive" % (path, shown(name)))
    if name.count("/") > MOST_FOLDERS:
        raise Problem("%s: %s... is in more than %d folders" % (path, shown(name[:40]), MOST_FOLDERS))
    above = name.rpartition("/")[0]
    if os.path.normpath(name) != name or name in entries or name == MANIFEST:
        raise Problem("%s: %s is there twice, or under another name" % (path, shown(name)))
    if above and entries.get(above, {}).get("type") != "folder":
        raise Problem("%s: %s is not in a folder of the archive" % (path, shown(name)))


def _entry(archive, member):
    entry = {
        "mode": "%04o" % (member.mode & 0o7777),
        "user": known(member.uname) or int(member.uid),
        "group": known(member.gname) or int(member.gid),
        "size": 0,
        "type": "folder" if member.isdir() else "link" if member.issym() else "file",
    }
    if entry["type"] == "file":
        entry.update(size=member.size, sha256=sha256_of_rest(archive.extractfile(member)))
    elif entry["type"] == "link":
        entry["target"] = known(member.linkname)
    return entry


def is_number(value, most=LAST_SECOND):
    """Whether JSON had a number that may count or date something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _refuse_manifest(path, manifest):
    """Of the manifest only facts are used; each has to be what it should."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        given = manifest.get("format") if isinstance(manifest, dict) else None
        raise Problem("%s has format %s; this version reads %d" % (path, shown(str(given)), FORMAT))
    files, sources = manifest.get("files"), manifest.get("sources")
    listed = sources if isinstance(sources, list) else []
    names = [source.get("name") if isinstance(source, dict) else None for source in listed]
    right = {
        "site": isinstance(manifest.get("site"), str),
        "node": isinstance(manifest.get("node"), str),
        "made": is_number(manifest.get("made")),
        "files": isinstance(files, dict) and all(isinstance(checksum, str) for checksum in files.values()),
        "sources": bool(names) and all(isinstance(name, str) for name in names) and len(names) == len(set(names)),
    }
    for name in sorted(right):
        if not right[name]:
            raise Problem("%s is not a backup: %s of its manifest is missing, or of another kind" % (path, name))


@contextlib.contextmanager
def bounded_memory():
    """Let what is read take so much memory and no more: a header of a tar file may say that it is any length."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as seen:
        allowed = int(seen.read().split()[0]) * resource.getpagesize() + MEMORY_MB * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (allowed if soft == resource.RLIM_INFINITY else min(soft, allowed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def keyring(key):
    """A folder for gpg that has this key (bytes). Another process removes it, also when this one is killed."""
    home = tempfile.mkdtemp(prefix="hal-backup-")  # short: the socket of gpg's agent is in it
    # Who stops a unit, or ends a session, tells all of it to end.
    remove = ["sh", "-c", 'trap "" HUP INT TERM; read _; exec rm -rf -- "$1"', "sh", home]
    remover = subprocess.Popen(remove, stdin=subprocess.PIPE, preexec_fn=os.setsid, close_fds=True)
    try:
        run(["gpg", "--homedir", home, "--batch", "--no-tty", "--quiet", "--import"], stdin=key)
        yield home
    finally:
        with open(os.devnull, "wb") as nothing:
            try:
                argv = ["gpgconf", "--homedir", home, "--kill", "gpg-agent"]
                subprocess.call(argv, stdout=nothing, stderr=nothing, close_fds=True)
            except OSError:
                pass  # the public key alone starts no agent
        remover.stdin.close()
        remover.wait()


def fingerprints(home):
    """Return the fingerprints of a keyring's keys."""
    listed = run(["gpg", "--homedir", home, "--batch", "--no-tty", "--with-colons", "--fingerprint"]).splitlines()
    keys, wanted = [], False
    for line in listed:
        fields = line.split(":")
        wanted = wanted or fields[0] == "pub"
        if fields[0] == "fpr" and wanted:
            keys.append(fields[9])
            wanted = False
    return keys


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
        options = ["--batch", "--no-tty", "--quiet", "--status-fd", "1", "--output", target]
        # What was encrypted is no larger than it is now: `encrypt` packs nothing, so who did may mean to fill the disk.
        options += ["--max-output", str(os.path.getsize(path)), "--decrypt", path]
        process = subprocess.Popen(
            ["gpg", "--homedir", home] + options,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LC_ALL="C"),
            close_fds=True,
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
            raise Problem("%s is not an encrypted archive" % name)
        raise Problem("%s is damaged: gpg cannot decrypt all of it (%s)" % (name, last_line(errors)))
