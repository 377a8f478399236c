# -*- coding: utf-8 -*-
"""Install declared environments: into fresh prefixes, shown by one switch; older ones are kept. Python 2.7 and 3.

A prefix is NAME/VERSION.DIGEST (or .DIGEST.2, ... when the first was spoilt) and is never changed once its record is
written; users reach it by the link NAME/VERSION. What has no record was interrupted, and the next run removes it.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import json
import os
import pwd
import re
import shutil
import stat
import time
import zipfile

import environment_activation as activation
import environment_manifest as manifest
import environment_status as status
from environment_common import (GB, Full, Problem, hidden, inside, link_of, load, one_line, record_of, run, run_theirs,
                                save, some)
from environment_fetch import address, archive, fetch, is_here
from hal_node.digest import sha256_of
from hal_node.text import in_words, native, text

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "environment_link.py")
NO_ROOM = re.compile(r"No space left|os error 28|Disk quota|os error 122")
IMPORT_SECONDS = 600
HALF = "there was no room on the way; what was half made is removed, what was fetched is kept"


class Installer(object):
    """Carries out one request on the node that installs."""

    def __init__(self, settings, say, checking=False):
        """settings: what the role environments wrote; say: called with a line for each step."""
        self.settings, self.say, self.checking = settings, say, checking
        self.root = settings["root"]
        self.done = {"installed": [], "repaired": [], "switched": [], "removed": [], "kept": [], "mended": [],
                     "changed": False}

    # ------------------------------------------------------------ what is there
    def prefixes(self, env):
        """Return the prefixes of a version, whatever they were made from: (name, record or None), oldest first."""
        folder = os.path.dirname(env["link"])
        form = re.compile(re.escape(env["version"]) + r"\.[0-9a-f]{12}(?:\.\d+)?")
        listed = [(name, record_of(os.path.join(folder, name))) for name in inside(folder) if form.match(name)
                 and form.match(name).group() == name]
        return sorted(listed, key=lambda pair: (pair[1] or {}).get("time", 0))

    def right(self, env):
        """Return the name of a prefix that is what is declared, the one in use first; None when there is none."""
        target = link_of(env["link"])
        names = [name for name, record in self.prefixes(env) if record and record["digest"] == env["digest"]]
        for name in sorted(names, key=lambda prefix: prefix != target):
            if not self.spoilt(env, os.path.join(os.path.dirname(env["link"]), name)):
                return name
        return None

    def spoilt(self, env, prefix):
        """Return in words why a finished prefix cannot be used; "" when it can."""
        seen = load(hidden(prefix, "verified.json")) or {}
        return status.unloadable(prefix) or status.faults(env, prefix) or seen.get("words", "")

    # ------------------------------------------------------------ the request
    def apply(self, environments, owner, remove_ok, used, told=None):
        """Make every environment be there; return what was done. Raise Problem after all were tried.

        used: prefixes that other nodes use; told: variables that post-link scripts get.
        """
        problems = []
        if environments and not self.checking:
            self._store()
        for env in environments:
            try:
                env["post_link"]["environment"].update(told or {})
                self._one(env, owner)
            except Problem as problem:
                target = link_of(env["link"])
                stays = "%s stays in use" % target if target else "nothing is installed of it"
                problems.append("%s: %s; %s" % (env["id"], problem, stays))
        if not problems:
            self._old(environments, owner, remove_ok, used)
        self.done["changed"] = any(self.done[name] for name in ("installed", "repaired", "switched", "removed",
                                                                "mended"))
        if problems:
            raise Problem("\n".join(problems))
        return self.done

    def _one(self, env, owner):
        link, folder = env["link"], os.path.dirname(env["link"])
        if os.path.lexists(link) and not os.path.islink(link):
            raise Problem("%s is not a link: somebody put something else there; move it away" % link)
        self._mend(folder)
        before = link_of(link)
        name = self.right(env)
        if name is None:
            repair = bool(before) and before.startswith("%s.%s" % (env["version"], env["digest"]))
            why = status.wrong(env) or self.spoilt(env, os.path.join(folder, before)) if before else ""
            name = ("%s.%s" % (env["version"], env["digest"]) if self.checking
                    else self._install(env, owner, before))
            self.done["repaired" if repair else "installed"].append(env["id"] + (": " + why if repair else ""))
        if before != name:
            if not self.checking:
                switch(link, name)
            self.done["switched"].append("%s: from %s to %s" % (env["id"], before or "nothing", name))

    def _store(self):
        """Have the folder of archives. What somebody made while others could write here is not followed."""
        self._mend(self.root)
        path = os.path.join(self.root, ".packages")
        for folder in (path, os.path.join(path, "files"), os.path.join(path, "unpacked")):
            if os.path.islink(folder) or (os.path.lexists(folder) and os.lstat(folder).st_uid != os.getuid()):
                raise Problem("%s is a link, or not root's: somebody put it there; move it away" % folder)
        _folder(path)
        os.chmod(path, 0o700)  # archives are under licences

    def _mend(self, folder):
        """Nobody but root makes links: folders of environments, and the one they are in. Somebody's own is left."""
        for path in (self.root, folder):
            if path != self.root and os.path.islink(path):
                raise Problem("%s is a link: somebody put it there; move it away" % path)
            if os.path.isdir(path):
                seen = os.stat(path)
                if seen.st_uid != os.getuid():
                    raise Problem("%s belongs to %s, who could change what everybody runs: choose another software_root"
                                  ", or move it away, or chown root it" % (path, _name(seen.st_uid)))
                if seen.st_mode & 0o022:
                    if not self.checking:
                        os.chmod(path, 0o755)
                    self.done["mended"].append(path)

    # ------------------------------------------------------------ a fresh prefix
    def _install(self, env, owner, in_use):
        folder = os.path.dirname(env["link"])
        _folder(folder)
        name = self._free_name(env, in_use)
        prefix = os.path.join(folder, name)
        missing = [package for package in env["packages"] if not is_here(archive(self.root, package), package)]
        self._room(env, missing)
        self._fetch(env, missing)
        self.say("%s: linking %d packages into %s" % (env["id"], len(env["packages"]), prefix))
        try:
            _folder(hidden(prefix, ""))
            save(hidden(prefix, "building"), {"of": env["id"], "since": time.strftime("%Y-%m-%d %H:%M:%S")})
            self._link(env, prefix)
            self._post_link(env, prefix)
            self._finish(env, prefix, owner)
        except Problem:
            shutil.rmtree(prefix, ignore_errors=True)  # room; nobody has seen it
            raise
        except (IOError, OSError) as error:
            shutil.rmtree(prefix, ignore_errors=True)
            if error.errno in (28, 122):
                raise Full(HALF)
            raise Problem("%s" % error)
        return name

    def _free_name(self, env, in_use):
        """Return the name of the next prefix; what an interrupted run left is removed."""
        folder = os.path.dirname(env["link"])
        for name, record in self.prefixes(env):
            prefix = os.path.join(folder, name)
            if record is None and name != in_use:
                if not _is_own(prefix):
                    raise Problem("%s is a link, or not root's: somebody put it there; move it away" % prefix)
                if not os.path.exists(hidden(prefix, "building")) and inside(prefix) not in ([], [".hal"]):
                    raise Problem("%s is not a prefix of hal-environment, and has files: move it away" % prefix)
                self.say("%s: removing %s, whose installation was interrupted" % (env["id"], prefix))
                shutil.rmtree(prefix)
        first = "%s.%s" % (env["version"], env["digest"])
        names = [first] + ["%s.%d" % (first, number) for number in range(2, 1000)]
        return next(name for name in names if not os.path.lexists(os.path.join(folder, name)))

    def _room(self, env, missing):
        """Refuse before anything is written when it cannot fit."""
        fetched = sum(package["size"] for package in missing)
        unpacked = int(sum(package["size"] for package in env["packages"]) * self.settings["unpacked_factor"])
        left = int(self.settings["reserve_gb"] * GB)
        _folder(self.root)
        disk = os.statvfs(self.root)
        free = disk.f_bavail * disk.f_frsize
        if fetched + unpacked + left > free:
            raise Full("no room: below %s %s are free, it needs %s (to fetch %s, unpacked about %s, to be left free %s)"
                       % (self.root, in_words(free), in_words(fetched + unpacked + left), in_words(fetched),
                          in_words(unpacked), in_words(left)))

    def _fetch(self, env, missing):
        if missing:
            self.say("%s: fetching %d packages, %s"
                     % (env["id"], len(missing), in_words(sum(package["size"] for package in missing))))
        problems = []
        for package in missing:
            path = archive(self.root, package)
            _folder(os.path.dirname(path))
            try:
                fetch(address(package, env["channels"], self.settings["mirror"]), path, package,
                      self.settings["timeout_seconds"])
            except Full:
                raise
            except Problem as problem:
                problems.append("%s" % problem)
                if len(problems) > 2:
                    break
        if problems:
            raise Problem(some(problems, 1))

    def _link(self, env, prefix):
        # Of its own, on the same file system: files are linked from there, and two prefixes never share one.
        cache = os.path.join(self.root, ".packages", "unpacked")
        shutil.rmtree(cache, ignore_errors=True)
        _folder(cache)
        packages = [dict(package, archive=archive(self.root, package), channel=env["channels"][package["channel"]])
                    for package in env["packages"]]
        request = {"prefix": prefix, "cache": cache, "platform": env["platform"], "packages": packages}
        python, library = self.settings["python"], self._library()
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": cache,
                       "PYTHONPATH": library,
                       # Software collections have their libraries beside bin, and do not always find them.
                       "LD_LIBRARY_PATH": os.path.join(os.path.dirname(os.path.dirname(python)), "lib64")}
        try:
            code, _, errors = run([python, "-B", "-s", PROGRAM], environment, json.dumps(request).encode("utf-8"))
        finally:
            shutil.rmtree(cache, ignore_errors=True)
        said = one_line(errors)
        if code != 0:
            if NO_ROOM.search(said):
                raise Full(HALF)
            raise Problem("linking it failed (%s): %s" % (code, said or "nothing was said"))

    def _library(self):
        """Return the folder of py-rattler, unpacked from its wheel."""
        wheel = self.settings["wheel"]
        if not wheel:
            return self.settings["library"]
        folder = os.path.join(self.settings["library"], wheel["sha256"][:12])
        if not os.path.isdir(folder):
            if not os.path.isfile(wheel["path"]):
                raise Problem("%s is not there: roll out the role environments" % wheel["path"])
            checksum = sha256_of(wheel["path"])
            if checksum != wheel["sha256"]:
                raise Problem("%s has sha256 %s, declared is %s: it is not used"
                              % (wheel["path"], checksum, wheel["sha256"]))
            new = folder + ".new"
            shutil.rmtree(new, ignore_errors=True)
            with contextlib.closing(zipfile.ZipFile(wheel["path"])) as archived:
                archived.extractall(new)
            os.rename(new, folder)
        return folder

    def _post_link(self, env, prefix):
        """Run the post-link scripts that are declared; refuse those that nobody has decided about."""
        chosen = env["post_link"]
        scripts = {}
        for name in inside(os.path.join(prefix, "conda-meta")):
            meta = load(os.path.join(prefix, "conda-meta", name)) if name.endswith(".json") else {}
            if "bin/.%s-post-link.sh" % meta.get("name") in meta.get("files", []):
                scripts[meta["name"]] = meta
        undecided = sorted(set(scripts) - set(chosen["run"]) - set(chosen["skip"]))
        if undecided:
            raise Problem("%s has a post-link script, which would run as root: read bin/.%s-post-link.sh in it, "
                          "and put the name into post_link.run or post_link.skip" % (some(undecided), undecided[0]))
        for name in sorted(set(scripts) & set(chosen["run"])):
            environment = dict(
                chosen["environment"], PREFIX=prefix, PKG_NAME=name, PKG_VERSION=scripts[name]["version"],
                PKG_BUILDNUM=str(scripts[name]["build_number"]), HOME="/", LANG="C",
                PATH=os.path.join(prefix, "bin") + ":/usr/bin:/bin")
            script = os.path.join(prefix, "bin", ".%s-post-link.sh" % name)
            code, output, errors = run(["/bin/bash", script], environment, limit_seconds=IMPORT_SECONDS)
            if code != 0:
                raise Problem("the post-link script of %s failed (%s): %s"
                              % (name, code, one_line(errors or output) or "nothing was said"))

    def _finish(self, env, prefix, owner):
        tighten(prefix)
        if env["python"]:
            fault = status.python(env, prefix)
            if fault:
                raise Problem(fault)
            self._compile(prefix)
        fault = status.faults(env, prefix)
        if fault:
            raise Problem(fault)
        activation.record(prefix, env["id"])
        self._imports(env, prefix)
        record = {"id": env["id"], "owner": owner, "digest": env["digest"], "python": env["python"],
                  "manifest": manifest.write(prefix), "time": time.time(), "made": time.strftime("%Y-%m-%d %H:%M:%S")}
        save(hidden(prefix, "verified.json"), {"words": "", "time": record["time"], "at": record["made"]})
        save(hidden(prefix, "record.json"), record)
        os.unlink(hidden(prefix, "building"))

    def _compile(self, prefix):
        """Compile what noarch packages brought: users cannot write there, and would compile at each start."""
        program = os.path.join(prefix, "bin", "python")
        folders = [os.path.join(prefix, "lib", name, "site-packages") for name in inside(os.path.join(prefix, "lib"))
                   if name.startswith("python")]
        for folder in folders:
            # It writes, so root runs it: the interpreter and its own library (-S: no .pth file of a package), not
            # what it compiles. A file that is not for this Python is not a fault: packages carry such files.
            run([program, "-E", "-S", "-s", "-m", "compileall", "-q", folder], {"PATH": "/usr/bin:/bin", "LANG": "C"})

    def _imports(self, env, prefix):
        if not env["imports"]:
            return
        changes = load(hidden(prefix, "activate.json"))
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/"}
        environment.update(changes["set"])
        for name, folders in changes["prepend"].items():
            environment[name] = ":".join(folders + ([environment[name]] if name in environment else []))
        words = "; ".join("import " + name for name in env["imports"])
        code, _, errors = run_theirs([os.path.join(prefix, "bin", "python"), "-B", "-s", "-c", words], environment,
                                     IMPORT_SECONDS)
        if code != 0:
            raise Problem("%s failed (%s): %s" % (words, code, one_line(errors, 200)))

    # ------------------------------------------------------------ older ones
    def _old(self, environments, owner, remove_ok, used):
        """Keep older prefixes; remove what is beyond them, has been for a while, and is in no use, with permission.

        A job that has just loaded its module may have no process yet that says so.
        """
        declared = {env["link"]: env for env in environments}
        in_use = set(used) | set(status.used(self.root))
        names = sorted({os.path.dirname(link) for link in declared} | set(self._folders(owner)))
        for folder in names:
            for name in inside(folder):
                path = os.path.join(folder, name)
                record = record_of(path) if _is_own(path) else None
                if record is None or record.get("owner") != owner:
                    continue
                link = os.path.join(folder, name.rsplit("." + record["digest"], 1)[0])
                surplus = self._surplus(path, link, declared.get(link))
                early = self._early(path, surplus)
                if not surplus:
                    continue
                below = path[len(self.root) + 1:]
                if below in in_use or early or not remove_ok:
                    why = ": processes use it" if below in in_use else early
                    self.done["kept"].append(below + why)
                    continue
                if not self.checking:
                    if link not in declared and link_of(link) == name:
                        os.unlink(link)
                    # First out of the way: half a prefix is not one.
                    os.rename(path, path + ".removed")
                    shutil.rmtree(path + ".removed")
                self.done["removed"].append(below)
        self._archives(environments)

    def _surplus(self, path, link, env):
        """Say whether a finished prefix is more than what is to be kept."""
        name = os.path.basename(path)
        if env is None:
            return True
        if link_of(link) == name:
            return False
        others = [prefix for prefix, record in self.prefixes(env) if record and prefix != link_of(link)]
        return name not in others[len(others) - self.settings["keep"]:] if self.settings["keep"] else True

    def _early(self, path, surplus):
        """Note since when a prefix is more than is kept; return in words that it is not long enough, "" when it is."""
        note = hidden(path, "surplus.json")
        if not surplus:
            if os.path.exists(note) and not self.checking:
                os.unlink(note)
            return ""
        seen = load(note)
        since, grace = seen["since"] if seen else time.time(), self.settings["grace_hours"] * 3600
        if not seen and not self.checking:
            save(note, {"since": since})
        if seen and time.time() - since >= grace:
            return ""
        return ": not before " + time.strftime("%Y-%m-%d %H:%M", time.localtime(since + grace))

    def _folders(self, owner):
        for name in inside(self.root):
            folder = os.path.join(self.root, name)
            if not name.startswith(".") and os.path.isdir(folder) and not os.path.islink(folder):
                for prefix in inside(folder):
                    if not os.path.islink(os.path.join(folder, prefix)):
                        record = record_of(os.path.join(folder, prefix))
                        if record and record.get("owner") == owner:
                            yield folder
                            break

    def _archives(self, environments):
        """Leave archives alone: an older lock file may be wanted back. Only leftovers of unpacking go."""
        if not self.checking:
            shutil.rmtree(os.path.join(self.root, ".packages", "unpacked"), ignore_errors=True)


def switch(link, name):
    """Let a link lead to a prefix beside it, at once."""
    new = "%s.new.%d" % (link, os.getpid())
    if os.path.lexists(new):
        os.unlink(new)
    os.symlink(name, new)
    os.rename(new, link)


def tighten(prefix):
    """Nobody but root may write, everybody may read: packages carry the modes of who built them."""
    top = prefix.encode("utf-8") if str is not bytes else prefix
    for folder, folders, files in os.walk(top):
        for path in [os.path.join(folder, name) for name in folders + files] + ([top] if folder == top else []):
            seen = os.lstat(path)  # asked once: each question goes over the network
            if stat.S_ISLNK(seen.st_mode):
                continue
            if seen.st_uid != os.getuid():
                os.chown(path, os.getuid(), os.getgid())
            mode = stat.S_IMODE(seen.st_mode)
            wanted = (mode & ~0o6022) | (0o555 if stat.S_ISDIR(seen.st_mode) or mode & 0o100 else 0o444)
            if wanted != mode:
                os.chmod(path, wanted)


def verify(env):
    """Read a whole environment again and note the result beside it; return it in words, "" when all is right."""
    prefix = status.current(env)
    if prefix is None or record_of(prefix) is None:
        raise Problem(status.wrong(env) or "%s is not finished" % prefix)
    try:
        differences = manifest.compare(prefix)
    except EnvironmentError as error:  # a disk, or a file system that went away: nothing is known of the rest
        raise Problem("%s: cannot be read: %s" % (prefix, error))
    words = manifest.in_words(differences, manifest.owners(prefix))
    save(hidden(prefix, "verified.json"),
         {"words": words, "time": time.time(), "at": time.strftime("%Y-%m-%d %H:%M:%S"),
          "wrong": {kind: paths[:100] for kind, paths in differences.items()}})
    return words


def _is_own(path):
    """Whether it is a folder of root's: what root removes or writes into."""
    seen = os.lstat(path)
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid()


def _name(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "account %d" % uid


def _folder(path):
    """Make a folder for root, which everybody may read."""
    if not os.path.isdir(path):
        try:
            os.makedirs(path, 0o755)
        except (IOError, OSError) as error:
            raise Problem("%s cannot be made: %s" % (path, native(text(error.strerror))))
