# -*- coding: utf-8 -*-
"""Install PGI from its archive, whole or not at all. Python 2.7 and 3.

The names and values of the installer's variables: NVIDIA's hpc-container-maker (building_blocks/pgi.py), Spack's
package pgi and ADIOS2's image for POWER, which agree: PGI_SILENT=true PGI_ACCEPT_EULA=accept PGI_INSTALL_DIR=...
PGI_INSTALL_TYPE=network PGI_INSTALL_LOCAL_DIR=... and true or false for PGI_INSTALL_NVIDIA, PGI_INSTALL_MPI,
PGI_MPI_GPU_SUPPORT.
"""

from __future__ import absolute_import, division, print_function

import errno
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import tarfile
import threading
import time

from pgi_tree import (ADDED, MARK, RECORD, VERIFIED, Problem, compare, copy_of, files_of, in_words, loose, moment,
                      number_of, record_of)

try:
    from urllib.request import urlopen
except ImportError:
    from urllib2 import urlopen

LOG = "/var/log/hal-pgi.log"
GET = "PGI's download page (www.pgroup.com, now NVIDIA's; it needs an account and the acceptance of its licence)"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Unpacked and installed files need room at the same time; sizes are nowhere published, so this is a site default.
ROOM = 4


def refusals(version):
    """Say why a version cannot be installed from what is here, before anything is unpacked; "" if it can."""
    if not version.table.accepted:
        return ("%s: its licence is not accepted: read it, and set compilers_pgi_accept_eula to true; nothing was"
                " unpacked" % version.label)
    if version.source.startswith(("http://", "https://")) and not os.path.isfile(version.archive):
        return ""
    if not os.path.isfile(version.archive):
        return ("%s is declared and its archive is not at %s: get it from %s and put it there, or take the version"
                " out of compilers_pgi" % (version.label, version.archive, GET))
    return ""


def fetch(version):
    """Bring the archive from the site's mirror if it is declared as an address; Problem when it cannot be had."""
    if os.path.isfile(version.archive):
        return
    if not os.path.isdir(os.path.dirname(version.archive)):
        os.makedirs(os.path.dirname(version.archive), 0o755)
    part = version.archive + ".part"
    _remove(part)  # never into what somebody put there
    try:
        answer = urlopen(version.source, timeout=60)
        with open(part, "wb") as stream:
            shutil.copyfileobj(answer, stream, 1024 * 1024)
    except (OSError, IOError) as error:
        _remove(part)
        raise Problem("%s: %s cannot be fetched: %s; get it from %s" % (version.label, version.source, error, GET))
    os.rename(part, version.archive)


def install(version, say):
    """Install a version and let modules have it; Problem, with the earlier installation in place, when that fails."""
    table = version.table
    table.need_mount()
    if version.foreign():
        raise Problem(version.foreign())
    why = refusals(version)
    if why:
        raise Problem(why)
    archives = os.path.dirname(version.archive)
    if version.brought and os.path.islink(archives):
        raise Problem("%s is a link, which hal-pgi did not make; move it away" % archives)
    for folder in [table.root, version.folder] + [archives] * (version.brought and os.path.isdir(archives)):
        if not os.path.isdir(folder):
            os.makedirs(folder, 0o755)
        if loose(folder):
            os.chown(folder, os.geteuid(), os.getegid())
            os.chmod(folder, 0o755)
            say("%s: %s can be written by root alone again" % (version.label, folder))
    with open(os.path.join(version.folder, MARK), "a"):
        pass
    prefix = version.prefix
    if record_of(prefix) is None or version.damage() or version.read_again()["words"]:
        prefix = _make(version, say)
    _switch(version, prefix, say)
    if version.brought:
        _remove(version.archive)


def verify(version):
    """Read every file of an installation, note what was found, and return it in words; "" when all is right."""
    prefix, record = version.prefix, version.record()
    if record is None:
        raise Problem(version.wrong())
    try:
        words = in_words(compare(prefix, record["files"]))
    except (OSError, IOError) as error:  # a disk, or a file system that went away: nothing is known of the rest
        raise Problem("%s: cannot be read: %s" % (version.label, error))
    now = int(time.time())
    path = os.path.join(prefix, VERIFIED)
    _write(path + ".new", json.dumps({"words": words, "time": now, "at": moment(now)}, sort_keys=True))
    os.rename(path + ".new", path)
    return words


def _make(version, say):
    fetch(version)
    need, there = ROOM * os.path.getsize(version.archive), _free(version.folder)
    if there < need:
        raise Problem("%s: %.1f GB are free on %s, %.1f GB are needed" % (
            version.label, there / 1e9, version.folder, need / 1e9))
    for path in version.installations():  # what broke half-way; nothing loads it
        if record_of(path) is None and os.path.basename(path) != _loaded(version):
            _remove(path)
    there = version.installations()
    number = max([-1] + [number_of(os.path.basename(path)) for path in there]) + 1
    prefix = os.path.join(version.folder, version.digest + (".%d" % number if there else ""))
    unpacked = os.path.join(version.folder, ".unpack-" + version.digest)
    _remove(unpacked)
    try:
        os.mkdir(unpacked, 0o700)
        _unpack(version, unpacked)
        _run(version, unpacked, prefix)
        _own(prefix)
        _check(version, prefix)
        record = {"format": 1, "version": version.name, "sha256": version.sha256, "choices": version.choices,
                  "installed_at": int(time.time()), "files": files_of(prefix)}
        _write(os.path.join(prefix, RECORD), json.dumps(record, indent=0, sort_keys=True))
    except (OSError, IOError, tarfile.TarError, Problem) as error:
        _remove(prefix)
        full = getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT)
        raise Problem("%s; what was there before is as it was" % (
            "%s: the file system is full" % version.label if full else
            error if isinstance(error, Problem) else "%s: %s" % (version.label, error)))
    finally:
        _remove(unpacked)
    say("%s: installed to %s" % (version.label, prefix))
    return prefix


def _loaded(version):
    return os.readlink(version.current) if os.path.islink(version.current) else ""


def _unpack(version, folder):
    """Unpack the archive if its checksum is the declared one; TarError names a member that is not part of a folder.

    What is unpacked is a copy in a folder of root's alone, made while the checksum was: the archive may lie where
    somebody else could exchange it after it was looked at.
    """
    copy = os.path.join(folder, ".archive")
    checksum = copy_of(version.archive, copy)
    if checksum != version.sha256:
        if version.brought:
            _remove(version.archive)
        raise Problem("%s: %s has the sha256 %s, declared is %s; it was not unpacked%s" % (
            version.label, version.archive, checksum, version.sha256,
            ", and is removed: the next time it is brought again" if version.brought else ""))
    with tarfile.open(copy) as tar:
        for member in tar:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise tarfile.TarError("the archive's member %s leads out of it" % member.name)
            if member.isdev():
                raise tarfile.TarError("the archive's member %s is a device" % member.name)
            member.mode = (member.mode | 0o200) & 0o755
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
            tar.extract(member, folder)
    os.unlink(copy)


def _run(version, unpacked, prefix):
    program = os.path.join(unpacked, "install")
    if not os.access(program, os.X_OK):
        raise Problem("%s: %s has no program ./install; it is not an archive of PGI" % (version.label, version.archive))
    yes = {True: "true", False: "false"}
    environment = {
        "PATH": PATH, "HOME": "/root", "LC_ALL": "C", "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "PGI_SILENT": "true", "PGI_ACCEPT_EULA": "accept", "PGI_INSTALL_DIR": prefix,
        "PGI_INSTALL_TYPE": "network", "PGI_INSTALL_LOCAL_DIR": version.table.local_dir,
        "PGI_INSTALL_NVIDIA": yes[version.choices["nvidia"]], "PGI_INSTALL_MPI": yes[version.choices["mpi"]],
        "PGI_MPI_GPU_SUPPORT": yes[version.choices["mpi_gpu"]],
    }
    status, said = run([program], environment, unpacked, version.table.timeout)
    if status != 0:
        raise Problem("%s: its installer ended with %s: %s; more in %s" % (version.label, status, _last(said), LOG))


def run(argv, environment, folder, seconds):
    """Run a program with nothing on its standard input; return its status, or why it has none, and what it said."""
    with open(os.devnull) as nothing:
        call = subprocess.Popen(argv, env=environment, cwd=folder, stdin=nothing, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, preexec_fn=os.setsid, close_fds=True)
    late = []

    def kill():
        late.append(True)
        os.killpg(call.pid, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        said = call.communicate()[0].decode("utf-8", "replace")
    finally:
        timer.cancel()
    try:
        with io.open(os.environ.get("HAL_PGI_LOG", LOG), "a", encoding="utf-8") as stream:
            stream.write(u"%s %s\n%s\n" % (time.strftime("%Y-%m-%d %H:%M:%S"), u" ".join(argv), said))
    except (OSError, IOError):
        pass
    return ("no end after %d minutes" % (seconds // 60) if late else call.returncode), said


def _own(prefix):
    """Root's alone to write: files of the archive belong to the vendor's 921 and 1004 (hpc-container-maker)."""
    for folder, _, names in os.walk(prefix):
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            seen = os.lstat(path)
            if seen.st_uid != os.geteuid() or seen.st_gid != os.getegid():
                os.lchown(path, os.geteuid(), os.getegid())
            if not stat.S_ISLNK(seen.st_mode):
                os.chmod(path, stat.S_IMODE(seen.st_mode) & ~0o022 | (0o055 if stat.S_ISDIR(seen.st_mode) else 0o044))


def _check(version, prefix):
    """What users call is there, and says the declared version; Problem otherwise."""
    driver = os.path.join(version.place(prefix), "bin", "pgcc")
    if not os.access(driver, os.X_OK):
        raise Problem("%s: after its installation there is no %s; is the archive of this version and architecture?"
                      " More in %s" % (version.label, driver, LOG))
    status, said = run([driver, "-V"], {"PATH": PATH, "HOME": "/root", "LC_ALL": "C"}, "/", 60)
    if status != 0 or (" %s-" % version.name) not in said:
        raise Problem("%s: %s -V says %s" % (version.label, driver, _last(said) or status))


def _switch(version, prefix, say):
    """Have modules load an installation: all at once, by the exchange of a link."""
    name = os.path.basename(prefix)
    if _loaded(version) == name:
        return
    if os.path.lexists(version.current) and not os.path.islink(version.current):
        raise Problem("%s is there and is not a link; move it away" % version.current)
    if _loaded(version):
        _keep_hosts(os.path.join(version.folder, _loaded(version)), prefix, version)
    beside = version.current + ".new"
    _remove(beside)
    os.symlink(name, beside)
    os.rename(beside, version.current)
    say("%s: modules load %s from now on" % (version.label, name))


def _keep_hosts(old, new, version):
    """Carry over what other hosts and the site wrote: compilers of the same version know them at once."""
    folder = os.path.join(version.place(old), "bin")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        target = os.path.join(version.place(new), "bin", name)
        if ADDED.match(name) and name != "localrc" and not os.path.exists(target):
            shutil.copy2(os.path.join(folder, name), target)


def localrc(version, say):
    """Have the compilers know this host's gcc; Problem when their own program does not do that."""
    if not version.localrc_wrong():
        return
    if record_of(version.prefix) is None:
        raise Problem("%s is not installed" % version.label)
    program = os.path.join(version.place(), "bin", "add_network_host")
    environment = {"PATH": os.path.join(version.place(), "bin") + ":" + PATH, "HOME": "/root", "LC_ALL": "C",
                   "PGI": version.prefix}
    if not os.access(program, os.X_OK):
        raise Problem("%s: there is no %s" % (version.label, program))
    status, said = run([program], environment, "/", 300)
    wrong = version.localrc_wrong()
    if status != 0 or wrong:
        raise Problem("%s: %s ended with %s: %s" % (version.label, program, status, _last(said) or wrong))
    say("%s: knows the compiler of this node" % version.label)


def remove(path, say):
    """Erase what hal-pgi installed."""
    _remove(path)
    say("%s: removed" % path)


def _remove(path):
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.isdir(path):
        owner = os.stat(path).st_uid
        if owner != os.geteuid():  # rmtree of Python 2.7 goes by path, which its owner could lead elsewhere
            raise Problem("%s belongs to uid %d, and was not made by hal-pgi; move it away" % (path, owner))
        shutil.rmtree(path)


def _free(folder):
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize


def _last(said):
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing"


def _write(path, words):
    with io.open(path, "w", encoding="utf-8") as stream:
        stream.write(words if isinstance(words, type(u"")) else words.decode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())
