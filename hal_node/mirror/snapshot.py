# -*- coding: utf-8 -*-
"""Snapshots of a mirror: complete folders that never change, one of which a link makes current.

    pool/<sha256>/<file>.rpm                     every package once
    snapshots/<name>/<repository>/<arch>/...     links to the pool, and repodata
    snapshots/<name>/keys/<id>                   the signing keys
    snapshots/<name>/PACKAGES.sha256             what was locked; METADATA.sha256: repodata and keys
    current -> snapshots/<name>

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import io
import os
import shutil

from ..digest import sha256_of
from .fetch import MirrorError

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable, Mapping, Sequence  # noqa: F401  in comments

PACKAGES = "PACKAGES.sha256"
METADATA = "METADATA.sha256"
LINK = "current"


def pooled(folder, package):
    # type: (str, Mapping[str, Any]) -> str
    """Return where a package is kept once it is verified."""
    return os.path.join(folder, "pool", package["sha256"], os.path.basename(package["file"]))


def place(tree, package):
    # type: (Mapping[str, Any], Mapping[str, Any]) -> str
    """Return where a package is in a snapshot."""
    return "/".join([tree["repository"], tree["arch"], "Packages", os.path.basename(package["file"])])


def package_sums(trees):
    # type: (Sequence[Mapping[str, Any]]) -> str
    """Return the text of PACKAGES.sha256, in the form of sha256sum."""
    lines = ["%s  %s\n" % (package["sha256"], place(tree, package)) for tree in trees for package in tree["packages"]]
    return "".join(sorted(lines))


def current(folder):
    # type: (str) -> str | None
    """Return the name of the current snapshot, or None."""
    link = os.path.join(folder, LINK)
    return os.path.basename(os.readlink(link)) if os.path.islink(link) else None


def is_whole(folder, name, trees, keys):
    # type: (str, str, Sequence[Mapping[str, Any]], Mapping[str, str]) -> bool
    """Tell whether a snapshot is what its declaration makes: same packages, keys and metadata as when it was made."""
    root = os.path.join(folder, "snapshots", name)
    if not os.path.isdir(root) or _text(os.path.join(root, PACKAGES)) != package_sums(trees):
        return False
    sums = {path: checksum for checksum, path in _sums(os.path.join(root, METADATA))}
    wanted = set(sums) | {PACKAGES, METADATA}
    for tree in trees:
        for package in tree["packages"]:
            path = place(tree, package)
            wanted.add(path)
            mine, pool = os.path.join(root, path), pooled(folder, package)
            if not os.path.exists(mine) or not os.path.samefile(mine, pool):
                return False
        if "%s/%s/repodata/repomd.xml" % (tree["repository"], tree["arch"]) not in sums:
            return False
    if set(_files(root)) != wanted:
        return False
    if any(sha256_of(os.path.join(root, path)) != checksum for path, checksum in sums.items()):
        return False
    return all(sums.get("keys/" + name) == sha256_of(path) for name, path in keys.items()) and \
        len([path for path in sums if path.startswith("keys/")]) == len(keys)


def make(folder, name, trees, keys, index):
    # type: (str, str, Sequence[Mapping[str, Any]], Mapping[str, str], Callable[[str], object]) -> None
    """Make a snapshot beside the others; `index(folder)` writes the metadata of a tree."""
    root = os.path.join(folder, "snapshots", name)
    unfinished = os.path.join(folder, "snapshots", ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    os.makedirs(os.path.join(unfinished, "keys"))
    for tree in trees:
        here = os.path.join(unfinished, tree["repository"], tree["arch"])
        os.makedirs(os.path.join(here, "Packages"))
        for package in tree["packages"]:
            os.link(pooled(folder, package), os.path.join(unfinished, place(tree, package)))
        index(here)
    for key, path in keys.items():
        shutil.copyfile(path, os.path.join(unfinished, "keys", key))
    sums = ["%s  %s\n" % (sha256_of(os.path.join(unfinished, path)), path)
            for path in _files(unfinished) if not path.endswith(".rpm")]
    _write(os.path.join(unfinished, METADATA), "".join(sorted(sums)))
    _write(os.path.join(unfinished, PACKAGES), package_sums(trees))
    for path, _, files in os.walk(unfinished):
        os.chmod(path, 0o755)
        for file in files:
            os.chmod(os.path.join(path, file), 0o644)
    os.rename(unfinished, root)


def free_name(folder, digest):
    # type: (str, str) -> str
    """Return a name for a new snapshot: the digest of what is locked, numbered when one was spoilt."""
    name, number = digest, 0
    while os.path.lexists(os.path.join(folder, "snapshots", name)):
        number += 1
        name = "%s.%d" % (digest, number)
    return name


def switch(folder, name):
    # type: (str, str) -> None
    """Make a snapshot the current one, at once: who reads meanwhile sees the old one or the new one."""
    fresh = os.path.join(folder, "." + LINK)
    if os.path.lexists(fresh):
        os.unlink(fresh)
    os.symlink(os.path.join("snapshots", name), fresh)
    os.rename(fresh, os.path.join(folder, LINK))


def surplus(folder, keep):
    # type: (str, int) -> list[str]
    """Return what may go: all but the current snapshot and the `keep` newest others, and unfinished ones."""
    here = os.path.join(folder, "snapshots")
    names = [name for name in (os.listdir(here) if os.path.isdir(here) else []) if name != current(folder)]
    hidden = [name for name in names if name.startswith(".")]
    others = sorted(set(names) - set(hidden), key=lambda name: os.path.getmtime(os.path.join(here, name)))
    return hidden + others[:max(0, len(others) - keep)]


def prune(folder, names, trees):
    # type: (str, Iterable[str], Sequence[Mapping[str, Any]]) -> None
    """Remove snapshots, then the packages, and halves of them, that neither a snapshot nor the lock has any more."""
    for name in names:
        shutil.rmtree(os.path.join(folder, "snapshots", name))
    pool = os.path.join(folder, "pool")
    wanted = {package["sha256"] for tree in trees for package in tree["packages"]}
    for checksum in set(os.listdir(pool)) - wanted:
        here = os.path.join(pool, checksum)
        if not any(os.stat(os.path.join(here, name)).st_nlink > 1 for name in os.listdir(here)):
            shutil.rmtree(here)


def _files(root):
    # type: (str) -> list[str]
    paths = []
    for path, folders, files in os.walk(root):
        for name in files + [folder for folder in folders if os.path.islink(os.path.join(path, folder))]:
            paths.append(os.path.relpath(os.path.join(path, name), root))
    return paths


def _sums(path):
    # type: (str) -> list[tuple[str, str]]
    return [(line.partition("  ")[0], line.partition("  ")[2]) for line in _text(path).splitlines() if "  " in line]


def _text(path):
    # type: (str) -> str
    if not os.path.isfile(path):
        return ""
    with io.open(path, encoding="utf-8") as stream:
        return stream.read()


def _write(path, text):
    # type: (str, str) -> None
    try:
        with io.open(path, "wb") as stream:
            stream.write(text.encode("utf-8"))
    except (IOError, OSError) as error:
        raise MirrorError("%s cannot be written: %s" % (path, error))
