# -*- coding: utf-8 -*-
"""Compares mounts of NFS with the declared ones: a line in words for each difference. Python 2.7 and 3.

mounts.py DECLARED [json]     DECLARED: JSON with mounts (by path: source, options), type, kept, fstab_options

Reads /proc/self/mounts and /etc/fstab alone: whoever looks at a mount itself waits for its server. With `json` prints
{undeclared, otherwise, plain}: paths that nobody declared, mounted otherwise, mounted without an automount.
"""

from __future__ import absolute_import, division, print_function

import json
import re
import sys

NFS = ("nfs", "nfs4")
# Options of every file system, which each type shows in /proc/mounts.
FLAGS = ("ro", "rw", "nosuid", "nodev", "noexec")


def plain(text):
    """Undo the octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda hit: chr(int(hit.group(1), 8)), text)


def rows(text, types):
    """Return {path: [(source, type, options)]} of a table in the form of fstab, for these types."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and not line.startswith("#") and fields[2] in types:
            found.setdefault(plain(fields[1]), []).append((plain(fields[0]), fields[2], fields[3].split(",")))
    return found


def compare(declared, mounts_text, fstab_text):
    """Return (undeclared paths, sentence by path mounted otherwise, other sentences, paths without automount). Pure."""
    types = set(NFS) | {declared["type"]}
    live, saved = rows(mounts_text, types), rows(fstab_text, types)
    automounts = rows(mounts_text, ("autofs",))
    undeclared = sorted((set(live) | set(saved)) - set(declared["mounts"]) - set(declared["kept"]))
    otherwise, lines = {}, []
    for path, mount in sorted(declared["mounts"].items()):
        words = mount["options"] + declared["fstab_options"]
        if saved.get(path) != [(mount["source"], "nfs4", words)]:
            lines.append("%s has another line in /etc/fstab" % path)
        for source, kind, options in live.get(path, [])[-1:]:
            wanted = flags(mount["options"])
            wrong = wanted - set(options) | flags(options) - wanted - {"nosuid", "nodev"}
            if source != mount["source"]:
                otherwise[path] = "%s is mounted from %s, declared %s" % (path, source, mount["source"])
            elif kind != declared["type"]:
                otherwise[path] = "%s is mounted as %s, declared %s" % (path, kind, declared["type"])
            elif wrong:
                otherwise[path] = "%s is mounted with other options: %s" % (path, ",".join(sorted(wrong)))
    without = [path for path in sorted(live) if path in declared["mounts"] and path not in automounts]
    return undeclared, otherwise, lines, without


def flags(words):
    """Return the options that every file system has."""
    return set(words) & set(FLAGS)


def read(path):
    """Return the text of a file, or nothing where it is not there."""
    try:
        with open(path) as stream:
            return stream.read()
    except IOError:
        return ""


def main(words):
    """Print what differs."""
    undeclared, otherwise, lines, without = compare(json.loads(words[0]), read("/proc/self/mounts"), read("/etc/fstab"))
    if words[1:] == ["json"]:
        print(json.dumps({"undeclared": undeclared, "otherwise": sorted(otherwise), "plain": without}))
        return
    for path in undeclared:
        print("%s is mounted by NFS, or in /etc/fstab, and nobody declared it" % path)
    for line in sorted(otherwise.values()) + lines:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
