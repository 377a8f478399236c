# -*- coding: utf-8 -*-
"""Compares what is exported with what is declared: a line in words for each difference. Python 2.7 and 3.

exported.py DECLARED      DECLARED: JSON, a list of lines as in /etc/exports

Asks `exportfs -v`, which prints what the server lets clients do now.
"""

from __future__ import absolute_import, division, print_function

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
        found = LINE.match(line.strip())
        if found:
            path, client, options = found.groups()
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
    """Return a sentence for each difference. Pure."""
    told = []
    for export in sorted(set(declared) | set(exported)):
        path, client = export
        if export not in exported:
            told.append("%s is not exported to %s" % export)
        elif export not in declared:
            whom = "everybody" if client == "*" else client
            told.append("%s is exported to %s, which nobody declared" % (path, whom))
        elif declared[export] != exported[export]:
            told.append("%s to %s: %s, declared %s" % (
                path, client, ",".join(sorted(exported[export] - declared[export])) or "nothing",
                ",".join(sorted(declared[export] - exported[export])) or "nothing"))
    return told


def main(words):
    """Print the differences; exit status 3 when exportfs does not answer."""
    try:
        process = subprocess.Popen(
            ["exportfs", "-v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True
        )
    except OSError as error:
        sys.stderr.write("exportfs: %s\n" % error)
        return 3
    said, trouble = process.communicate()
    if process.returncode != 0:
        sys.stderr.write("exportfs ended with %d: %s\n" % (process.returncode, " ".join(trouble.split())))
        return 3
    for line in differences(parse(json.loads(words[0])), parse(said.splitlines())):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
