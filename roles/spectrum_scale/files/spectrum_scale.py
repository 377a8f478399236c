# -*- coding: utf-8 -*-
"""Spectrum Scale on this node, for its units and for what the role promises. Python 2.7 and 3.

hal-spectrum-scale mount SECONDS NAME=FOLDER...  wait for the daemon, mount what is not mounted; at boot, before slurmd
hal-spectrum-scale gpl                           build the GPL layer if the running kernel has none; before the daemon
hal-spectrum-scale effective NODE                attributes that this node's daemon runs with otherwise than configured
hal-spectrum-scale config DECLARED               attributes that are configured otherwise than declared
hal-spectrum-scale by-hand DECLARED              attributes that nodes have of their own and nobody declared
hal-spectrum-scale file-systems DECLARED         sizes and mounts of file systems that are otherwise than declared
hal-spectrum-scale members NODE...               nodes that are not in the cluster

DECLARED is JSON. The last five print a line for each difference, and nothing when there is none. Every question has a
time limit.
Exit status: 0 done, 1 something is not mounted or not built, 3 Spectrum Scale could not be asked.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # also for Python's -E

from ansible.module_utils.hal_scale_ask import ScaleError, ask  # noqa: E402  found through the line above
from ansible.module_utils.hal_scale_plan import Configured, by_hand, changes, not_effective  # noqa: E402
from ansible.module_utils.hal_scale_text import (  # noqa: E402
    ScaleTextError, classes, configured, file_system, members, running, state)
from ansible.module_utils.hal_scale_values import same  # noqa: E402

SECONDS = 15  # for a question; the health check gives all of its questions 25
BUILD_SECONDS = 900
DONE, NOT_DONE, NO_ANSWER = 0, 1, 3
GPL = "/lib/modules/%s/extra/mmfs26.ko"


def main(argv):
    """Return the exit status."""
    known = {"mount": mount, "gpl": gpl, "effective": effective, "config": config,
             "by-hand": undeclared, "file-systems": file_systems, "members": not_members}
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
    with open("/proc/self/mounts") as table:
        rows = [line.split() for line in table]
    return {row[1] for row in rows if row[2] in ("gpfs", "fuse.gpfs")}


def mount(seconds, *wanted):
    """Mount file systems; come back after that many seconds whatever happens."""
    end = time.time() + int(seconds)
    pairs = [one.split("=", 1) for one in wanted]
    said = ""
    while True:
        missing = [name for name, folder in pairs if folder not in mounted()]
        if not missing:
            return DONE
        left = end - time.time()
        if left <= 0:
            break
        try:
            now = state(ask(["mmgetstate", "-Y"], min(left, SECONDS)))
            said = "the daemon is %s" % now
            if now == "active":
                for name in missing:
                    ask(["mmmount", name], min(max(end - time.time(), 1), 4 * SECONDS))
        except (ScaleError, ScaleTextError) as error:
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
    """Print what waits for the next start of this node's daemon."""
    nodes = frozenset(members(ask(["mmlscluster", "-Y"], SECONDS)))
    seen = look()
    show(not_effective(seen, running(ask(["mmdiag", "--config", "-Y"], SECONDS)), node, nodes))
    return DONE


def config(declared):
    """Print what the cluster has configured otherwise than {attributes, classes} say."""
    seen, wanted = compared(declared)
    of_cluster, of_classes = changes(seen, wanted["attributes"], wanted["classes"])
    show([difference(one) for one in of_cluster + of_classes])
    return DONE


def undeclared(declared):
    """Print what nodes of classes have of their own and {attributes, classes} do not say."""
    seen, wanted = compared(declared)
    show(by_hand(seen, wanted["attributes"], wanted["classes"]))
    return DONE


def compared(declared):
    """Return what is configured, and what is declared for nodes that are in the cluster."""
    wanted = json.loads(declared)
    cluster = members(ask(["mmlscluster", "-Y"], SECONDS))
    for one in wanted["classes"].values():
        one["nodes"] = [node for node in one["nodes"] if node in cluster]
    return look(), wanted


def look():
    """Return what is configured."""
    return Configured(configured(ask(["mmlsconfig", "-Y"], SECONDS)), classes(ask(["mmlsnodeclass"], SECONDS)))


def difference(change):
    """Return a change that was not made in words."""
    where = "" if change.nodes is None else " on %s" % ",".join(sorted(change.nodes))
    return "%s%s is %s, declared %s" % (
        change.attribute, where, " and ".join(sorted(change.before)) or "not set", change.declared)


def file_systems(declared):
    """Print what file systems have otherwise than {name: {field: value}} says."""
    for name, fields in sorted(json.loads(declared).items()):
        seen = file_system(ask(["mmlsfs", name, "-Y"], SECONDS))
        show(["%s: %s is %s, declared %s" % (name, field, seen.get(field, "not shown"), value)
              for field, value in sorted(fields.items()) if field not in seen or not same(seen[field], value)])
    return DONE


def not_members(*nodes):
    """Print those of the nodes that are not in the cluster."""
    cluster = members(ask(["mmlscluster", "-Y"], SECONDS))
    show(["%s is not in the cluster" % node for node in nodes if node not in cluster])
    return DONE


def show(lines):
    """Print lines."""
    for line in lines:
        print(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
