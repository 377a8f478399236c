# -*- coding: utf-8 -*-
"""Build an image from a definition, as an unprivileged user, on a local disk, and clean up. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import grp
import hashlib
import io
import os
import pwd
import signal
import subprocess
import tempfile
import threading
import time

from container_common import Problem, file_system_of, in_words, remove_tree

# Where files keep the ids that a build gives them. On others (NFS, GPFS, those of FUSE) the server, or a map, decides.
LOCAL = frozenset(["btrfs", "ext2", "ext3", "ext4", "overlay", "tmpfs", "xfs", "zfs"])
SCRATCH = "build-"
STALE_SECONDS = 2 * 86400


def check_user(name):
    """Return the entry of the build user; Problem when there is none, or it could be anybody's."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Problem("%s, who builds images, has no account here: give it a slot in users.yml and roll out" % name)
    if user.pw_uid == 0:
        raise Problem("%s is root: what a definition does would be done as root" % name)
    for path in ("/etc/subuid", "/etc/subgid"):
        if not _has_range(path, user):
            raise Problem("%s: no range for %s: give it a slot in users.yml and roll out" % (path, name))
    return user


def _has_range(path, user):
    try:
        with io.open(path, encoding="utf-8", errors="replace") as stream:
            owners = [line.partition(":")[0] for line in stream]
    except (IOError, OSError):
        return False
    return user.pw_name in owners or str(user.pw_uid) in owners


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


def forget_stale(folder):
    """Remove what builds left that were killed."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(SCRATCH) and time.time() - os.lstat(path).st_mtime > STALE_SECONDS:
            remove_tree(path)


def build(settings, definition, publish):
    """Build, and hand the file to `publish(path, version)`; return what that returns. Nothing is left behind."""
    user = check_user(settings["build_user"])
    folder = settings["build_dir"]
    if not os.path.isfile(definition):
        raise Problem("%s: no such definition" % definition)
    if not os.path.isdir(folder):
        raise Problem("%s is not there: roll the role out" % folder)
    check_scratch(folder, int(settings["build_room_mb"]) * 1024 * 1024)
    forget_stale(folder)
    scratch = tempfile.mkdtemp(dir=folder, prefix=SCRATCH)
    try:
        own = os.path.join(scratch, "definition.def")
        with io.open(definition, "rb") as stream:
            content = stream.read()  # published as it was given: the build's copy is the build's
        with io.open(own, "wb") as stream:
            stream.write(content)
        for path in (scratch, own):
            os.chown(path, user.pw_uid, user.pw_gid)
        os.chmod(own, 0o600)
        for name in ("tmp", "cache", "home"):
            path = os.path.join(scratch, name)
            os.mkdir(path, 0o700)
            os.chown(path, user.pw_uid, user.pw_gid)
        image = os.path.join(scratch, "image.sif")
        _run(settings, user, scratch, [settings["program"], "build", "--fakeroot", image, own])
        version = {"definition": content.decode("utf-8", "replace"),
                   "definition_sha256": hashlib.sha256(content).hexdigest(), "built_at": int(time.time()),
                   "built_by": user.pw_name, "on": os.uname()[1], "singularity": _version(settings["program"])}
        return publish(image, version)
    finally:
        remove_tree(scratch)


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
            call = subprocess.Popen(argv, stdin=nothing, stderr=subprocess.STDOUT, cwd=scratch, env=environment,
                                    preexec_fn=become)
    except OSError as error:
        raise Problem("%s cannot be started as %s: %s" % (argv[0], user.pw_name, error.strerror))
    late = threading.Event()

    def stop():
        late.set()
        _kill(call.pid, scratch)

    timer = threading.Timer(int(settings["build_timeout_seconds"]), stop)
    timer.daemon = True
    timer.start()
    try:
        status = call.wait()
    finally:
        timer.cancel()
        _kill(call.pid, scratch)
    if late.is_set():
        raise Problem("the build took longer than %d s and was stopped; nothing was published"
                      % int(settings["build_timeout_seconds"]))
    if status != 0:
        raise Problem("the build failed (exit status %d, its words are above); nothing was published" % status)


def _kill(session, scratch):
    """End what is left of a build: what is in its session, and what has its folder in its environment."""
    marker = scratch.encode("utf-8")
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as stream:
                belongs = int(stream.read().rpartition(b")")[2].split()[3]) == session
            if not belongs:
                with open("/proc/%s/environ" % name, "rb") as stream:
                    belongs = marker in stream.read()
            if belongs:
                os.kill(int(name), signal.SIGKILL)
        except (IOError, OSError):
            continue  # it has ended


def _version(program):
    try:
        return subprocess.check_output([program, "version"], universal_newlines=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
