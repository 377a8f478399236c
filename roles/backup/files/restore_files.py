# -*- coding: utf-8 -*-
"""Restore of files: each that differs is put beside its place, and renamed into it. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import grp
import os
import pwd
import stat

from backup_common import Problem, clock, known, shown
from backup_contents import is_within, left_out, place_of
from backup_sources import copy_file, make_like
from hal_node.digest import sha256_of
from restore_common import is_newer, words

BESIDE = ".restoring"
FOLDER_MODE = 0o755
"""Of a missing folder above a declared path: the archive has no say there."""
OPENED = "/proc/self/fd/%d"


def look(source, made):
    """What is there now, whether it is newer than the archive, and for each path what happens to it.

    The same content is not newer, whenever it was written.
    """
    there = [pair for path in source["paths"] for pair in _there(path) if not _is_left_out(source, pair[0])]
    files = [place for place, is_folder in there if not is_folder]
    here = {known(place): place for place, _ in there}
    saved = {place_of(source, name): entry for name, entry in source["entries"].items()}
    other = [place for place in files if not _is_same(saved.get(known(place), {}), place)]
    lines = [_happens(source, saved[name], here.get(name, name)) for name in sorted(saved)]
    lines = [line for line in lines if line]
    if not files:
        return "nothing is there", False, lines
    if not other:
        return "%d files, the same as in the archive" % len(files), False, lines
    newest = max(os.lstat(place).st_mtime for place in other)
    return "%d files differ, the newest of %s" % (len(other), clock(newest)), is_newer(newest, made), lines


def _there(path):
    """What is at a path, and what is below; with each whether it is a folder."""
    if not os.path.isdir(path):
        return [(path, False)] if os.path.lexists(path) else []
    return [(path, True)] + list(_below(path))


def _below(folder):
    """What is in a folder and in those in it, each folder before what is in it; with each whether it is a folder."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        yield path, is_folder
        if is_folder:
            for below in _below(path):
                yield below


def _is_left_out(source, place):
    return any(is_within(known(place), folder) for folder in left_out(source))


def _is_same(entry, place):
    """Whether a file or link is what the archive has there."""
    if os.path.islink(place):
        return entry.get("type") == "link" and known(os.readlink(place)) == entry["target"]
    return entry.get("type") == "file" and os.path.isfile(place) and sha256_of(place) == entry["sha256"]


def _happens(source, entry, place):
    """What happens to one path, in words; empty when nothing does. Refused when that cannot be."""
    _refuse(source, entry, place)
    if entry["type"] == "folder":
        return "" if os.path.isdir(place) else "%s: made, %s" % (shown(place), _mode(entry))
    if _is_same(entry, place):
        return ""
    what = "a link to %s" % shown(entry["target"]) if entry["type"] == "link" else _mode(entry)
    if not os.path.lexists(place):
        return "%s: new, %s" % (shown(place), what)
    seen = os.lstat(place)
    now = {"mode": "%04o" % stat.S_IMODE(seen.st_mode), "user": _user(seen.st_uid), "group": _group(seen.st_gid)}
    if not stat.S_ISLNK(seen.st_mode) and what != _mode(now):
        what += " instead of %s" % _mode(now)
    return "%s: replaced, %s" % (shown(place), what)


def _refuse(source, entry, place):
    """Refuse what would go elsewhere than it seems: through a link of this node, or to another than it had."""
    folder = place if entry["type"] == "folder" else os.path.dirname(place)
    while folder not in source["paths"] and any(is_within(folder, path) for path in source["paths"]):
        if os.path.islink(folder):
            said = (source["name"], shown(folder))
            raise Problem("%s: %s is a link on this node: nothing is written through it" % said)
        folder = os.path.dirname(folder)
    if os.path.lexists(place) and os.path.isdir(place) != (entry["type"] == "folder"):
        if entry["type"] == "folder":
            raise Problem("%s: %s is a folder in the archive, and not one on this node" % (
                source["name"], shown(place)))
        if not os.path.islink(place):
            raise Problem("%s: %s is a folder, and not one in the archive" % (source["name"], shown(place)))
    for ask, kind in ((pwd.getpwnam, "user"), (grp.getgrnam, "group")):
        if isinstance(entry[kind], str) and not _is_known(ask, entry[kind]):
            raise Problem(
                "%s: %s belongs to the %s %s, and this node has no such %s: roll out the role that makes it first"
                % (source["name"], shown(place), kind, shown(entry[kind]), kind)
            )


def _is_known(ask, name):
    try:
        return bool(ask(name))
    except KeyError:
        return False


def _mode(entry):
    return "%s %s:%s" % (entry["mode"], shown(str(entry["user"])), shown(str(entry["group"])))


def _user(number):
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return number


def _group(number):
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return number


@contextlib.contextmanager
def _held(source, place):
    """A name that leads to a place whatever becomes of the folders above it meanwhile.

    Who may write in a declared folder could put a link there after `_refuse` has looked.
    """
    above = os.path.dirname(place)
    where = max([path for path in source["paths"] if is_within(above, path)] or [above], key=len)
    handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in above[len(where) :].strip("/").split("/") if above != where else ():
            below = os.open(OPENED % handle + "/" + name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            os.close(handle)
            handle, where = below, os.path.join(where, name)
        yield OPENED % handle + "/" + os.path.basename(place)
    except EnvironmentError as error:
        if error.filename:
            error.filename = error.filename.replace(OPENED % handle, where)
        raise
    finally:
        os.close(handle)


def prepare(source, folder):
    """Put what differs beside its place. `folder`: what was unpacked of this source."""
    places = []
    try:
        for path, is_folder in _below(folder) if source["entries"] else ():
            place = path[len(folder) :]
            entry = source["entries"].get(source["name"] + known(place))
            if entry is None:
                continue  # a folder above the declared paths
            _refuse(source, entry, place)
            _make_above(os.path.dirname(place))
            with _held(source, place) as here:
                if is_folder:
                    if not os.path.isdir(here):
                        make_like(path, here)
                elif not _is_same(entry, here):
                    places.append(place)
                    copy_file(path, here + BESIDE)
    except Exception:
        forget(source, places)
        raise
    return places


def _make_above(folder):
    """Make a folder that is missing. One in a declared path is there: it comes before what is in it."""
    if not os.path.isdir(folder):
        _make_above(os.path.dirname(folder))
        os.mkdir(folder)
        os.chmod(folder, FOLDER_MODE)


def replace(source, places, aside):
    """Keep what is there, then rename each into its place. When one cannot be, those before it are taken back."""
    kept = {place: os.path.join(aside, source["name"] + place) for place in places if os.path.lexists(place)}
    done = []
    try:
        for place in sorted(kept):
            if not os.path.isdir(os.path.dirname(kept[place])):
                os.makedirs(os.path.dirname(kept[place]))
            with _held(source, place) as here:
                copy_file(here, kept[place])
        for place in places:
            with _held(source, place) as here:
                os.rename(here + BESIDE, here)
            done.append(place)
    except EnvironmentError as error:
        stay = [place for place in done if not _is_taken_back(source, place, kept.get(place))]
        left = "%d of %d files stay replaced" % (len(stay), len(places)) if stay else "nothing is replaced"
        raise Problem("%s: %s" % (words(error), left))
    return "%d files replaced" % len(places)


def _is_taken_back(source, place, kept):
    try:
        with _held(source, place) as here:
            if kept is None:
                os.unlink(here)
            else:
                copy_file(kept, here)
    except EnvironmentError:
        return False
    return True


def forget(source, places):
    """Remove what was prepared; once it is in its place there is nothing."""
    for place in places:
        if os.path.lexists(place + BESIDE):
            with _held(source, place) as here:
                os.unlink(here + BESIDE)
