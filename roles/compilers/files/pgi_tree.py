# -*- coding: utf-8 -*-
"""Where PGI stands in the shared tree, what is recorded of it, and what is wrong with it. Reads only. Python 2.7 and 3.

    <root>/<version>/.hal          given to hal-pgi: without it the folder is somebody else's
    <root>/<version>/<digest>/     an installation (PGI_INSTALL_DIR), which never moves: its paths are in its files;
                                   <digest>.1, .2, ... after repairs
    <root>/<version>/<digest>/.hal.json  written last: what it was made of, and its files
    <root>/<version>/<digest>/.hal.verified.json  what was found when every file was read again
    <root>/<version>/current       leads to the one that modules load
"""

from __future__ import absolute_import, division, print_function

import hashlib
import io
import json
import os
import re
import socket
import stat
import subprocess
import time

from hal_node.digest import sha256_of

MARK = ".hal"
RECORD = ".hal.json"
VERIFIED = ".hal.verified.json"
CURRENT = "current"
DIGEST = re.compile(r"([0-9a-f]{12})(\.\d+)?\Z")
BLOCK = 1024 * 1024
DAY = 86400
# What is written beside the installer's files: one for each host, and the site's own settings (PGI's name for them).
ADDED = re.compile(r"(localrc(\..*)?|siterc(-.*)?)\Z")

_READ = {}


class Problem(Exception):
    """What is wrong or went wrong, in one line for the administrator."""


class Table(object):
    """What is declared, as the role writes it."""

    def __init__(self, path):
        """Raise Problem when the file cannot be read."""
        try:
            with io.open(path, encoding="utf-8") as stream:
                said = json.load(stream)
        except (OSError, IOError, ValueError) as error:
            raise Problem("%s: %s" % (path, error))
        self.root, self.mount = str(said["root"]), str(said["mount"])
        self.target, self.local_dir = str(said["target"]), str(said["local_dir"])
        self.accepted, self.installer = said["accept_eula"] is True, said["installer"] is True
        self.timeout = 60 * int(said["timeout_minutes"])
        self.verify_max_days = int(said["verify_max_days"])
        self.versions = [Version(self, version) for version in said["versions"]]

    def need_mount(self):
        """Raise Problem when the shared file system is not there: the tree would be made on the node's own disk."""
        if not os.path.ismount(self.mount):
            raise Problem("%s is not mounted, and %s is on it" % (self.mount, self.root))


class Version(object):
    """One declared version, and its places."""

    def __init__(self, table, said):
        self.table, self.name = table, str(said["version"])
        self.source, self.sha256 = str(said["source"]), str(said["sha256"])
        self.choices = {key: said[key] is True for key in ("nvidia", "mpi", "mpi_gpu")}
        self.folder = os.path.join(table.root, self.name)
        made_of = json.dumps([self.name, self.sha256, self.choices, table.target], sort_keys=True)
        self.digest = hashlib.sha256(made_of.encode("utf-8")).hexdigest()[:12]
        self.current = os.path.join(self.folder, CURRENT)

    @property
    def label(self):
        """As users name it."""
        return "pgi/" + self.name

    def place(self, prefix=None):
        """The folder of the version in an installation: bin, lib, man are in it."""
        return os.path.join(prefix or self.prefix, self.table.target, self.name)

    @property
    def prefix(self):
        """The installation of what is declared that modules load, else a finished one, else the first one's place."""
        if os.path.islink(self.current) and self.digest_of(os.readlink(self.current)) == self.digest:
            return os.path.join(self.folder, os.readlink(self.current))
        finished = [path for path in self.installations() if record_of(path) is not None]
        return finished[-1] if finished else os.path.join(self.folder, self.digest)

    def installations(self):
        """Paths of all that was made of what is declared, finished or not, the latest last."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        ours = [name for name in names if self.digest_of(name) == self.digest]
        return [os.path.join(self.folder, name) for name in sorted(ours, key=number_of)]

    @staticmethod
    def digest_of(name):
        """The digest in an installation's name; "" of another name."""
        match = DIGEST.match(name)
        return match.group(1) if match else ""

    @property
    def brought(self):
        """Whether the archive is a copy that the role or a download brought, and not the administrator's own."""
        return not self.source.startswith("/")

    @property
    def archive(self):
        """Where the archive lies on the installer: where it was put, or where the role or a download puts it."""
        if not self.brought:
            return self.source
        return os.path.join(self.table.root, ".archives", self.source.split("?")[0].rstrip("/").rsplit("/", 1)[-1])

    def foreign(self):
        """Say who has the folder, if it is not ours; "" otherwise."""
        if os.path.islink(self.folder):
            return "%s is a link, which hal-pgi did not make; move it away" % self.folder
        if os.path.lexists(self.folder) and not os.path.isfile(os.path.join(self.folder, MARK)):
            return ("%s is there and was not made by hal-pgi; move it away, or give it to hal-pgi: touch %s"
                    % (self.folder, os.path.join(self.folder, MARK)))
        return ""

    def record(self):
        """Return what the finished installation was made of and has; None if it is not finished."""
        return record_of(self.prefix)

    def wrong(self):
        """Say in one line what is quickly seen to be wrong with the declared installation; "" when nothing is."""
        if self.foreign():
            return self.foreign()
        prefix = self.prefix
        if record_of(prefix) is None:
            other = os.path.basename(os.path.realpath(self.current)) if os.path.lexists(self.current) else ""
            if record_of(os.path.realpath(self.current)) is not None and DIGEST.match(other):
                return "%s is installed as it was declared before, not as it is now" % self.label
            return "%s is not installed%s" % (self.label, ", or broke half-way" if os.path.isdir(prefix) else "")
        if not os.path.islink(self.current) or os.readlink(self.current) != os.path.basename(prefix):
            return "%s does not lead to %s" % (self.current, os.path.basename(prefix))
        for folder in (self.table.root, self.folder):
            if loose(folder):
                return "%s can be written by others than root, who could exchange what everybody compiles with" % folder
        return self.damage()

    def damage(self):
        """Say what is quickly seen to be wrong with a finished installation; "" when nothing is.

        The node that installs looks at the programs that users call: there, of their size, root's alone to write. The
        others look whether there are any. Every file is read by `verify` alone: that takes minutes.
        """
        prefix, place = self.prefix, self.place()
        programs = os.path.join(place, "bin")
        if not self.table.installer:
            driver = os.path.join(programs, "pgcc")
            return "" if os.access(driver, os.X_OK) else "%s is not there" % driver
        below = os.path.relpath(programs, prefix) + os.sep
        declared = {path: seen for path, seen in record_of(prefix)["files"].items() if path.startswith(below)}
        there = {path: look(os.path.join(prefix, path), read=False) for path in declared}
        folders = [prefix, os.path.dirname(place), place, programs, os.path.join(place, "lib")]
        open_to_others = [path for path in folders + [os.path.join(prefix, path) for path in declared]
                          if os.path.lexists(path) and loose(path)]
        return in_words(differences(prefix, declared, there, open_to_others))

    def read_again(self):
        """Return {"words", "time", "at"} of the time when every file was read last; None if it is not finished."""
        record = self.record()
        if record is None:
            return None
        # An installation is read once when it is made.
        made = {"words": "", "time": record["installed_at"], "at": moment(record["installed_at"])}
        return json_of(os.path.join(self.prefix, VERIFIED)) or made

    def verified(self):
        """Say what the last full reading found; "" when all was right."""
        last = self.read_again()
        if last is None:
            return "there is nothing to read"
        return "%s; seen %s" % (last["words"], last["at"]) if last["words"] else ""

    def late(self):
        """Say since when nothing was read, if that is long ago; "" when it was lately."""
        last = self.read_again()
        # A time to come says nothing: a clock was wrong.
        if last is None or -1 < (time.time() - last["time"]) / DAY <= self.table.verify_max_days:
            return ""
        return "not since %s: systemctl start hal-pgi-verify.service, on the node that installs" % last["at"]

    def repair(self):
        """Say why `install` would do anything: by a quick look, or by the last full reading; "" when it would not."""
        return self.wrong() or self.read_again()["words"]

    def localrc_wrong(self):
        """Say what is wrong with the settings that the compilers have for this host; "" when nothing is.

        `add_network_host` of a network installation writes localrc.<host> (the installer's own words), with the line
        "# GCC version ..." of the system's compiler, whose headers and libraries PGI uses.
        """
        if self.record() is None or not os.path.lexists(self.current):
            return "%s is not installed" % self.label
        for host in hosts():
            path = os.path.join(self.place(), "bin", "localrc." + host)
            if os.path.isfile(path):
                with io.open(path, encoding="utf-8", errors="replace") as stream:
                    said = re.search(r"^# GCC version (\S+)", stream.read(), re.MULTILINE)
                there, here = said.group(1) if said else "an unknown version", gcc_version()
                return "" if there == here else "%s is for gcc %s, and this node has %s" % (path, there, here)
        return "%s has no localrc.%s: the compilers do not know this node's gcc" % (
            os.path.join(self.place(), "bin"), hosts()[0])


def number_of(name):
    """The number of a repair in an installation's name, 0 of the first one."""
    return int((name + ".0").split(".")[1])


def hosts():
    """The names that a file of this host may have, its short one first."""
    name = socket.gethostname()
    return [name.split(".")[0], name] if "." in name else [name]


def gcc_version():
    """The version of the system's compiler; "none" without one."""
    for option in ("-dumpfullversion", "-dumpversion"):  # the first is GCC 7's and later's
        try:
            call = subprocess.Popen(["/usr/bin/gcc", option], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError:
            return "none"
        said = call.communicate()[0].decode("utf-8", "replace").strip()
        if call.returncode == 0 and said:
            return said
    return "none"


def json_of(path):
    """Return what a JSON file says, None without one that can be read. A record has megabytes: it is read once."""
    try:
        there = os.stat(path)
        key = (path, there.st_ino, there.st_mtime, there.st_size)
        if key not in _READ:
            with io.open(path, encoding="utf-8") as stream:
                _READ[key] = json.load(stream)
        return _READ[key]
    except (OSError, IOError, ValueError):
        return None


def record_of(prefix):
    """Return the record of a finished installation, None without one that can be read."""
    return json_of(os.path.join(prefix, RECORD))


def moment(seconds):
    """Return a time as people read it, in this node's zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def look(path, read):
    """Return [size, sha256 or link's target] of a file or link, without the sha256 if not `read`; None of all else."""
    if os.path.islink(path):
        return [0, "-> " + os.readlink(path)]
    if os.path.isfile(path):
        return [os.path.getsize(path), sha256_of(path) if read else ""]
    return None


def below(prefix):
    """Return (paths of files and links that the installer wrote, folders), relative; OSError if one cannot be read."""
    files, folders = [], []
    for folder, inner, names in os.walk(prefix, onerror=_refuse):
        links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
        folders.append(os.path.relpath(folder, prefix))
        files += [os.path.relpath(os.path.join(folder, name), prefix) for name in names + links]
    return files, folders


def _refuse(error):
    raise error


def ours(path):
    """Return whether a path is of the installer's files: not a record, nor a host's or the site's settings."""
    return path not in (RECORD, VERIFIED) and not ADDED.match(os.path.basename(path))


def files_of(prefix):
    """Return {path: [size, sha256 or link's target]} of all files of the installer. Reads every one."""
    there = {path: look(os.path.join(prefix, path), read=True) for path in below(prefix)[0] if ours(path)}
    return {path: seen for path, seen in there.items() if seen is not None}


def compare(prefix, declared):
    """Read every file; return {"missing", "changed", "loose": [paths]} of an installation against its record."""
    files, folders = below(prefix)
    return differences(prefix, declared, files_of(prefix),
                       [os.path.join(prefix, path) for path in files + folders if loose(os.path.join(prefix, path))])


def differences(prefix, declared, there, open_to_others):
    """Return {"missing", "changed", "loose": [paths]}; a sha256 counts where both have one."""
    def same(entry, other):
        return entry[0] == other[0] and (entry[1] == other[1] or "" in (entry[1], other[1]))

    return {
        "missing": sorted(path for path in declared if there.get(path) is None),
        "changed": sorted(path for path in declared if there.get(path) and not same(declared[path], there[path])),
        "loose": sorted(os.path.relpath(path, prefix) for path in open_to_others),
    }


def loose(path):
    """Return whether somebody but its owner, who has to be root, may write to a file or folder."""
    seen = os.lstat(path)
    return not stat.S_ISLNK(seen.st_mode) and bool(seen.st_mode & 0o022 or seen.st_uid != os.geteuid())


def in_words(differences):
    """Return one line for people, "" when there is no difference."""
    says = {"missing": "missing", "changed": "changed", "loose": "writable by others than root"}
    parts = ["%d %s (%s)" % (len(paths), says[kind], paths[0]) for kind, paths in sorted(differences.items()) if paths]
    return ", ".join(parts)


def copy_of(path, target):
    """Copy a file; return the hex digest of what was copied."""
    digest = hashlib.sha256()
    with open(path, "rb") as source, open(target, "wb") as copy:
        for block in iter(lambda: source.read(BLOCK), b""):
            digest.update(block)
            copy.write(block)
    return digest.hexdigest()


def undeclared(table):
    """Return what hal-pgi installed and nobody declares any more: versions, and installations that were replaced."""
    paths = []
    declared = {version.name: version for version in table.versions}
    for name in sorted(os.listdir(table.root)) if os.path.isdir(table.root) else []:
        folder = os.path.join(table.root, name)
        if not os.path.isfile(os.path.join(folder, MARK)):
            continue
        if name not in declared:
            paths.append(folder)
            continue
        version = declared[name]
        for inner in sorted(os.listdir(folder)):
            current, prefix = version.current, version.prefix
            loaded = os.readlink(current) if os.path.islink(current) else os.path.basename(prefix)
            if DIGEST.match(inner) and inner != loaded:
                paths.append(os.path.join(folder, inner))
    return paths
