# -*- coding: utf-8 -*-
"""Compares what is exported with what is declared: a line in words for each difference. Python 2.7 and 3.

exported.py DECLARED            what is declared and not exported, or exported otherwise
exported.py DECLARED others     what is exported, now or at the next boot, and nobody declared

DECLARED: JSON, a list of lines as in /etc/exports. What is exported now is what `exportfs -v` prints.
"""

from __future__ import absolute_import, division, print_function

import glob
import io
import json
import re
import subprocess
import sys

LINE = re.compile(r'"?([^"\s]+)"?\s+([^\s(]+)\((.*)\)$')
# Of each pair the one that holds where neither is said: exports(5) of nfs-utils 1.3.0.
DEFAULTS = (
    ("ro", "rw"), ("sync", "async"), ("root_squash", "no_root_squash"), ("no_all_squash", "all_squash"),
    ("secure", "insecure"), ("wdelay", "no_wdelay"), ("hide", "nohide"), ("no_subtree_check", "subtree_check"),
    ("sec=sys", "sec="), ("fsid=", "fsid="), ("anonuid=65534", "anonuid="), ("anongid=65534", "anongid="),
    ("mountpoint", "mountpoint="), ("acl", "no_acl"), ("nocrossmnt", "crossmnt"),
)
# Said by exportfs where they are not the default alone: both sides get them so.
OFTEN_UNSAID = ("fsid=", "anonuid=65534", "anongid=65534", "mountpoint", "acl", "nocrossmnt")


def parse(lines):
    """Return the options of each export, {(path, client): set}."""
    exports = {}
    # exportfs puts the client of a long path on a line of its own.
    for line in re.sub(r"\n\s+", " ", "\n".join(lines)).splitlines():
        match = LINE.match(line.strip())
        if match:
            path, client, options = match.groups()
            exports[path, "*" if client == "<world>" else client] = complete(options.split(","))
    return exports


def complete(words):
    """Return the options that hold, defaults included. Of two that contradict each other the last one counts."""
    words = [word.replace("mp=", "mountpoint=") for word in words if word]
    held = set()
    for default, other in DEFAULTS:
        said = [word for word in words if word in (default, other) or other.endswith("=") and word.startswith(other)]
        held.add(said[-1] if said else default)
    return held - set(OFTEN_UNSAID)


def differences(declared, exported):
    """Return a sentence for each declared export that is missing, or has other options. Pure."""
    told = []
    for export in sorted(declared):
        if export not in exported:
            told.append("%s is not exported to %s" % (export[0], export[1]))
        elif declared[export] != exported[export]:
            told.append("%s to %s: %s, declared %s" % (
                export[0], export[1], ",".join(sorted(exported[export] - declared[export])) or "nothing",
                ",".join(sorted(declared[export] - exported[export])) or "nothing"))
    return told


def others(lines, exported, files):
    """Return a sentence for each export, and each line of files ({path: text}), that is not among these. Pure."""
    told = []
    for path, client in sorted(set(exported) - set(parse(lines))):
        told.append("%s is exported to %s" % (path, "everybody" if client == "*" else client))
    lines = [line.split() for line in lines]
    for name, text in sorted(files.items()):
        for line in text.replace("\\\n", " ").splitlines():
            words = re.sub(r"(^|\s)#.*", "", line).split()
            if words and words not in lines:
                told.append("%s: %s" % (name, " ".join(words)))
    return told


def saved():
    """Return the files that the next boot exports from, {path: text}."""
    files = {}
    for path in glob.glob("/etc/exports") + glob.glob("/etc/exports.d/*.exports"):
        with io.open(path, encoding="utf-8", errors="replace") as stream:
            files[path] = stream.read()
    return files


def main(words):
    """Print the differences; exit status 3 when exportfs does not answer."""
    try:
        process = subprocess.Popen(["exportfs", "-v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        sys.stderr.write("exportfs: %s\n" % error)
        return 3
    said, trouble = (text.decode("utf-8", "replace") for text in process.communicate())
    if process.returncode != 0:
        write(sys.stderr, "exportfs ended with %d: %s" % (process.returncode, " ".join(trouble.split())))
        return 3
    lines, exported = json.loads(words[0]), parse(said.splitlines())
    told = others(lines, exported, saved()) if words[1:] == ["others"] else differences(parse(lines), exported)
    for line in told:
        write(sys.stdout, line)
    return 0


def write(stream, line):
    """In UTF-8, whatever the locale says."""
    getattr(stream, "buffer", stream).write(("%s\n" % line).encode("utf-8", "replace"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
