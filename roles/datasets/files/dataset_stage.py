# -*- coding: utf-8 -*-
"""Bring a data set, read it again, and show it to users by one rename. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import grp
import hashlib
import os
import shutil
import socket
import stat
import sys
import time

from dataset_check import Modes, examine, verdict
from dataset_common import (GB, HIDDEN, NotOurs, Place, Problem, create, free_bytes, is_mounted, load, make_folder,
                            who, write)
from dataset_fetch import fetch, fetch_text_file
from dataset_manifest import Index, read
from hal_node.digest import sha256_of
from hal_node.lock import locked
from hal_node.text import in_words, text
from hal_node.printable import say

SPARSE_SECONDS = 60  # between two lines of progress where nobody watches
NAMED = 20


class Table(object):
    """What is declared, as the role wrote it."""

    def __init__(self, path):
        config = load(path)
        if config is None:
            raise Problem("%s is not there" % path)
        self.owner = os.stat(path).st_uid  # root, and all that is made belongs to it
        self.root = config["root"]
        self.hidden = os.path.join(self.root, HIDDEN)
        self.mount = config["mount"]
        self.page = config["page"]
        self.reserve = float(config["reserve_gb"]) * GB
        self.streams = int(config["streams"])
        self.threads = int(config["verify_threads"])
        self.late_days = float(config["verify_max_days"])
        self.sets = config["sets"]

    def need_root(self, make=False):
        """Refuse to write into the folder below an empty mount point; make the root, or say that it is not there."""
        if not is_mounted(self.mount):
            raise Problem("%s is not mounted: nothing is done" % self.mount)
        if not os.path.isdir(self.root):
            if not make:
                raise Problem("%s is not there: hal-dataset setup" % self.root)
            if self._exposed():
                raise NotOurs(self._exposed())
            make_folder(self.hidden)
            say("%s is made" % self.root)

    def need_own(self):
        """Refuse to write into somebody else's folder."""
        if self.foreign():
            raise NotOurs(self.foreign())

    def foreign(self):
        """Return why nothing is written below the root, "" for nothing.

        Somebody could put another folder in its place, or it has files and no folder of ours.
        """
        if self._exposed():
            return self._exposed()
        try:
            mark = os.lstat(self.hidden)
            ours = stat.S_ISDIR(mark.st_mode) and mark.st_uid == self.owner
        except OSError:
            ours = not os.listdir(self.root)
        if ours:
            return ""
        seen = os.stat(self.root)
        words = "%s is not hal-dataset's: it has files already (owner %d, mode %04o), and stays as it is." \
                " mkdir %s, as root, gives it to hal-dataset; or name another folder in datasets_root"
        return words % (self.root, seen.st_uid, stat.S_IMODE(seen.st_mode), self.hidden)

    def _exposed(self):
        """Return in words how somebody else could put another folder in the place of the root; "" when nobody can."""
        real = os.path.join(os.path.realpath(self.mount), os.path.relpath(self.root, self.mount))
        if os.path.realpath(self.root) != real:
            return "%s leads to %s by a link: name the folder itself in datasets_root" \
                   % (self.root, os.path.realpath(self.root))
        path = self.root
        while path not in (self.mount.rstrip("/"), "/"):
            path = os.path.dirname(path)
            if os.path.isdir(path) and not _is_safe(os.stat(path), self.owner, sticky=True):
                return "%s can be written by others, who could put another folder in the place of %s, and root would" \
                       " work there: chown root and chmod go-w it, or name another folder in datasets_root" \
                       % (path, self.root)
        return ""

    def take(self):
        """Have nobody else write where data sets are. By descriptor: until then its owner can put a link there."""
        self._take(self.root)
        self.need_own()
        make_folder(self.hidden)
        self._take(self.hidden)

    def _take(self, path):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            seen = os.fstat(folder)
            if (seen.st_uid, stat.S_IMODE(seen.st_mode)) != (self.owner, 0o755):
                os.fchown(folder, self.owner, os.getgid())
                os.fchmod(folder, 0o755)
                say("%s belongs to root alone" % path)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def alone(self, place):
        """Work on a version, one at a time, and in folders that are root's alone: others may have been there first."""
        for path in (self.root, self.hidden, place.group, os.path.dirname(place.lock)) + place.own:
            if os.path.lexists(path) and not _is_safe(os.lstat(path), self.owner):
                raise Problem("%s is a link, or somebody else may write to it, and root would work there: look at what"
                              " is in it, then move it away, or chown root and chmod go-w it" % path)
        if os.path.islink(place.folder):
            raise Problem("%s is a link, which hal-dataset did not make: move it away" % place.folder)
        make_folder(os.path.dirname(place.lock))
        with locked(place.lock, Problem, 0, place.label):
            yield

    def find(self, label):
        """Return the version that NAME/VERSION means; NAME alone means its default, or its only one."""
        name, _, version = label.partition("/")
        named = [dataset for dataset in self.sets if dataset["name"] == name]
        if version:
            chosen = [dataset for dataset in named if dataset["version"] == version]
        else:
            chosen = named if len(named) == 1 else [dataset for dataset in named if dataset["default"]]
        if len(chosen) != 1:
            known = ", ".join("%s/%s" % (dataset["name"], dataset["version"]) for dataset in named or self.sets)
            raise Problem("%s is not declared in datasets_standard; declared: %s" % (label, known or "none"))
        return chosen[0]

    def place(self, dataset):
        """Return where a version is."""
        return Place(self.root, dataset)

    def modes(self, dataset):
        """Return how files of a version have to be."""
        if dataset["access"] == "all":
            return Modes(self.owner)
        try:
            return Modes(self.owner, grp.getgrnam(dataset["owner"]).gr_gid)
        except KeyError:
            raise Problem("access is for group %s, which this node does not know" % dataset["owner"])


def _is_safe(seen, owner, sticky=False):
    """Whether what lstat says is a folder in which root's or our owner's files are; sticky: or can be."""
    others = seen.st_mode & 0o022 and not (sticky and seen.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid in (0, owner) and not others


class Progress(object):
    """How far it has come: one line that changes on a terminal, now and then a line elsewhere."""

    def __init__(self, what):
        self._what, self._files, self._bytes, self._of = what, 0, 0, 0
        self._watched = sys.stdout.isatty()
        self._begun = self._told = time.time()

    def expect(self, files):
        """Say how many files there are."""
        self._of = files

    def add(self, files, size):
        """Count what is done, and tell it when it is time to."""
        self._files += files
        self._bytes += size
        now = time.time()
        if now - self._told >= (0.5 if self._watched else SPARSE_SECONDS):
            self._told = now
            self._tell("\r", "\033[K") if self._watched else self._tell("", "\n")

    def end(self):
        """Tell the last state."""
        self._tell("\r", "\033[K\n") if self._watched else self._tell("", "\n")

    def _tell(self, before, after):
        share = 100 * self._files // self._of if self._of else 0
        words = "%s: %d of %d files (%d %%), %s" % (self._what, self._files, self._of, share, in_words(self._bytes))
        write(before + words + after)


# ---------------------------------------------------------------- stage
def stage(table, dataset, publish_too=True):
    """Bring what is missing, check all of it, and publish it. Raises Problem; what has come is kept."""
    place = table.place(dataset)
    if dataset["retired"]:
        raise Problem("%s is retired: %s" % (place.label, dataset["retired"]))
    with table.alone(place):
        if os.path.isdir(place.folder):
            _need_declared(dataset, place, "declare it as a new version, or retire it and stage it again")
            say("%s is published already: %s" % (place.label, place.folder))
            _point(table, dataset)
            return
        modes = table.modes(dataset)
        _take_back(place)
        _need_no_links(place)
        make_folder(place.hidden)
        modes.give(place.hidden, 0o755 if modes.group is None else 0o750)  # names of files may say something, too
        for folder in (place.data, place.parts):
            make_folder(folder, 0o700)
        _manifest(dataset, place)
        place.remember(source=dataset["source"], manifest_sha256=sha256_of(place.manifest), begun_at=_now(),
                       begun_by=who(), host=socket.gethostname(), staged_at=None)
        _bring(table, dataset, place, modes)
        _checked(table, place, modes)
        if publish_too:
            _publish(table, dataset, place, modes)
        else:
            say("%s is staged and right; hal-dataset publish %s shows it to users" % (place.label, place.label))


def _now():
    return int(time.time())


def _take_back(place):
    """A version that was retired and is declared again need not come a second time; it is read like all others."""
    if os.path.isdir(place.retired) and not os.path.isdir(place.data):
        os.rename(place.retired, place.data)


def _need_no_links(place):
    """Refuse links to folders among what has come: files would be written, and removed, where they lead."""
    for below, folders, _ in os.walk(place.data):
        for path in (os.path.join(below, name) for name in folders):
            if os.path.islink(path):
                raise Problem("%s is a link, which hal-dataset did not make: remove it" % path)


def _manifest(dataset, place):
    """Have the declared manifest, or refuse; what has come stays as far as it is the same."""
    if dataset["checksums"]:
        with create(place.manifest + ".new", 0o644) as target:
            target.write(text(dataset["checksums"]).encode("utf-8"))
    elif os.path.exists(place.manifest) and sha256_of(place.manifest) == dataset["manifest_sha256"]:
        return
    else:
        fetch_text_file(dataset["source"], dataset["manifest"], place.manifest + ".new")
        checksum = sha256_of(place.manifest + ".new")
        if checksum != dataset["manifest_sha256"]:
            os.unlink(place.manifest + ".new")
            raise Problem("the manifest %s of %s has the checksum %s, declared is %s: nothing was fetched"
                          % (dataset["manifest"], place.label, checksum, dataset["manifest_sha256"]))
    os.chmod(place.manifest + ".new", 0o644)
    if os.path.exists(place.manifest) and sha256_of(place.manifest) == sha256_of(place.manifest + ".new"):
        os.unlink(place.manifest + ".new")
        return
    wanted = Index(place.manifest + ".new")
    if os.path.exists(place.manifest):
        _keep_the_same(place, wanted)
    os.rename(place.manifest + ".new", place.manifest)


def _keep_the_same(place, wanted):
    """Remove of what has come by another manifest what the new one does not have, or has with another checksum."""
    former, other, gone = Index(place.manifest, digests=True), 0, 0
    for name, digest in read(place.manifest + ".new"):
        path = os.path.join(place.data, name)
        if os.path.isfile(path) and not former.has(name, digest):
            os.unlink(path)
            other += 1
    for below, _, files in os.walk(place.data, topdown=False):
        for path in (os.path.join(below, name) for name in files):
            if os.path.relpath(path, place.data) not in wanted:
                os.unlink(path)
                gone += 1
        if below != place.data and not os.listdir(below):
            os.rmdir(below)
    say("%s has another manifest than what had come: %d files have another checksum and come again, %d files are not"
        " in it and were removed" % (place.label, other, gone))


def _declared(dataset):
    """Return the checksum of the declared manifest."""
    return dataset["manifest_sha256"] or hashlib.sha256(text(dataset["checksums"]).encode("utf-8")).hexdigest()


def _astray(dataset, known):
    """Return that a version came otherwise than it is declared now, "" when it did not."""
    came_by = known.get("manifest_sha256")
    if not came_by:
        return "was not brought by hal-dataset"
    return "" if came_by == _declared(dataset) else "came by another manifest than the one that is declared now"


def _need_declared(dataset, place, advice):
    if _astray(dataset, place.known()):
        raise Problem("%s %s: %s" % (place.label, _astray(dataset, place.known()), advice))


def _bring(table, dataset, place, modes):
    progress, index = Progress("%s: fetched" % place.label), Index(place.manifest)
    progress.expect(len(index))
    there = _there(place)
    files = sum(1 for name, _ in read(place.manifest) if os.path.isfile(os.path.join(place.data, name)))
    progress.add(files, there)
    _need_room(table, dataset, place, there)
    if files:
        say("%s: %d files are here already and are not fetched again" % (place.label, files))
    if files < len(index) and os.path.exists(place.checked):
        os.unlink(place.checked)  # an earlier check has not seen what comes now
    missing = ((name, digest) for name, digest in read(place.manifest)
               if not os.path.isfile(os.path.join(place.data, name)))
    refused, more = [], 0
    results = fetch(dataset["source"], missing, place, lambda part: modes.give(part, modes.file), table.streams)
    for name, size, why in results:
        if why:
            more += 1
            refused = (refused + [u"%s: %s" % (text(name), text(why))])[:NAMED]
        else:
            progress.add(1, size)
    progress.end()
    if more:
        for line in refused:
            say("  " + line, sys.stderr)
        words = "%s is not complete: %d files were refused, named above; what has come is kept"
        raise Problem(words % (place.label, more))


def _there(place):
    """Return how many bytes have come."""
    total = 0
    for top in (place.data, place.parts, place.incoming):
        for below, _, files in os.walk(top):
            for name in files:
                total += os.lstat(os.path.join(below, name)).st_size
    return total


def _need_room(table, dataset, place, there):
    needed = max(0, float(dataset["size_gb"]) * GB - there)
    free = free_bytes(table.root)
    if free < needed + table.reserve:
        raise Problem("no room for %s: %s are free, it still needs %s, and %s have to stay free"
                      % (place.label, in_words(free), in_words(needed), in_words(table.reserve)))


def _checked(table, place, modes):
    """Read again what has come: a crash, or the disk, may have made something else of it."""
    report = examine(place.data, place, modes, table.threads, Progress("%s: checked" % place.label), staging=True)
    if verdict(report):
        advice = "What changed was removed: call again" if report["counts"]["changed"] else "Call again"
        if report["counts"]["extra"]:
            advice += ". Take away what is extra in %s" % place.data
        raise Problem("%s: on disk, of what has come: %s. %s" % (place.label, verdict(report), advice))
    known = {"files": report["files"], "bytes": report["bytes"], "verified_at": _now(), "wrong": ""}
    place.remember(staged_at=_now(), staged_by=who(), **known)


# ---------------------------------------------------------------- publish
def publish(table, dataset):
    """Show a staged version to users."""
    place = table.place(dataset)
    with table.alone(place):
        if os.path.isdir(place.folder):
            say("%s is published already: %s" % (place.label, place.folder))
        elif not os.path.isdir(place.data) or not place.known().get("staged_at"):
            raise Problem("%s is not staged: hal-dataset stage %s" % (place.label, place.label))
        else:
            _need_declared(dataset, place, "hal-dataset stage %s" % place.label)
            _need_no_links(place)
            modes = table.modes(dataset)
            _checked(table, place, modes)
            _publish(table, dataset, place, modes)
        _point(table, dataset)


def _publish(table, dataset, place, modes):
    make_folder(place.group)
    for below, _, _ in os.walk(place.data, topdown=False):
        modes.give(below, modes.folder)
    place.remember(published_at=_now())
    os.rename(place.data, place.folder)
    for leftover in (place.parts, place.incoming):
        shutil.rmtree(leftover, ignore_errors=True)
    if os.path.exists(place.message):
        os.unlink(place.message)
    say("%s is published: %s" % (place.label, place.folder))
    _point(table, dataset)


def _point(table, dataset):
    """Have `default` lead to the declared version; it always leads somewhere."""
    place = table.place(dataset)
    if not dataset["default"] or not os.path.isdir(place.folder):
        return
    if os.path.islink(place.link) and os.readlink(place.link) == dataset["version"]:
        return
    fresh = os.path.join(place.group, ".default-%d" % os.getpid())
    if os.path.lexists(fresh):
        os.unlink(fresh)
    os.symlink(dataset["version"], fresh)
    os.rename(fresh, place.link)
    say("%s is the default of %s" % (place.label, dataset["name"]))


def default(table, name):
    """Switch the link of a data set to the declared version."""
    chosen = [dataset for dataset in table.sets if dataset["name"] == name and dataset["default"]]
    if not chosen:
        raise Problem("%s has no version with `default: true` in datasets_standard" % name)
    place = table.place(chosen[0])
    if not os.path.isdir(place.folder):
        words = "%s is not published, so it cannot be the default yet: hal-dataset stage %s"
        raise Problem(words % (place.label, place.label))
    with table.alone(place):
        _point(table, chosen[0])


# ---------------------------------------------------------------- verify
def verify(table, sets):
    """Read published versions again; return how many are not right."""
    wrong = 0
    for dataset in sets:
        place = table.place(dataset)
        if not os.path.isdir(place.folder):
            say("%s is not published" % place.label)
            continue
        try:
            fault = _verify(table, dataset, place)
        except Problem as error:  # the others are read all the same
            fault = "%s" % error
        say("%s: %s" % (place.label, fault or "every file is what the manifest says"), sys.stderr if fault else None)
        wrong += bool(fault)
    return wrong


def _verify(table, dataset, place):
    with table.alone(place):
        if not os.path.exists(place.manifest):
            raise Problem("there is no manifest of it, so nothing to compare it with")
        progress = Progress("%s: verified" % place.label)
        report = examine(place.folder, place, table.modes(dataset), table.threads, progress)
        fault = verdict(report)
        place.remember(verified_at=_now(), wrong=fault, problems={} if not fault else report)
    return fault


# ---------------------------------------------------------------- retire, remove
def retire(table, dataset):
    """Take a version away from users; its data stay until they are removed by name."""
    place = table.place(dataset)
    if not dataset["retired"]:
        raise Problem("%s is not declared as retired: give it `retired: why, and what to use instead`" % place.label)
    with table.alone(place):
        if os.path.isdir(place.folder):
            if os.path.islink(place.link) and os.readlink(place.link) == dataset["version"]:
                raise Problem("%s is what `default` leads to: publish the new default first" % place.label)
            with create(place.message + ".new", 0o444) as target:
                target.write((u"%s was retired: %s\n" % (place.label, text(dataset["retired"]))).encode("utf-8"))
            os.rename(place.message + ".new", place.message)
            os.rename(place.folder, place.retired)
            os.chmod(place.retired, 0o700)
            place.remember(retired_at=_now())
        say("%s is retired; hal-dataset remove %s would erase it" % (place.label, place.label))


def remove(table, dataset, code):
    """Erase a retired or half-staged version, when the code is that of what was shown."""
    place = table.place(dataset)
    with table.alone(place):
        if os.path.isdir(place.folder):
            raise Problem("%s is published: retire it first" % place.label)
        tops = [top for top in (place.retired, place.data, place.parts, place.incoming) if os.path.isdir(top)]
        if not tops:
            raise Problem("%s: nothing of it is here" % place.label)
        seen = [(top, os.stat(top).st_ino, os.stat(top).st_mtime) for top in tops]
        wanted = hashlib.sha256(repr(seen).encode("utf-8")).hexdigest()[:8]
        files, size = 0, 0
        for top in tops:
            for below, _, names in os.walk(top):
                files += len(names)
                size += sum(os.lstat(os.path.join(below, name)).st_size for name in names)
        if code != wanted:
            say("%s: %d files, %s, would be erased" % (place.label, files, in_words(size)))
            raise Problem("nothing was erased. To erase it: hal-dataset remove %s --confirm %s" % (place.label, wanted))
        for top in tops:
            for below, _, _ in os.walk(top):
                os.chmod(below, 0o700)
            shutil.rmtree(top)
        for path in (place.state, place.manifest, place.checked):
            if os.path.exists(path):
                os.unlink(path)
        say("%s: %d files, %s, are erased" % (place.label, files, in_words(size)))


# ---------------------------------------------------------------- what there is
def state_of(table, dataset):
    """Return what is true of a version, without reading its data."""
    place = table.place(dataset)
    known = place.known()
    published = os.path.isdir(place.folder)
    if published:
        word = "published"
    elif os.path.isdir(place.retired):
        word = "retired"
    elif os.path.isdir(place.data):
        word = "half staged" if not known.get("staged_at") else "staged"
    else:
        word = "not staged"
    link = os.readlink(place.link) if os.path.islink(place.link) else ""
    verified = known.get("verified_at")
    astray = published and dataset["default"] and link != dataset["version"]
    days = round((time.time() - verified) / 86400.0, 2) if verified and published else None
    return {
        "state": word,
        "path": place.folder,
        "loose": _loose(table, dataset, os.lstat(place.folder)) if published else "",
        "is_default": link == dataset["version"],
        "default_wrong": "leads to %s" % (link or "nothing") if astray else "",
        "files": known.get("files"),
        "bytes": known.get("bytes"),
        "verified_days": days,
        "late": _late(table, days) if published else "",
        "wrong": (known.get("wrong", "") or _astray(dataset, known)) if published else "",
        "room": published or free_bytes(table.root) >= float(dataset["size_gb"]) * GB + table.reserve,
        "staged_at": known.get("staged_at"),
        "staged_by": known.get("staged_by", ""),
    }


def _late(table, days):
    """Return when it was verified if that is too long ago; a clock that was set back proves nothing."""
    if days is None:
        return "never verified"
    return "" if 0 <= days <= table.late_days else "verified %s days ago" % days


def _loose(table, dataset, seen):
    """Return what is wrong with owner and mode of a published folder; "" for nothing."""
    try:
        modes = table.modes(dataset)
    except Problem as error:
        return "%s" % error
    if modes.fit(seen, modes.folder):
        return ""
    return "mode %04o, owner %d, group %d" % (stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid)


def undeclared(table):
    """Return what users see below the root and nobody declared, as NAME or NAME/VERSION."""
    known = {dataset["name"]: set() for dataset in table.sets}
    for dataset in table.sets:
        known[dataset["name"]] |= {dataset["version"], "%s.retired.txt" % dataset["version"], "default"}
    strange = []
    for name in sorted(os.listdir(table.root)):
        path = os.path.join(table.root, name)
        if name in (HIDDEN, "index.html", "README.txt") or not os.path.isdir(path):
            continue
        if name not in known:
            strange.append(name)
        else:
            strange += ["%s/%s" % (name, version) for version in sorted(os.listdir(path)) if version not in known[name]]
    return strange
