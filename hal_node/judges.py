# -*- coding: utf-8 -*-
"""Who judges a file before it replaces one, by where it goes: its own program reads a copy of it.

Copies lie in a folder of ours, so what a program says of that folder is said of them; what is there without them is not
judged a second time. A program that is not installed yet judges nothing.

Most programs end with 0, or with something else for a poor reason (a command that a package brings later), so their
words about a copy count. A canary proves that such a program speaks at all: a file beside the copies with a line that
it must complain of. Where it does not, nothing was judged, and that is said: a program may not work where an image is
made, or may use other words in a release that nobody has seen.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import shutil
import tempfile

from ansible.module_utils.common.text.converters import to_bytes, to_native
from .printable import shown

MYPY = False
if MYPY:
    from typing import Any, Iterable, Sequence  # noqa: F401  in comments

UNITS = "/etc/systemd/system/"
FIREWALLD = "/etc/firewalld/"
MOST_WORDS = 5  # lines of a program that are shown


class Judge(object):
    """A program with its options, called for each file: its words about a copy are against it, whatever the status.

    `canary`: name and text of a file that it has to complain of. A judge that has one gets all files at once. Without
    one it has judged when it ends with 0. `by_status`: words that name no copy are against it, too.
    """

    canary = None  # type: tuple[str, str] | None
    by_status = False

    def __init__(self, *argv):
        # type: (*str) -> None
        self.argv = argv

    def name(self, path):
        # type: (str) -> str
        """Return where the copy of a destination lies below the folder: files of one call may have the same name."""
        return os.path.basename(path) if self.canary else path.lstrip("/")

    def beside(self, names):
        # type: (Iterable[str]) -> dict[str, str]
        """Return what else has to be there: {name below the folder: text}."""
        return dict([self.canary]) if self.canary else {}

    def calls(self, folder, names):
        # type: (str, list[str]) -> list[list[str]]
        """Return the words after the program, a list for each call; they are run in the folder."""
        return [list(self.argv[1:]) + [name] for name in names]  # luac cuts a long path short

    def about(self, copy, name):
        # type: (str, str) -> str
        """Return a pattern of how a line names the copy."""
        return r"(?<![^\[ ])(?:%s|%s)(?=:| line )" % (re.escape(copy), re.escape(name))

    def counts(self, line):
        # type: (str) -> bool
        """Return whether words about a copy are against it."""
        return True


class Logrotate(Judge):
    """logrotate 3.8.6 ends with 0 for an option that it does not know (config.c: "unknown option '%s' -- ignoring
    line") and for a file whose mode it does not like. With -d it writes nothing but the state, which is ours."""

    canary = ("hal-canary", "canary\n")

    def calls(self, folder, names):
        # type: (str, list[str]) -> list[list[str]]
        """The canary is the last one: 3.8.6 stops at a file that it cannot read at all."""
        files = [os.path.join(folder, name) for name in names + [self.canary[0]]]
        return [list(self.argv[1:]) + ["-s", os.path.join(folder, "state")] + files]


class Modprobe(Judge):
    """kmod 20 leaves a line out and ends with 0 (libkmod-config.c: "%s line %u: ignoring bad line starting with")."""

    canary = ("hal-canary.conf", "canary\n")

    def calls(self, folder, names):
        # type: (str, list[str]) -> list[list[str]]
        """It reads the folder, and prints what it has read."""
        return [list(self.argv[1:]) + ["-C", folder]]


class Systemd(Judge):
    """systemd-analyze verify. 219 ends with 0 whatever it finds; 252 ends with 1 for a program that is not there yet.

    What they say of a line begins with its file (conf-parser.c: 219 "[FILE:LINE] ...", 252 "FILE:LINE: ..."); of a unit
    that they would not start it ends with "Refusing." or is a "fatal error". A drop-in is read with an empty unit, so
    only its lines count: what it is for may not be installed, or be somebody else's.
    """

    canary = ("hal-canary.service", "[Service]\nType=oneshot\nExecStart=/bin/true\nCanary=1\n")
    # Of 252: a spelling that works, and will not for ever.
    advice = re.compile(r"[;.] [Pp]lease |, this is not safe!")

    def name(self, path):
        # type: (str) -> str
        """A template is read as an instance: 219 takes no other."""
        return path[len(UNITS):].replace("@.", "@canary.")

    def beside(self, names):
        # type: (Iterable[str]) -> dict[str, str]
        """The empty units of drop-ins, too."""
        stubs = {os.path.dirname(name)[:-len(".d")] for name in names if "/" in name} - set(names)
        return dict([self.canary] + [(name, "[Unit]\n") for name in stubs])

    def calls(self, folder, names):
        # type: (str, list[str]) -> list[list[str]]
        """All at once: a timer names its service."""
        units = [name for name in names if "/" not in name] + sorted(self.beside(names))
        return [list(self.argv[1:]) + [os.path.join(folder, name) for name in units]]

    def about(self, copy, name):
        # type: (str, str) -> str
        """A line of the file; of a unit the whole, too."""
        line = r"(?<![^\[ ])%s(?=:)" % re.escape(copy)
        return r"%s|^%s(?=[:' ].*(?:Refusing|fatal error))" % (line, re.escape(name))

    def counts(self, line):
        # type: (str) -> bool
        """Return whether it is more than advice."""
        return not self.advice.search(line)


class Firewalld(Judge):
    """firewall-offline-cmd of 0.6.3 has the same switches. It reads the new files, and of the rest what packages have:
    what they say together with zones that stay is asked when all are there (role firewall)."""

    by_status = True

    def name(self, path):
        # type: (str) -> str
        """Zones have a folder of their own."""
        return path[len(FIREWALLD):]

    def beside(self, names):
        # type: (Iterable[str]) -> dict[str, str]
        """Without it there would be words about its absence."""
        return {"firewalld.conf": "DefaultZone=public\n"}

    def calls(self, folder, names):
        # type: (str, list[str]) -> list[list[str]]
        """All at once."""
        return [list(self.argv[1:]) + ["--system-config", folder]]


# A destination, and who judges it; the first one that fits.
JUDGES = (
    (r"/etc/systemd/system/(?:[^/]+\.d/[^/]+\.conf|[^/]+\.(?:automount|mount|path|service|socket|timer))",
     Systemd("systemd-analyze", "verify")),
    (r"/etc/logrotate\.d/[^/]+", Logrotate("logrotate", "-d")),
    (r"/etc/modprobe\.d/[^/]+\.conf", Modprobe("modprobe", "--showconfig")),
    (r"/etc/firewalld/(?:direct|zones/[^/]+)\.xml", Firewalld("firewall-offline-cmd", "--check-config")),
    (r"/etc/profile\.d/[^/]+\.sh", Judge("sh", "-n")),
    (r"/etc/lmod/[^/]+\.lua", Judge("luac", "-p")),
)
SCRIPT = (b"#!/bin/sh\n", Judge("sh", "-n"))


def judged(module, files):
    # type: (Any, Sequence[tuple[str, bytes]]) -> list[list[str]]
    """Return what programs have against files, before anything is written, and which did not judge: lines of words.

    `files`: (destination, bytes) of those that change. Raises OSError when there is no place for copies.
    """
    tried, complaints, unjudged = [], [], []
    for path, content in files:
        judge = judge_of(path, content)
        if judge and judge not in tried:
            tried.append(judge)
    for judge in tried:
        program = module.get_bin_path(judge.argv[0])
        if program:
            mine = [(path, content) for path, content in files if judge_of(path, content) is judge]
            against, doubts = _asked(module, judge, program, mine)
            complaints.extend(against)
            unjudged.extend(doubts)
    return [[to_native(shown(line)) for line in lines] for lines in (complaints, unjudged)]


def judge_of(path, content):
    # type: (str, bytes) -> Judge | None
    """Return who judges what goes there, or None: nobody does."""
    for where, judge in JUDGES:
        if re.match(where + r"\Z", path):
            return judge
    return SCRIPT[1] if content.startswith(SCRIPT[0]) else None


def _asked(module, judge, program, files):
    # type: (Any, Judge, str, Sequence[tuple[str, bytes]]) -> tuple[list[str], list[str]]
    # systemd names drop-ins by their resolved path.
    folder = os.path.realpath(tempfile.mkdtemp(prefix="judge", dir=module.tmpdir))
    try:
        names = {judge.name(path): path for path, _content in files}
        for path, content in files:
            _put(folder, judge.name(path), content)
        for name, text in judge.beside(names).items():
            _put(folder, name, to_bytes(text))
        environment = {"LC_ALL": "C", "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_LOG_LEVEL": "notice",
                       "SYSTEMD_UNIT_PATH": folder}  # 219 looks at the node, too, and at our folder first
        complaints, unjudged = [], []  # type: list[str], list[str]
        for words in judge.calls(folder, sorted(names)):
            status, out, err = module.run_command([program] + words, environ_update=environment, cwd=folder)
            against, speaks = _against(judge, folder, names, status, (out + err).splitlines())
            (complaints if speaks else unjudged).extend(against)
        return complaints, unjudged
    finally:
        shutil.rmtree(folder)


def _against(judge, folder, names, status, lines):
    # type: (Judge, str, dict[str, str], int, list[str]) -> tuple[list[str], bool]
    """Return (lines, whether they are against the files): words about copies by their destinations, or why it cannot be
    told."""
    against = []  # type: list[str]
    for name, path in sorted(names.items()):
        about = re.compile(judge.about(os.path.join(folder, name), name))
        shown_as = path.replace("\\", r"\\")
        against.extend(about.sub(shown_as, line) for line in lines if about.search(line) and judge.counts(line))
    if against:
        return ["%s: %s" % (judge.argv[0], line) for line in against[:MOST_WORDS]], True
    if judge.canary:
        # By its whole path: systemd-analyze also says of each unit by name that it could not be started.
        canary = r"(?<![^\[ ])%s(?=:| line )" % re.escape(os.path.join(folder, judge.canary[0]))
        judges = any(re.search(canary, line) for line in lines)
    else:
        judges = status == 0
    if judges:
        return [], True
    said = "; ".join(lines[-MOST_WORDS:]).replace(os.path.join(folder, ""), "") or "nothing"
    return ["%s %s %s: it ended with %d and said %s"
            % (judge.argv[0], "refuses" if judge.by_status else "did not judge", ", ".join(sorted(names.values())),
               status, said)], judge.by_status


def _put(folder, name, content):
    # type: (str, str, bytes) -> None
    path = os.path.join(folder, name)
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path))
    with open(path, "wb") as stream:
        stream.write(content)
    os.chmod(path, 0o644)
