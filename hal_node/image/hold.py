# -*- coding: utf-8 -*-
"""A root file system that is being built: who builds it, what is mounted in it, and how all of that goes away again.

A unit of systemd, ``hal-image``, is lock and keeper: one name cannot be started twice, its description says who builds,
and the mounts are in its mount namespace alone, so they end with it and no other program ever sees them. It ends by
itself when its time is over. Programs of the build enter that namespace by nsenter.

Mounted are: /proc (its sys read-only: scripts of packages must not set this machine's kernel), /sys read-only and
without what is mounted below it (programs then see no SELinux and load no policy), a /dev of harmless devices without
disks, an empty /run, and folders that packages are read from. Options of util-linux 2.23 and systemd 219.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import signal
import time

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable  # noqa: F401  in comments

UNIT = "hal-image.service"
RUN = "/run/hal-image"
LOG = "/var/log/hal-image.log"
MARK = ".hal-image-build"
MARK_TEXT = u"Images are built here, by playbooks/image.yml; what is in this folder is removed by each build.\n"
OURS = ("root", "keys", "check", "base.tar", "yum.conf", "names", "rootfs.tar.gz")
START_SECONDS = 120
END_SECONDS = 20

# systemd takes two dollars for one, and what is in braces behind one for a variable of its own: neither is in here.
KEEPER = """\
set -e
root=$1 seconds=$2
shift 2
mount --make-rprivate /
rm -rf /run/hal-image
mkdir -m 0700 /run/hal-image
read -r pid rest < /proc/self/stat
echo "$pid" > /run/hal-image/held
until [ -e /run/hal-image/go ]; do sleep 1; seconds=$((seconds - 1)); [ "$seconds" -gt 0 ]; done
mount --rbind /proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --bind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
mount -t tmpfs -o mode=0755,nosuid hal-image "$root/dev"
for one in null zero full random urandom tty; do
  : > "$root/dev/$one"
  mount --bind "/dev/$one" "$root/dev/$one"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount --bind /dev/pts "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=0755,nosuid,nodev hal-image "$root/run"
mkdir -p "$root/run/lock" "$root/run/hal-image"
mount --bind /run/hal-image "$root/run/hal-image"
: > "$root/run/hal-image-root"
for one in "$@"; do
  mkdir -p "$root$one"
  mount --bind "$one" "$root$one"
  mount -o remount,bind,ro "$root$one"
done
: > /run/hal-image/ready
exec sleep "$seconds"
"""


class ImageError(Exception):
    """What was not done, in one line."""

    def __str__(self):
        # type: () -> str
        words = self.args[0]
        return words if isinstance(words, str) else words.encode("utf-8")  # Python 2 takes ASCII only


def state(run):
    # type: (Callable[..., Any]) -> dict[str, Any]
    """Return who builds here: {'running': bool, 'owner': text, 'pid': int}. ``run``: AnsibleModule.run_command."""
    argv = ["systemctl", "show", "--property=ActiveState", "--property=MainPID", "--property=Description", UNIT]
    status, output, errors = run(argv, environ_update={"LC_ALL": "C"})
    if status != 0:
        raise ImageError("systemctl does not say whether an image is built here: %s" % (errors or output).strip())
    properties = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    running = properties.get("ActiveState") in ("active", "activating", "deactivating")
    return {"running": running, "owner": properties.get("Description", "") if running else "",
            "pid": int(properties.get("MainPID") or 0) if running else 0}


def begin(run, folder, owner, seconds, binds):
    # type: (Callable[..., Any], str, str, int, Iterable[str]) -> int
    """Take the lock, clear the folder, and return the keeper's process; ImageError when somebody else builds."""
    run(["systemctl", "reset-failed", UNIT])  # of one that ended badly; it fails where there was none
    argv = ["systemd-run", "--quiet", "--unit=%s" % UNIT, "--description=%s" % owner, "unshare", "--mount", "/bin/sh",
            "-c", KEEPER, "hal-image", os.path.join(folder, "root"), "%d" % seconds] + list(binds)
    status, output, errors = run(argv, environ_update={"LC_ALL": "C"})
    if status != 0:
        there = state(run)
        if there["running"]:
            raise ImageError("another build is under way: %s" % there["owner"])
        raise ImageError("the unit %s does not start: %s" % (UNIT, " ".join((errors or output).split())))
    try:
        pid = wait(run, "held")
        clear(run, folder)
        os.mkdir(os.path.join(folder, "root"), 0o755)
    except (ImageError, IOError, OSError):  # two kinds in Python 2
        run(["systemctl", "stop", UNIT])  # nothing is built: the next may
        raise
    return pid


def wait(run, what):
    # type: (Callable[..., Any], str) -> int
    """Wait until the keeper has come so far, and return its process."""
    end = time.time() + START_SECONDS
    path = os.path.join(RUN, what)
    while True:
        there = state(run)
        if not there["running"]:
            raise ImageError("the unit %s ended at once: journalctl -u hal-image says why" % UNIT)
        if there["pid"] and os.path.exists(path) and _held_by(there["pid"]):
            return int(there["pid"])
        if time.time() > end:
            raise ImageError("the unit %s is not ready after %d s: journalctl -u hal-image" % (UNIT, START_SECONDS))
        time.sleep(0.2)


def _held_by(pid):
    # type: (int) -> bool
    try:
        with open(os.path.join(RUN, "held")) as file:
            return file.read().strip() == "%d" % pid
    except (IOError, OSError):
        return False


def enter(run, root):
    # type: (Callable[..., Any], str) -> int
    """Have the keeper mount what programs in the root need, and return its process."""
    for name in ("proc", "sys", "dev", "run"):
        path = os.path.join(root, name)
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isdir(path)):
            raise ImageError("%s is not a folder; nothing is mounted there" % path)
        if not os.path.isdir(path):
            os.mkdir(path, 0o755)
    with open(os.path.join(RUN, "go"), "w"):
        pass
    return wait(run, "ready")


def inside(pid):
    # type: (int) -> list[str]
    """Return the beginning of a command that runs in the keeper's mount namespace."""
    return ["nsenter", "--mount=/proc/%d/ns/mnt" % pid, "--"]


def clear(run, folder):
    # type: (Callable[..., Any], str) -> None
    """Make the folder, or remove what a build left in it; ImageError when it is not a folder of ours."""
    mark = os.path.join(folder, MARK)
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.isfile(mark):
        raise ImageError("%s has files of others in it: give the build a folder of its own (image_folder)" % folder)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700)
    os.chmod(folder, 0o700)
    with open("/proc/self/mounts", "rb") as mounts:  # a user's mount may have a name that is not text
        paths = [line.split()[1].decode("utf-8", "replace") for line in mounts]
    below = [path for path in paths if path.startswith(folder + "/")]
    if below:
        raise ImageError("%s: is mounted, and nothing below %s may be" % (below[0], folder))
    remove(run, folder)
    with open(mark, "wb") as file:
        file.write(MARK_TEXT.encode("utf-8"))


def remove(run, folder):
    # type: (Callable[..., Any], str) -> None
    """Remove what a build left, within one file system."""
    paths = [os.path.join(folder, name) for name in OURS]
    status, output, errors = run(["rm", "-rf", "--one-file-system", "--"] + paths)
    if status != 0:
        raise ImageError("%s cannot be cleared: %s" % (folder, (errors or output).strip().splitlines()[0]))


def end(run, folder, owner):
    # type: (Callable[..., Any], str, str) -> bool
    """End the build of this owner: its programs, its mounts, its files. Return whether there was anything."""
    there = state(run)
    if there["running"] and there["owner"] != owner:
        return False
    _end_programs(own_namespace(there["pid"]), os.path.join(folder, "root"), there["pid"])
    if there["running"]:
        status, output, errors = run(["systemctl", "stop", UNIT])
        if status != 0:
            raise ImageError("the unit %s cannot be stopped: %s" % (UNIT, (errors or output).strip()))
    run(["systemctl", "reset-failed", UNIT])
    run(["rm", "-rf", "--one-file-system", "--", RUN])
    left = os.path.isfile(os.path.join(folder, MARK)) and any(
        os.path.lexists(os.path.join(folder, name)) for name in OURS)
    if left:
        remove(run, folder)
    return there["running"] or left


def own_namespace(pid):
    # type: (int) -> str | None
    """Return the mount namespace of a keeper when it is its own; None for that of the machine, in which everything is.

    A keeper is in the machine's for a moment, before it has one; so is a unit of this name that is not a keeper.
    """
    namespace = _link("/proc/%d/ns/mnt" % pid) if pid else None
    return None if namespace in (_link("/proc/1/ns/mnt"), _link("/proc/self/ns/mnt")) else namespace


def _end_programs(namespace, root, keeper):
    # type: (str | None, str, int) -> None
    for sign, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
        deadline = time.time() + seconds
        for pid in programs(namespace, root, keeper):
            _signal(pid, sign)
        while programs(namespace, root, keeper):
            if time.time() > deadline:
                break
            time.sleep(0.2)
        else:
            return
    raise ImageError("programs of an older build do not end: process %d" % programs(namespace, root, keeper)[0])


def programs(namespace, root, keeper):
    # type: (str | None, str, int) -> list[int]
    """Return the processes of a build: those in the keeper's mount namespace, and those whose root is the image's.

    One that is over and waits for its parent to look has neither.
    """
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (keeper, os.getpid()):
            continue
        theirs = _link("/proc/%s/root" % name) or ""
        within = theirs == root or theirs.startswith(root + "/")
        if within or (namespace and _link("/proc/%s/ns/mnt" % name) == namespace):
            pids.append(int(name))
    return pids


def _link(path):
    # type: (str) -> str | None
    try:
        return os.readlink(path)
    except OSError:
        return None


def _signal(pid, sign):
    # type: (int, int) -> None
    try:
        os.kill(pid, sign)
    except OSError:
        pass
