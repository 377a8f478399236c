# -*- coding: utf-8 -*-
"""Every file of a finished prefix with its checksum, and what differs from it later. Python 2.7 and 3.

The manifest is read and written as bytes: names of files need not be UTF-8. A line is `KIND VALUE  PATH`, where KIND is
f (VALUE: mode and sha256, as 0644:9f86...), l (where the link leads, a blank as \\040) or d (mode).
"""

from __future__ import absolute_import, division, print_function

import io
import os
import stat

from environment_common import create, hidden, inside, load, some
from hal_node.digest import sha256_of
from hal_node.text import native, text

# hal-environment's own notes, which come later or change. What activation sets is part of the environment.
SPARED = frozenset(b".hal/" + name + new for name in (b"manifest", b"record.json", b"verified.json", b"building",
                                                       b"surplus.json") for new in (b"", b".new"))
KINDS = ("changed", "missing", "extra", "unlike", "writable")


def write(prefix):
    """Write the manifest of a prefix; return its checksum."""
    path = hidden(prefix, "manifest")
    with create(path + ".new") as target:
        for name, line in entries(prefix):
            target.write(line + b"  " + name.replace(b"\n", b"\\n") + b"\n")
        target.flush()
        os.fsync(target.fileno())
    os.rename(path + ".new", path)
    return sha256_of(path)


def entries(prefix):
    """Yield (path below the prefix, line) of everything in it but SPARED, sorted, as bytes."""
    for below, path in paths(prefix):
        if below not in SPARED:
            yield below, describe(path)


def paths(prefix):
    """Yield (path below the prefix, path) of everything in it, sorted, as bytes."""
    root = prefix if isinstance(prefix, bytes) else prefix.encode("utf-8")
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            yield path[len(root) + 1:], path


def writable(path):
    """Say whether others than root may write to it: a link is changed in its folder, and is not looked at."""
    status = os.lstat(path)
    return not stat.S_ISLNK(status.st_mode) and bool(status.st_uid not in (0, os.getuid()) or status.st_mode & 0o022)


def describe(path):
    """Return what the manifest says of one path."""
    status = os.lstat(path)
    mode = ("%04o" % stat.S_IMODE(status.st_mode)).encode("ascii")
    if stat.S_ISLNK(status.st_mode):
        return b"l " + os.readlink(path).replace(b" ", b"\\040").replace(b"\n", b"\\012")
    if stat.S_ISDIR(status.st_mode):
        return b"d " + mode
    if stat.S_ISREG(status.st_mode):
        return b"f " + mode + b":" + sha256_of(path).encode("ascii")
    return b"? " + mode


def compare(prefix):
    """Return {changed, missing, extra, unlike, writable: paths}.

    unlike: another mode, or a file where a link was; writable: by others than root, who may change what everybody runs.
    """
    wrong = {kind: [] for kind in KINDS}
    path = hidden(prefix, "manifest")
    record = load(hidden(prefix, "record.json")) or {}
    if not os.path.isfile(path) or sha256_of(path) != record.get("manifest"):
        wrong["changed"].append(".hal/manifest")
        return wrong
    expected = {}
    with io.open(path, "rb") as source:
        for line in source:
            said, _, name = line.rstrip(b"\n").partition(b"  ")
            expected[name] = said
    for below, path in paths(prefix):
        name, loose = below.replace(b"\n", b"\\n"), writable(path)
        if loose:
            wrong["writable"].append(native(text(name)))
        if below in SPARED:
            continue
        said = describe(path)
        was = expected.pop(name, None)
        if was is None:
            if not (b"__pycache__" in name.split(b"/") or name.endswith(b".pyc")):
                wrong["extra"].append(native(text(name)))
        elif was != said:
            same = was[:2] == b"f " and said[:2] == b"f " and was.partition(b":")[2] != said.partition(b":")[2]
            compiled = same and name.endswith(b".pyc")  # compiled again, by another time of its source
            kind = "changed" if same or was[:1] == said[:1] == b"l" else "unlike"
            if not compiled and not (loose and kind == "unlike"):
                wrong[kind].append(native(text(name)))
    wrong["missing"] = sorted(native(text(name)) for name in expected)
    return wrong


def in_words(wrong, owners):
    """Return a verification's result in one line, "" when nothing is wrong; owners: {path: package}."""
    parts = []
    for kind in KINDS:
        if wrong[kind]:
            packages = sorted({owners[path] for path in wrong[kind] if path in owners})
            of = " of %s" % some(packages) if packages else ""
            words = "that others than root may write" if kind == "writable" else kind
            parts.append("%d %s%s (%s)" % (len(wrong[kind]), words, of, some(wrong[kind])))
    return "; ".join(parts)


def owners(prefix):
    """Return {path: "package version"} of the files that packages brought."""
    brought = {}
    for name in inside(os.path.join(prefix, "conda-meta")):
        if name.endswith(".json"):
            meta = load(os.path.join(prefix, "conda-meta", name))
            words = "%s %s" % (meta["name"], meta["version"])
            brought["conda-meta/" + name] = words
            for path in meta.get("files", []):
                brought[path] = words
    return brought
