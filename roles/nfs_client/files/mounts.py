# -*- coding: utf-8 -*-
"""Compares mounts of NFS with the declared ones: a line in words for each difference. Python 2.7 and 3.

mounts.py DECLARED            what differs from the declaration, or is this role's and not declared any more
mounts.py DECLARED others     what somebody else mounts, or has in fstab
mounts.py DECLARED json       the paths of both, and those to be mounted anew: {ours, others, foreign, otherwise, plain}

DECLARED: JSON with mounts (by path: source, type, options), binds (by path: source), type, kept, mark, fstab_options.
Reads /proc/self/mounts and /etc/fstab alone: to look at a mount itself is to wait for its server.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import re
import sys

NFS = ("nfs", "nfs4")
# Options of every file system, which each type shows in /proc/mounts.
FLAGS = ("nosuid", "nodev", "noexec")
# Of each group a mount has one.
CHOICES = {"ro": "rw", "rw": "rw", "hard": "hard", "soft": "hard", "softerr": "hard"}


def plain(text):
    """Undo the octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda hit: chr(int(hit.group(1), 8)), text)


def rows(text):
    """Return [(path, source, type, options)] of a table in the form of fstab."""
    listed = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and not line.startswith("#"):
            listed.append((plain(fields[1]), plain(fields[0]), fields[2], fields[3].split(",")))
    return listed


def is_below(path, folder):
    """Is this path below a folder?"""
    return path.startswith(folder.rstrip("/") + "/")


def compare(declared, mounts_text, fstab_text):
    """Return {ours, others, foreign, otherwise, lines, plain}. Pure.

    ours, others: paths that are not declared. plain: paths without automount. lines: sentences.
    foreign, otherwise: sentence by declared path; foreign are somebody else's, from another source.
    """
    types = set(NFS) | {declared["type"]}
    table, fstab = rows(mounts_text), rows(fstab_text)
    live = [row for row in table if row[2] in types and row[0] != "/"]  # the root of a diskless node does not count
    saved = [row for row in fstab if row[2] in types and row[0] != "/"]
    automounted = [path for path, _, kind, _ in table if kind == "autofs"]
    ours = [path for path, _, kind, options in fstab if declared["mark"] in options
            and path not in declared["mounts" if kind in types else "binds"]]

    foreign = of_others_at(declared, types, table, fstab)
    known = set(declared["mounts"]) | set(declared["binds"]) | set(ours)
    by_others = [row[0] for row in saved] + [row[0] for row in live if not has_parent(row, live, table)]
    kept = [folder.rstrip("/") for folder in declared["kept"]]
    others = [path for path in by_others if path not in known
              and not any(path == folder or is_below(path, folder) for folder in kept)]

    otherwise, lines = {}, []
    for path, mount in sorted(declared["mounts"].items()):
        if path in foreign:
            continue
        words = mount["options"] + declared["fstab_options"]
        if [row[1:] for row in saved if row[0] == path] != [(mount["source"], mount["type"], words)]:
            lines.append("%s has another line in /etc/fstab" % path)
        for _, source, kind, options in [row for row in live if row[0] == path][-1:]:
            wrong = differing(mount["options"], options, kind)
            if source != mount["source"]:
                otherwise[path] = "%s is mounted from %s, declared %s" % (path, source, mount["source"])
            elif wrong:
                otherwise[path] = "%s is mounted with %s" % (path, ", ".join(wrong))
            if source == mount["source"]:
                lines += by_another_address(path, source, options)
    without = sorted({row[0] for row in live if row[0] in declared["mounts"]} - set(automounted) - set(foreign))
    undeclared = {"ours": sorted(set(ours)), "others": sorted(set(others))}
    return dict(undeclared, foreign=foreign, otherwise=otherwise, lines=lines, plain=without)


def of_others_at(declared, types, table, fstab):
    """Return {declared path: sentence} where somebody else has another source, mounted or in fstab."""
    marked = [path for path, _, _, options in fstab if declared["mark"] in options]
    sentences = {}
    for path, wanted in sorted(dict(declared["mounts"], **declared["binds"]).items()):
        if path in marked:
            continue
        live = [row[1:3] for row in table if row[0] == path and row[1:3] != ("systemd-1", "autofs")]
        # What is bound shows the disk that it is on.
        seen = [source for source, kind in live[-1:] if path in declared["mounts"] or kind in types]
        seen += [source for at, source, _, _ in fstab if at == path]
        other = [source for source in seen if source != wanted["source"]]
        if other:
            sentences[path] = "%s belongs to somebody else, from %s, declared %s" % (path, other[0], wanted["source"])
    return sentences


def by_another_address(path, source, options):
    """Return [sentence] where the kernel uses another address of the server than the one it was mounted by.

    It does so where it has a mount of the same server by that one: since version 4.1 it knows a server again (RFC 5661,
    2.10.5, trunking). To mount it anew would change nothing.
    """
    declared = source.rpartition(":/")[0].strip("[]")
    used = [word.partition("=")[2] for word in options if word.startswith("addr=")]
    if not used or used[0] == declared or not re.match(r"[0-9.]+$|[0-9a-fA-F:]*:[0-9a-fA-F:]*$", declared):
        return []
    return ["%s goes by %s, declared %s: the first mount of this server here is by that address" % (
        path, used[0], declared)]


def has_parent(row, live, table):
    """Did the kernel mount it, below a mount of the same server, or the daemon of autofs?"""
    path, source = row[:2]
    server = source.rpartition(":/")[0]
    if any(is_below(path, other[0]) and other[1].rpartition(":/")[0] == server for other in live):
        return True
    # systemd's automounts are made of fstab, where each has a line of its own.
    return any(
        kind == "autofs" and maker != "systemd-1" and (path == folder or is_below(path, folder))
        for folder, maker, kind, _ in table
    )


def differing(declared, held, kind):
    """Return words for each declared option that a mount of this type shows otherwise."""
    wanted, has = shown(declared, kind), shown(held, kind)
    told = []
    for what, word in sorted(wanted.items()):
        is_minor = what == "vers" and has.get(what, "").startswith(word + ".")  # vers=4 is any of them
        if has.get(what) != word and not is_minor:
            told.append("%s, declared %s" % (has.get(what, "no %s" % what), word))
    told += ["no %s" % flag for flag in FLAGS if flag in declared and flag not in held]
    return told + [flag for flag in FLAGS[2:] if flag in held and flag not in declared]


def shown(words, kind):
    """Return {what: option} of the options that the kernel shows; of NFS more than of other types."""
    held = {}
    for word in words:
        key, equals, value = word.partition("=")
        if word in CHOICES:
            held[CHOICES[word]] = word
        elif key in ("vers", "nfsvers", "sec") and equals:
            held[key[-4:]] = "%s=%s" % (key[-4:], value)
    return held if kind in NFS else {what: held[what] for what in ("rw",) if what in held}


def read(path):
    """Return the text of a file, or nothing where it is not there."""
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except IOError:
        return ""
    return content if str is bytes else os.fsdecode(content)  # a user's mount may have a name that is not text


def main(words):
    """Print what differs."""
    differences = compare(json.loads(words[0]), read("/proc/self/mounts"), read("/etc/fstab"))
    if words[1:] == ["json"]:
        lists = {key: sorted(differences[key]) for key in ("otherwise", "foreign")}
        print(json.dumps(dict(differences, **lists)))
        return
    if words[1:] == ["others"]:
        told = ["%s is mounted by NFS, or in /etc/fstab" % path for path in differences["others"]]
        told += sorted(differences["foreign"].values())
    else:
        told = sorted(differences["otherwise"].values()) + differences["lines"]
        bare = [path for path in differences["plain"] if path not in differences["otherwise"]]
        told += ["%s is mounted without its automount" % path for path in bare]
        told += ["%s is not in the model any more" % path for path in differences["ours"]]
    for line in told:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
