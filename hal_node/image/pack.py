# -*- coding: utf-8 -*-
"""A root file system as one file: labelled as EL7 can, in one order, its sha256 and size taken while it is written.

As Anaconda's liveimg of CentOS 7 unpacks it: numeric owners, ACLs, SELinux labels, all extended attributes
(capabilities are among them); names begin with ``./``. gzip, because that Anaconda lists the file with Python 2's
tarfile to find kernels (pyanaconda/packaging/livepayload.py), which reads gzip and bzip2 and no xz.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import os
import subprocess

from .hold import ImageError

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

NAME = "rootfs.tar.gz"
EMPTIED = ("./proc", "./sys", "./dev", "./run")
CONTEXTS = "etc/selinux/targeted/contexts/files/file_contexts"
BLOCK = 1024 * 1024


def names(root):
    # type: (str) -> list[bytes]
    """Return everything in the root, sorted, as bytes that begin with ./; of /proc and the like the folder alone."""
    paths = [b"."]
    device = os.lstat(root).st_dev
    bottom = os.path.normpath(root).encode("utf-8")
    for folder, folders, files in os.walk(bottom):
        below = b"." + folder[len(bottom):]
        if below.decode("utf-8", "replace") in EMPTIED:
            del folders[:]
            continue
        paths.extend(below + b"/" + name for name in folders + files)
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
    return sorted(paths)


def label(run, root):
    # type: (Callable[..., Any], str) -> str
    """Give files the labels of the image's own policy; where this machine cannot, have the node do it at first boot.

    Return 'labelled', 'at the first boot', or 'no policy' when the image has none.
    """
    if not os.path.isfile(os.path.join(root, CONTEXTS)):
        return "no policy"
    if os.path.isdir("/sys/fs/selinux/booleans"):
        argv = ["setfiles", "-F", "-r", root, os.path.join(root, CONTEXTS), root]
        status, output, errors = run(argv)
        if status != 0:
            raise ImageError("setfiles could not label the image: %s" % (errors or output).strip().splitlines()[-1])
        return "labelled"
    with open(os.path.join(root, ".autorelabel"), "w"):
        pass
    return "at the first boot"


def pack(folder, level):
    # type: (str, int) -> dict[str, Any]
    """Write the root as FOLDER/rootfs.tar.gz, at this level of gzip; return {'size': bytes, 'sha256': digits}."""
    root, listed = os.path.join(folder, "root"), os.path.join(folder, "names")
    with open(listed, "wb") as file:
        file.write(b"".join(name + b"\0" for name in names(root)))
    tar = ["tar", "--create", "--numeric-owner", "--acls", "--selinux", "--xattrs", "--xattrs-include=*",
           "--no-recursion", "--file=-", "--directory=%s" % root, "--null", "--files-from=%s" % listed]
    target = os.path.join(folder, NAME)
    digest, size = hashlib.sha256(), 0
    with open(os.devnull) as nothing, open(target, "wb") as file:
        try:
            packing = subprocess.Popen(tar, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=dict(os.environ, LC_ALL="C"))  # type: Any  # its streams are pipes
            gzip = ["gzip", "-n", "-c", "-%d" % level]
            pressing = subprocess.Popen(gzip, stdin=packing.stdout, stdout=subprocess.PIPE)  # type: Any
        except OSError as error:
            raise ImageError("tar or gzip cannot be run: %s" % error.strerror)
        packing.stdout.close()
        said = _reader(packing.stderr)
        for block in iter(lambda: pressing.stdout.read(BLOCK), b""):
            digest.update(block)
            size += len(block)
            file.write(block)
        statuses = (packing.wait(), pressing.wait())
        file.flush()
        os.fsync(file.fileno())
    if statuses != (0, 0):
        words = [line for line in said().splitlines() if line.strip() and "previous errors" not in line]
        reason = words[0] if words else "no reason given"
        raise ImageError("tar ended with %d, gzip with %d: %s" % (statuses[0], statuses[1], reason))
    os.chmod(target, 0o644)
    return {"size": size, "sha256": digest.hexdigest()}


def _reader(stream):
    # type: (Any) -> Callable[[], str]
    """Read a stream beside everything else; call what is returned for its text when its writer has ended."""
    import threading

    kept = []
    thread = threading.Thread(target=lambda: kept.append(stream.read()))
    thread.daemon = True
    thread.start()

    def text():
        # type: () -> str
        thread.join(10)
        return b"".join(kept).decode("utf-8", "replace")

    return text
