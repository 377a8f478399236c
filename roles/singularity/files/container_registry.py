# -*- coding: utf-8 -*-
"""The registry: NAME.sif side by side, and below .hal what root knows of them. Python 2.7 and 3.

    NAME.sif                    the image that `NAME` means, read-only
    NAME--20261122-0359.sif     what it was before, still there for those who need it
    .hal/registry.json          of each version: checksum, size, definition, who built it, when

A version is entered before it is published, so an image that is not in there was put there by somebody else.
"""

from __future__ import absolute_import, division, print_function

import errno
import os
import shutil
import stat
import time

from container_common import HIDDEN, SUFFIX, Problem, check_name, file_system_of, read_json, write_json
from hal_node.digest import sha256_of_rest

FORMAT = 1
IMAGE_MODE = 0o555
# Magic of SIF: 32 bytes for the launch line, then this.
MAGIC_AT, MAGIC = 32, b"SIF_MAGIC"


class Registry(object):
    """The folder of images. `mount`: mount point of the file system that it has to be on; none: it may be anywhere."""

    def __init__(self, root, mount):
        self.root, self.mount = root, mount
        self.hidden = os.path.join(root, HIDDEN)
        self.record = os.path.join(self.hidden, "registry.json")

    def check_there(self):
        """Raise Problem unless its file system is mounted: images would be written into the system's own disk."""
        if self.mount and file_system_of(self.root)[0] != self.mount.rstrip("/"):
            raise Problem("%s is not mounted: nothing is done" % self.mount)

    def setup(self):
        """Make the folders, root's, readable; return what was changed, in words."""
        self.check_there()
        done = []
        for path, mode in ((self.root, 0o755), (self.hidden, 0o755), (os.path.join(self.hidden, "retired"), 0o700)):
            if os.path.islink(path) or (os.path.lexists(path) and not os.path.isdir(path)):
                raise Problem("%s is there and is not a folder" % path)
            if not os.path.isdir(path):
                if path == self.root and not os.path.isdir(os.path.dirname(path)):
                    os.makedirs(os.path.dirname(path), 0o755)
                    done.append("made %s" % os.path.dirname(path))
                os.mkdir(path, mode)
                done.append("made %s" % path)
            status = os.stat(path)
            if (status.st_uid, status.st_gid) != (0, 0):
                os.chown(path, 0, 0)
                done.append("gave %s to root" % path)
            if stat.S_IMODE(status.st_mode) != mode:
                os.chmod(path, mode)
                done.append("set mode %04o of %s" % (mode, path))
        return done

    def images(self):
        """Return the names of files that end in .sif, sorted."""
        if not os.path.isdir(self.root):
            return []
        return sorted(name[: -len(SUFFIX)] for name in os.listdir(self.root)
                      if name.endswith(SUFFIX) and not name.startswith("."))

    def path(self, name):
        """Return the path of an image."""
        return os.path.join(self.root, name + SUFFIX)

    def versions(self):
        """Return what is known, by name: versions, oldest first."""
        document = read_json(self.record, {"format": FORMAT, "images": {}})
        if document.get("format") != FORMAT:
            raise Problem("%s: format %r is not %d: written by another release"
                          % (self.record, document.get("format"), FORMAT))
        return document["images"]

    def enter(self, name, version):
        """Add a version to what is known."""
        known = self.versions()
        known.setdefault(name, []).append(version)
        write_json(self.record, {"format": FORMAT, "images": known})

    def version_of(self, name, known):
        """Return what is known of NAME.sif or NAME--DATE.sif, by size and time; None when nothing fits it."""
        status = self.status_of(name)
        return None if status is None else self._fitting(name, status, known)

    def status_of(self, name):
        """Return what lstat says of an image; None when it is gone."""
        try:
            return os.lstat(self.path(name))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return None

    @staticmethod
    def _fitting(name, status, known):
        for version in reversed(known.get(name.partition("--")[0], [])):
            if version["size"] == status.st_size and version["mtime"] == int(status.st_mtime):
                return version
        return None

    def wrong(self, name, known):
        """Return what is wrong with an image as it stands there, in words; nothing when nothing is, or it is gone.

        Nobody is locked out meanwhile: a version is entered before it is published, so one that `known` does not have
        is looked for in a record that is read after the file.
        """
        status = self.status_of(name)
        if status is None:
            return ""
        if not stat.S_ISREG(status.st_mode):
            return "is not a file of its own"
        if self._fitting(name, status, known) is None:
            known = self.versions()
        if self._fitting(name, status, known) is None:
            return "is not what was published" if name.partition("--")[0] in known else "was published by nobody"
        if (status.st_uid, status.st_gid) != (0, 0):
            return "belongs to uid %d, gid %d, not to root" % (status.st_uid, status.st_gid)
        if stat.S_IMODE(status.st_mode) != IMAGE_MODE:
            return "has mode %04o, not %04o" % (stat.S_IMODE(status.st_mode), IMAGE_MODE)
        return ""

    def verify(self):
        """Read every image again; return {name: what is wrong}, for those with which something is."""
        known, faults = self.versions(), {}
        for name in self.images():
            words = self.wrong(name, known) or self._changed(name)
            if words:
                faults[name] = words
        return faults

    def _changed(self, name):
        """Return in words that an image has another content. One file is read, whatever is published meanwhile."""
        try:
            handle = os.open(self.path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return ""
        with os.fdopen(handle, "rb") as stream:
            version = self._fitting(name, os.fstat(handle), self.versions())
            if version is not None and sha256_of_rest(stream) == version["sha256"]:
                return ""
        return "has another content than was published" if version else "is not what was published"

    def publish(self, name, built, version):
        """Make a built file NAME.sif, in one step for whoever reads; what was there before stays under its date.

        Returns (path of the image, path of the older one or None).
        """
        check_name(name)
        self.setup()
        waiting = os.path.join(self.hidden, "incoming" + SUFFIX)
        self._forget(waiting)
        try:
            # By descriptor, and without following: the build user owns what is read here.
            source = os.open(built, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(source, "rb") as reader, open(waiting, "wb") as writer:
                if not stat.S_ISREG(os.fstat(source).st_mode):
                    raise Problem("%s is not a file" % built)
                shutil.copyfileobj(reader, writer, 4 * 1024 * 1024)
                writer.flush()
                os.fsync(writer.fileno())
            with open(waiting, "rb") as reader:
                if reader.read(MAGIC_AT + len(MAGIC))[MAGIC_AT:] != MAGIC:
                    raise Problem("%s is not an image of Singularity (SIF)" % built)
            os.chown(waiting, 0, 0)
            os.chmod(waiting, IMAGE_MODE)
            status = os.stat(waiting)
            with open(waiting, "rb") as reader:
                digest = sha256_of_rest(reader)
            version = dict(version, sha256=digest, size=status.st_size, mtime=int(status.st_mtime))
            self.enter(name, version)
            older = self._keep(name)
            os.rename(waiting, self.path(name))
        except EnvironmentError as error:
            raise Problem("%s: not published: %s" % (name, error.strerror))
        finally:
            self._forget(waiting)
        return self.path(name), older

    def _keep(self, name):
        """Give what NAME.sif is now a second name with its date; the first stays until the new one takes it."""
        if not os.path.lexists(self.path(name)):
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(os.lstat(self.path(name)).st_mtime))
        older = self.path("%s--%s" % (name, stamp))
        if not os.path.lexists(older):
            os.link(self.path(name), older)
        return older

    def retire(self, name):
        """Take an image away from users; root finds it in .hal/retired. Return where."""
        if name not in self.images():
            raise Problem("%s: no such image; hal-container list" % name)
        place = os.path.join(self.hidden, "retired", "%s-%d%s" % (name, int(time.time()), SUFFIX))
        self.setup()
        os.rename(self.path(name), place)
        return place

    @staticmethod
    def _forget(path):
        if os.path.lexists(path):
            os.unlink(path)
