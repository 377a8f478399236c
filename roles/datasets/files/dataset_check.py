# -*- coding: utf-8 -*-
"""Read every file of a data set again, gently; after an interruption go on where it stopped. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os
import stat
import time

from dataset_common import Problem, in_parallel, load, save
from dataset_manifest import Index, batches, read
from hal_node.digest import sha256_of
from hal_node.text import text

FILES = 200  # between two notes of how far it has come
NAMED = 100  # of what is wrong; the rest is counted
KINDS = ("changed", "missing", "unlike", "extra")
OLD_SECONDS = 7 * 86400  # an interrupted verification that is older begins anew


class Modes(object):
    """What files and folders of a data set have to be like: nobody writes, and who may read."""

    def __init__(self, owner, group=None):
        self.owner, self.group = owner, group

    @property
    def file(self):
        """Mode of a file."""
        return 0o444 if self.group is None else 0o440

    @property
    def folder(self):
        """Mode of a folder."""
        return 0o555 if self.group is None else 0o550

    def fit(self, seen, wanted):
        """Whether what lstat says is as it has to be."""
        group = self.group is None or seen.st_gid == self.group
        return seen.st_uid == self.owner and group and stat.S_IMODE(seen.st_mode) == wanted

    def give(self, path, wanted):
        """Make it so."""
        os.chmod(path, wanted)
        if self.group is not None:
            os.chown(path, -1, self.group)


def examine(folder, place, modes, threads, progress, staging=False):
    """Return what is wrong below a folder: {"files", "bytes", "changed": [...], ..., "counts": {...}}.

    `staging`: folders can still be written, files get the modes that are declared now, and what changed is removed.
    """
    index = Index(place.manifest)
    progress.expect(len(index))
    report = _resumed(place, folder, modes)
    progress.add(report["done"], report["bytes"])

    def worker():
        return lambda entry: _look(os.path.join(folder, entry[0]), entry[1], modes, staging)

    entries = read(place.manifest)
    for _ in range(report["done"]):
        next(entries)
    noted = time.time()
    for batch in batches(entries, FILES):
        for (name, _), (kind, size) in in_parallel(worker, batch, threads):
            if kind:
                _note(report, kind, name)
            if kind == "changed" and staging:
                os.unlink(os.path.join(folder, name))
            report["bytes"] += size
            progress.add(1, size)
        report["done"] += len(batch)
        if time.time() - noted > 5:
            save(place.checked, report)
            noted = time.time()
    _walk(folder, index, modes, report, folders_too=not staging)
    if os.path.exists(place.checked):
        os.unlink(place.checked)
    progress.end()
    return dict({name: report[name] for name in KINDS + ("bytes", "counts")}, files=len(index))


def _resumed(place, folder, modes):
    """Return how far an interrupted call has come, when that is of use, else a beginning."""
    stamp = {"folder": folder, "manifest": os.stat(place.manifest).st_mtime, "modes": [modes.owner, modes.group]}
    try:
        before = load(place.checked)
    except Problem:
        before = None
    if before and before["stamp"] == stamp and 0 <= time.time() - before["begun"] < OLD_SECONDS:
        return before
    counts = dict.fromkeys(KINDS, 0)
    empty = {kind: [] for kind in KINDS}
    return dict(empty, stamp=stamp, begun=time.time(), done=0, bytes=0, counts=counts)


def _note(report, kind, name):
    report["counts"][kind] += 1
    if len(report[kind]) < NAMED:
        report[kind].append(text(name))


def _look(path, digest, modes, staging):
    """Return (what is wrong with one file, "" for nothing; its size)."""
    try:
        seen = os.lstat(path)
        if not stat.S_ISREG(seen.st_mode):
            return "changed", 0
        if sha256_of(path) != digest:
            return "changed", seen.st_size
    except (IOError, OSError) as error:
        return ("changed" if os.path.lexists(path) else "missing") if error.errno else "changed", 0
    if staging and not modes.fit(seen, modes.file):
        modes.give(path, modes.file)  # it came when another access was declared
        seen = os.lstat(path)
    return ("" if modes.fit(seen, modes.file) else "unlike"), seen.st_size


def _walk(folder, index, modes, report, folders_too):
    """Note what the manifest does not name, and folders that can be written."""
    for below, folders, files in os.walk(folder):
        if folders_too and not modes.fit(os.lstat(below), modes.folder):
            _note(report, "unlike", os.path.relpath(below, folder))
        links = [name for name in folders if os.path.islink(os.path.join(below, name))]
        for name in files + links:
            path = os.path.relpath(os.path.join(below, name), folder)
            if path not in index:
                _note(report, "extra", path)


def verdict(report):
    """Return what is wrong in one line; "" for nothing."""
    words = []
    for kind in KINDS:
        if report["counts"][kind]:
            more = " ..." if report["counts"][kind] > 3 else ""
            words.append("%d %s (%s%s)" % (report["counts"][kind], kind, ", ".join(report[kind][:3]), more))
    return "; ".join(words)
