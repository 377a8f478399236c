# -*- coding: utf-8 -*-
"""Signing keys of a mirror, in a package database of their own, and whether a package's signature holds.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

from .fetch import MirrorError

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments

# "    Header V3 RSA/SHA256 Signature, key ID f4a80eb5: OK" (rpm 4.11), with 16 digits from rpm 4.19 on.
CHECKED = re.compile(r"^\s+(?P<what>.+): (?P<verdict>[A-Z]+)(?: .*)?$")
SIGNED_BY = re.compile(r"[Ss]ignature, key ID (?P<key>[0-9a-fA-F]+)$")
AT_ONCE = 200


class Keyring(object):
    """A package database that trusts the given keys and nothing else."""

    def __init__(self, module, folder):
        # type: (Any, str) -> None
        """`folder`: empty, for the database and for gpg."""
        self._module = module
        self._database = os.path.join(folder, "rpm")
        self._home = os.path.join(folder, "gpg")
        os.mkdir(self._database, 0o700)
        os.mkdir(self._home, 0o700)
        self._run(["rpm", "--dbpath", self._database, "--initdb"], "cannot make a package database")

    def trust(self, name, path, fingerprint):
        # type: (str, str, str) -> None
        """Import a key file; it has to hold the key with this fingerprint and no other."""
        wanted = fingerprint.replace(" ", "").upper()
        shown = self._run(["gpg", "--homedir", self._home, "--no-tty", "--batch", "--with-colons", "--fixed-list-mode",
                           "--with-fingerprint", path], "key %s: %s is not a key file" % (name, path))
        fingerprints = primary_fingerprints(shown)
        if fingerprints != [wanted]:
            raise MirrorError("key %s: %s has %s, declared is %s" % (
                name, path, ", ".join(fingerprints) or "no key", wanted))
        self._run(["rpmkeys", "--dbpath", self._database, "--import", path], "key %s cannot be imported" % name)

    def faults(self, packages):
        # type: (Mapping[str, str]) -> dict[str, str]
        """Return what is wrong with the signatures of packages: {path: text}. `packages`: path -> key id, 16 digits."""
        faults = {}
        paths = sorted(packages)
        for start in range(0, len(paths), AT_ONCE):
            some = paths[start:start + AT_ONCE]
            argv = ["rpmkeys", "--dbpath", self._database, "--checksig", "--verbose"] + some
            _, output, errors = self._module.run_command(argv, environ_update={"LC_ALL": "C"})
            reports = by_package(output, some)
            for path in some:
                fault = fault_of(reports.get(path, []), packages[path])
                if fault:
                    faults[path] = fault if reports.get(path) else "%s: %s" % (fault, errors.strip())
        return faults

    def _run(self, argv, failure):
        # type: (list[str], str) -> str
        status, output, errors = self._module.run_command(argv, environ_update={"LC_ALL": "C"})
        if status != 0:
            raise MirrorError("%s: %s" % (failure, (errors or output).strip()))
        return str(output)


def primary_fingerprints(colons):
    # type: (str) -> list[str]
    """Return the fingerprints of the keys, not of their subkeys, in gpg's output with colons."""
    fingerprints = []
    primary = False
    for line in colons.splitlines():
        fields = line.split(":")
        if fields[0] in ("pub", "sub"):
            primary = fields[0] == "pub"
        elif fields[0] == "fpr" and primary:
            fingerprints.append(fields[9].upper())
            primary = False
    return fingerprints


def by_package(output, paths):
    # type: (str, Iterable[str]) -> dict[str, list[str]]
    """Return the lines of `rpmkeys --checksig --verbose` by package."""
    known = set(paths)
    reports = {}  # type: dict[str, list[str]]
    current = None
    for line in output.splitlines():
        if line.endswith(":") and line[:-1] in known:
            current = reports.setdefault(line[:-1], [])
        elif current is not None:
            current.append(line)
    return reports


def fault_of(lines, key):
    # type: (Iterable[str], str) -> str
    """Return what is wrong with one package; "" when all is well and the key with this id signed it."""
    signers = []
    for line in lines:
        match = CHECKED.match(line)
        if match is None:
            continue
        if match.group("verdict") != "OK":
            return line.strip()
        signed = SIGNED_BY.search(match.group("what"))
        if signed:
            signers.append(signed.group("key").upper())
    if not signers:
        return "is not signed"
    others = [signer for signer in signers if not key.upper().endswith(signer)]
    return "is signed by %s, locked is %s" % (", ".join(others), key.upper()) if others else ""
