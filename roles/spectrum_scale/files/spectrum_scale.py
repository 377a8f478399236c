# -*- coding: utf-8 -*-
"""Spectrum Scale on this node, for its units and for what the role promises. Python 2.7 and 3.

hal-spectrum-scale mount SECONDS NAME=FOLDER...  wait for the daemon, mount what is not mounted; at boot, before slurmd
hal-spectrum-scale gpl                           build the GPL layer if the running kernel has none; before the daemon
hal-spectrum-scale effective NODE                attributes for which this node's daemon has not the configured value
hal-spectrum-scale pending NODE                  those of them that wait for a restart of the daemon
hal-spectrum-scale restarted NODE                those of them that a restart did not change: none is pending for them
hal-spectrum-scale config DECLARED               attributes that are configured otherwise than declared
hal-spectrum-scale by-hand DECLARED              attributes that nodes have of their own and nobody declared
hal-spectrum-scale file-systems DECLARED         sizes and mounts of file systems that are otherwise than declared
hal-spectrum-scale members ADDRESSES             nodes that are not in the cluster

NODE, DECLARED and ADDRESSES are JSON. The last seven print a line for each difference, and nothing when there is none.
Every question has a time limit, and all of a call have one together.
Exit status: 0 done, 1 something is not mounted or not built, 3 Spectrum Scale could not be asked.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import subprocess
import sys
import time

from hal_node.scale.ask import ScaleError, ask
from hal_node.scale.plan import (
    Configured, by_hand, changes, needs_restart, not_effective)
from hal_node.scale.text import (
    ScaleTextError, classes, configured, file_system, member, members, running, state)
from hal_node.scale.values import same

SECONDS = 15  # for a question; the health check gives all of its questions 25
TOGETHER_SECONDS = 45  # for all questions of one call; expect.yml gives a call more than that
BUILD_SECONDS = 900
DONE, NOT_DONE, NO_ANSWER = 0, 1, 3
GPL = "/lib/modules/%s/extra/mmfs26.ko"
NOT_TAKEN = "/var/lib/hal/spectrum_scale/not_taken.json"


def main(argv):
    """Return the exit status."""
    known = {"mount": mount, "gpl": gpl, "effective": effective, "pending": pending, "restarted": restarted,
             "config": config, "by-hand": undeclared, "file-systems": file_systems, "members": not_members}
    if not argv or argv[0] not in known:
        print(__doc__)
        return DONE if argv[:1] == ["--help"] else NO_ANSWER
    try:
        return known[argv[0]](*argv[1:])
    except (ScaleError, ScaleTextError) as error:
        sys.stderr.write("%s\n" % error)
        return NO_ANSWER


def mounted():
    """Return the folders where Scale has mounted something, from the kernel's table: that asks no file system."""
    with open("/proc/self/mounts", "rb") as table:  # a user's mount may have a name that is not text
        rows = [line.split() for line in table]
    return {row[1].decode("utf-8", "replace") for row in rows if row[2] in (b"gpfs", b"fuse.gpfs")}


def mount(seconds, *wanted):
    """Mount file systems; come back after that many seconds whatever happens."""
    end = time.time() + int(seconds)
    pairs = [pair.split("=", 1) for pair in wanted]
    said = ""
    while True:
        missing = [name for name, folder in pairs if folder not in mounted()]
        if not missing:
            return DONE
        left = end - time.time()
        if left <= 0:
            break
        cut_short = left < SECONDS
        try:
            now = state(ask(["mmgetstate", "-Y"], min(left, SECONDS)))
            said, cut_short = "the daemon is %s" % now, False
            if now == "active":
                for name in missing:
                    ask(["mmmount", name], min(max(end - time.time(), 1), 4 * SECONDS))
        except (ScaleError, ScaleTextError) as error:
            if not said or not cut_short:  # what the end of the time cuts short says less than an answer before
                said = "%s" % error
        time.sleep(1)
    sys.stderr.write("not mounted after %s s: %s%s\n" % (seconds, " ".join(missing), ": " + said if said else ""))
    return NOT_DONE


def gpl():
    """Build the layer between Scale and the kernel, where the running kernel has none."""
    kernel = subprocess.Popen(["uname", "-r"], stdout=subprocess.PIPE, universal_newlines=True).communicate()[0].strip()
    if os.path.exists(GPL % kernel):
        return DONE
    ask(["mmbuildgpl"], BUILD_SECONDS)
    print("the GPL layer was built for %s" % kernel)
    return DONE if os.path.exists(GPL % kernel) else NOT_DONE


def effective(node):
    """Print declared attributes that this node's daemon runs with otherwise than configured."""
    show_running(differing(node))
    return DONE


def pending(node):
    """Print what waits for the next start of this node's daemon, without what it did not take at its last one."""
    refused = []
    if os.path.exists(NOT_TAKEN):
        with open(NOT_TAKEN) as stream:
            refused = json.load(stream)
    waits = differing(node)
    if set(refused) - set(waits):  # it runs with another value meanwhile: this one may be tried again
        remember(line for line in refused if line in waits)
    show_running({line: waits[line] for line in waits if needs_restart(line) and line not in refused})
    return DONE


def restarted(node):
    """Print what this node's daemon, which was just restarted, did not take, and remember it."""
    differences = differing(node)
    refused = {line: differences[line] for line in differences if needs_restart(line)}
    remember(refused)
    show_running(refused)
    return DONE


def remember(lines):
    """Write down what a daemon did not take."""
    if not os.path.isdir(os.path.dirname(NOT_TAKEN)):
        os.makedirs(os.path.dirname(NOT_TAKEN), 0o700)
    with open(NOT_TAKEN + ".new", "w") as stream:
        json.dump(sorted(lines), stream)
    os.rename(NOT_TAKEN + ".new", NOT_TAKEN)


def differing(text):
    """Return {what is configured: what runs} of a node, as {"name", "addresses", "attributes"} say of it."""
    asked = json.loads(text)
    ask_more = questions()
    known = members(ask_more(["mmlscluster", "-Y"]))
    node = member(known, asked["name"], asked["addresses"])
    return not_effective(look(known, ask_more), running(ask_more(["mmdiag", "--config", "-Y"])), node,
                         frozenset(known.values()), asked["attributes"])


def show_running(values):
    """Print a line for each."""
    show("%s, runs with %s" % pair for pair in sorted(values.items()))


def config(declared):
    """Print what the cluster has configured otherwise than {attributes, classes} say."""
    seen, wanted = compared(declared)
    of_cluster, of_classes = changes(seen, wanted["attributes"], wanted["classes"])
    show([difference(change) for change in of_cluster + of_classes])
    return DONE


def undeclared(declared):
    """Print what nodes of classes have of their own and {attributes, classes} do not say."""
    seen, wanted = compared(declared)
    show(by_hand(seen, wanted["attributes"], wanted["classes"]))
    return DONE


def compared(declared):
    """Return what is configured, and what is declared for nodes that are in the cluster."""
    wanted = json.loads(declared)
    ask_more = questions()
    known = members(ask_more(["mmlscluster", "-Y"]))
    for node_class in wanted["classes"].values():
        called = [member(known, node, wanted["addresses"].get(node, ())) for node in node_class["nodes"]]
        node_class["nodes"] = [node for node in called if node]
    return look(known, ask_more), wanted


def questions():
    """Return a function that asks as `ask` does, SECONDS at most for each question and TOGETHER_SECONDS for all."""
    end = time.time() + TOGETHER_SECONDS

    def ask_more(argv):
        left = end - time.time()
        if left <= 0:
            raise ScaleError("%s was not asked: the questions before it took %d s" % (argv[0], TOGETHER_SECONDS))
        return ask(argv, min(left, SECONDS))
    return ask_more


def look(known, ask_more):
    """Return what is configured."""
    return Configured(configured(ask_more(["mmlsconfig", "-Y"])), classes(ask_more(["mmlsnodeclass", "--all"])), known)


def difference(change):
    """Return a change that was not made in words."""
    where = "" if change.nodes is None else " on %s" % ",".join(sorted(change.nodes))
    return "%s%s is %s, declared %s" % (
        change.attribute, where, " and ".join(sorted(change.before)) or "not set", change.declared)


def file_systems(declared):
    """Print what file systems have otherwise than {name: {field: value}} says."""
    ask_more = questions()
    for name, fields in sorted(json.loads(declared).items()):
        seen = file_system(ask_more(["mmlsfs", name, "-Y"]))
        show(["%s: %s is %s, declared %s" % (name, field, seen.get(field, "not shown"), value)
              for field, value in sorted(fields.items()) if field not in seen or not same(seen[field], value)])
    return DONE


def not_members(addresses):
    """Print those of the nodes {name: addresses} that are not in the cluster."""
    known = members(ask(["mmlscluster", "-Y"], SECONDS))
    show("%s is not in the cluster" % node for node, its in sorted(json.loads(addresses).items())
         if not member(known, node, its))
    return DONE


def show(lines):
    """Print lines."""
    for line in lines:
        print(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
