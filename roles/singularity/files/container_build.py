# -*- coding: utf-8 -*-
"""Build an image from a definition, as an unprivileged user, on a local disk, and clean up. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import grp
import hashlib
import io
import os
import pwd
import subprocess
import sys
import tempfile
import threading
import time

from container_common import Problem, file_system_of, in_words, text_of
from container_processes import end_all
from hal_node.printable import say
from hal_node.subids import is_own, parse

# Where files keep the ids that a build gives them. On others (NFS, GPFS, those of FUSE) the server, or a map, decides.
LOCAL = frozenset(["btrfs", "ext2", "ext3", "ext4", "overlay", "tmpfs", "xfs", "zfs"])
SCRATCH = "build-"
STALE_SECONDS = 2 * 86400
RANGES = ("/etc/subuid", "/etc/subgid")


def check_nobodys(name, uid, folder):
    """Raise Problem when the build user's account is, or may be, somebody's: builds run with its files, and what it
    runs would be ended. No account at all is fine.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return
    said = ""
    if user.pw_uid == 0:
        said = "is root: what a definition does would be done as root"
    elif user.pw_uid != uid:
        said = "has uid %d here, and %s in users.yml" % (user.pw_uid, uid)
    elif os.path.basename(user.pw_shell) not in ("nologin", "false"):
        said = "is somebody's: it has the login shell %s" % (user.pw_shell or "/bin/sh")
    elif os.path.realpath(user.pw_dir) != os.path.realpath(folder) and _holds_something(user.pw_dir):
        said = "is somebody's: it has the home %s, with something in it" % user.pw_dir
    if said:
        raise Problem("%s %s. The account that builds images does nothing else: all that it runs is ended after a"
                      " build; name an account of its own (singularity_build_user)" % (name, said))


def _holds_something(folder):
    try:
        return bool(os.listdir(folder))
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)


def check_user(name, users, folder):
    """Return (entry of the build user's account, its declared range); Problem when it is not the declared account.

    All that runs with these ids is ended, so nobody else may have them.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Problem("%s, who builds images, has no account here: give it a slot in users.yml and roll out" % name)
    check_nobodys(name, user.pw_uid, folder)
    declared = [entry for entry in users if entry["name"] == name and entry["uid"] == user.pw_uid and entry["enabled"]]
    if not declared:
        raise Problem("%s has uid %d here, and no slot for it in users.yml: give it one and roll out"
                      % (name, user.pw_uid))
    for path in RANGES:
        own = [line for line in parse(text_of(path)) if line["owner"] in (name, str(user.pw_uid))
               and line["start"] is not None]
        if not any(is_own(line, declared[0]) for line in own):
            raise Problem("%s: no range for %s: give it a slot in users.yml and roll out" % (path, name))
        for line in own:
            if not is_own(line, declared[0]):
                raise Problem("%s:%d: %s has a second range, and what a build starts there would go on: remove the line"
                              % (path, line["number"], name))
    return user, declared[0]


def check_scratch(folder, needed):
    """Raise Problem unless the folder is on a local file system with room."""
    place, kind = file_system_of(folder)
    if kind not in LOCAL:
        raise Problem("%s is on %s (%s): files there do not keep the ids of a build; name a folder of a local disk"
                      % (folder, place, kind))
    free = os.statvfs(folder)
    if free.f_bavail * free.f_frsize < needed:
        raise Problem("%s has %s left, and a build may need %s"
                      % (folder, in_words(free.f_bavail * free.f_frsize), in_words(needed)))


def end_builds(settings):
    """End all that builds have started; Problem when that cannot be, or the build user is not the declared one."""
    user, ids = check_user(settings["build_user"], settings["users"], settings["build_dir"])
    end_all(user.pw_uid, ids["start"], ids["count"])


def forget_stale(folder):
    """Remove what builds left that were killed. Only while none runs, and after what they started has ended."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(SCRATCH) and time.time() - os.lstat(path).st_mtime > STALE_SECONDS:
            remove(path)


def remove(scratch):
    """Remove a build's folder; a link is only unlinked. What cannot be removed is said.

    By rm, which goes by descriptors: rmtree of Python 2.7 goes by path, and follows a link that somebody puts there in
    between, to whom a definition opened the folder.
    """
    with open(os.devnull) as nothing:
        if subprocess.call(["rm", "-rf", "--one-file-system", "--", scratch], stdin=nothing, close_fds=True) != 0:
            say("%s could not be removed: look at what is in it" % scratch, sys.stderr)


def build(settings, definition, publish):
    """Build, and hand the file to `publish(path, version)`; return what that returns. Nothing is left behind.

    The caller holds the lock of builds.
    """
    user, ids = check_user(settings["build_user"], settings["users"], settings["build_dir"])
    folder = settings["build_dir"]
    if not os.path.isfile(definition):
        raise Problem("%s: no such definition" % definition)
    if not os.path.isdir(folder):
        raise Problem("%s is not there: roll the role out" % folder)
    check_scratch(folder, int(settings["build_room_mb"]) * 1024 * 1024)
    end_all(user.pw_uid, ids["start"], ids["count"])  # of a build that was killed with its hal-container
    forget_stale(folder)
    scratch = tempfile.mkdtemp(dir=folder, prefix=SCRATCH)
    try:
        own = os.path.join(scratch, "definition.def")
        with io.open(definition, "rb") as stream:
            content = stream.read()  # published as it was given: the build's copy is the build's
        with io.open(own, "wb") as stream:
            stream.write(content)
        os.chmod(own, 0o600)
        folders = [os.path.join(scratch, name) for name in ("tmp", "cache", "home")]
        for path in folders:
            os.mkdir(path, 0o700)
        for path in folders + [own, scratch]:  # the folder last: its owner could put links in their place
            os.chown(path, user.pw_uid, user.pw_gid)
        image = os.path.join(scratch, "image.sif")
        try:
            _run(settings, user, scratch, [settings["program"], "build", "--fakeroot", image, own])
        finally:
            end_all(user.pw_uid, ids["start"], ids["count"])
            _take(scratch)
        version = {"definition": content.decode("utf-8", "replace"),
                   "definition_sha256": hashlib.sha256(content).hexdigest(), "built_at": int(time.time()),
                   "built_by": user.pw_name, "on": os.uname()[1], "singularity": _version(settings["program"])}
        return publish(image, version)
    finally:
        remove(scratch)


def _take(scratch):
    """Make the folder root's: a definition may have opened it to others, who could exchange what is read next."""
    folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchown(folder, 0, 0)
        os.fchmod(folder, 0o700)
    finally:
        os.close(folder)


def _run(settings, user, scratch, argv):
    """Run the build as the user, with nothing of root's environment; its output goes where ours goes."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LC_ALL": "C",
                   "USER": user.pw_name, "LOGNAME": user.pw_name, "HOME": os.path.join(scratch, "home"),
                   "TMPDIR": os.path.join(scratch, "tmp")}
    for name in ("SINGULARITY", "APPTAINER"):
        environment[name + "_TMPDIR"] = os.path.join(scratch, "tmp")
        environment[name + "_CACHEDIR"] = os.path.join(scratch, "cache")
    groups = [entry.gr_gid for entry in grp.getgrall() if user.pw_name in entry.gr_mem]

    def become():
        os.setsid()
        os.setgroups(groups)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        os.umask(0o022)

    try:
        with open(os.devnull) as nothing:
            # Python 2.7 leaves files open for a child, which would hold our lock as long as it lives.
            call = subprocess.Popen(argv, stdin=nothing, stderr=subprocess.STDOUT, cwd=scratch, env=environment,
                                    preexec_fn=become, close_fds=True)
    except OSError as error:
        raise Problem("%s cannot be started as %s: %s" % (argv[0], user.pw_name, error.strerror))
    late = threading.Event()

    def stop():
        late.set()
        call.kill()  # what it started is ended by who called us

    timer = threading.Timer(int(settings["build_timeout_seconds"]), stop)
    timer.daemon = True
    timer.start()
    try:
        status = call.wait()
    finally:
        timer.cancel()
        timer.join()
    if late.is_set():
        raise Problem("the build took longer than %d s and was stopped; nothing was published"
                      % int(settings["build_timeout_seconds"]))
    if status != 0:
        raise Problem("the build failed (exit status %d, its words are above); nothing was published" % status)


def _version(program):
    try:
        return subprocess.check_output([program, "version"], universal_newlines=True, close_fds=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
