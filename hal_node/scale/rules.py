# -*- coding: utf-8 -*-
"""What is known of Spectrum Scale's attributes, and what is wrong with declared ones.

Pure functions. Runs on nodes and at the controller: Python 2.7 and 3.6 and later, standard library only.

Source of names, ranges, defaults, and of what applies at once: IBM Docs, "mmchconfig command" of Spectrum Scale 4.2.2,
5.0.2 and 5.1.3 (autoBuildGPL: 5.1.3). Where these pages give no range there is none here. NOW: in their list for -i.
RESTART: not in it, so the daemon of a node takes it at its next start. MM: read by the mm commands and scripts, not by
the daemon.

Confirmed by a second page: what -i takes (mmchconfig 4.2.1, 5.0.2, 5.1.3); range and default of maxFilesToCache
("Parameters for performance tuning and optimization" 4.2.2 and 5.2.1); range and default of nsdBufSpace (message
6027-1808, 5.2.3); defaults of pagepool and maxStatCache ("Spectrum Scale cache usage"). All other ranges and defaults
are of the mmchconfig pages alone. What published clusters run with is inside of all ranges (a unit test has it);
spectrum_scale_attributes_unchecked is the way past a range that is wrong.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import difflib

from .values import SWITCHES, number, plain, written

MYPY = False
if MYPY:
    from typing import Any, Container, Mapping  # noqa: F401  in comments

NOW, RESTART, MM = "now", "restart", "mm"
MB, GB, MANY = 1 << 20, 1 << 30, 100000000
SWITCH = ("yes", "no")
ABLE = ("enable", "disable")
ANY = None

# name: (values, default, when it applies); values: (least, most) of a number, the words, or ANY for a text.
KNOWN = {
    "adminMode": (("central", "allToAll"), "central", MM),
    "autoBuildGPL": (ANY, "no", MM),
    "autoload": (SWITCH, "no", MM),
    "automountDir": (ANY, None, RESTART),
    "cipherList": (ANY, None, RESTART),
    "failureDetectionTime": ((10, 600), 35, RESTART),
    "idleSocketTimeout": ((0, None), 3600, RESTART),
    "ignorePrefetchLUNCount": (SWITCH, "no", NOW),
    "maxblocksize": ((64 << 10, 16 * MB), 4 * MB, RESTART),
    "maxFilesToCache": ((1, MANY), 4000, RESTART),
    "maxMBpS": ((0, 100000), 2048, NOW),
    "maxStatCache": ((0, MANY), 1000, RESTART),
    "minMissedPingTimeout": ((1, None), 3, RESTART),
    "nfsPrefetchStrategy": ((0, 10), 0, NOW),
    "nsdBufSpace": ((10, 70), 30, NOW),
    "nsdInlineWriteMax": ((0, 8 * MB), 1024, NOW),
    "nsdMaxWorkerThreads": ((8, 8192), 512, RESTART),
    "nsdMinWorkerThreads": ((8, 8192), 16, RESTART),
    "nsdMultiQueue": ((2, 512), 256, NOW),
    "nsdSmallThreadRatio": ((0, None), 0, RESTART),
    "nsdThreadsPerQueue": ((1, None), 3, RESTART),
    "numaMemoryInterleave": (SWITCH, "no", RESTART),
    "pagepool": ((4 * MB, None), GB, NOW),
    "pagepoolMaxPhysMemPct": ((10, 90), 75, RESTART),
    "panicOnIOHang": (SWITCH, "no", NOW),
    "pitWorkerThreadsPerNode": ((0, 8192), 0, NOW),
    "prefetchPct": ((0, 60), 20, RESTART),
    "prefetchThreads": ((2, 10240), 72, RESTART),
    "readReplicaPolicy": (("default", "local", "fastest", "random"), "default", NOW),
    "restripeOnDiskFailure": (SWITCH, "no", MM),
    "seqDiscardThreshold": ((0, None), MB, NOW),
    "socketMaxListenConnections": ((1, 65536), 128, RESTART),
    "systemLogLevel": (ANY, "notice", NOW),
    "tokenMemLimit": ((128 * MB, None), 512 * MB, RESTART),
    "tscCmdPortRange": (ANY, None, MM),
    "tscTcpPort": ((1, 65535), 1191, RESTART),
    "unmountOnDiskFail": (("yes", "no", "meta"), "no", NOW),
    "verbsPorts": (ANY, None, RESTART),
    "verbsRdma": (ABLE, "disable", RESTART),
    "verbsRdmaCm": (ABLE, "disable", RESTART),
    "verbsRdmaRoCEToS": ((-1, 255), -1, NOW),
    "verbsRdmaSend": (SWITCH + ABLE, "no", RESTART),
    "worker1Threads": ((1, 8192), 48, RESTART),
    "workerThreads": ((1, 8192), 48, RESTART),
    "writebehindThreshold": ((0, None), 524288, NOW),
}
# The listings of mmlsconfig and older manuals have other names for these.
ALIASES = {"nsdbuffs": "nsdBufSpace", "nsdbufspace": "nsdBufSpace"}
BY_LOWER = {name.lower(): name for name in KNOWN}

# Memory of an entry in a cache (IBM Docs, "mmchconfig", maxFilesToCache: 3 to 10 KB; maxStatCache: about 400 bytes).
FILE_BYTES, STAT_BYTES = 10 << 10, 400


def name_of(attribute):
    # type: (str) -> str | None
    """Return an attribute's name as IBM writes it, None for one that is not in the table."""
    return BY_LOWER.get(attribute.lower())


def applies(attribute):
    # type: (str) -> str
    """Return when a change applies; what is not known is taken to need a restart."""
    known = name_of(attribute)
    return KNOWN[known][2] if known else RESTART


def problem(attribute, value, unchecked=()):
    # type: (str, Any, Container[str]) -> str
    """Return what is wrong with one declared attribute, or ""."""
    if attribute in unchecked:
        return ""
    if attribute.lower() in ALIASES and ALIASES[attribute.lower()] != attribute:
        return "%s: write %s" % (attribute, ALIASES[attribute.lower()])
    known = name_of(attribute)
    if known is None:
        near = difflib.get_close_matches(attribute.lower(), sorted(BY_LOWER), 1, 0.6)
        return "%s is not a known attribute%s%s" % (
            attribute, "; did you mean %s" % BY_LOWER[near[0]] if near else "",
            "; if it is right, list it in spectrum_scale_attributes_unchecked")
    if known != attribute:
        return "%s: write %s" % (attribute, known)
    if value is None:
        return ""
    text = written(value)
    if not text or set(text) & set(",=\n\"'") and known != "verbsPorts":
        return "%s: %s is not a value for mmchconfig" % (known, repr(text).lstrip("u"))
    return out_of_range(known, text)


def out_of_range(known, text):
    # type: (str, str) -> str
    """Return why a value is not one that the attribute takes, or ""."""
    values = KNOWN[known][0]
    if values is ANY:
        return ""
    if isinstance(values[0], str):
        if text not in values:
            return "%s is %s; write %s" % (known, text, " or ".join(values))
        return ""
    size, (least, most) = number(text), values
    if size is None:
        return "%s is %s; write a number such as 4096 or 4G" % (known, text)
    if size < least or most is not None and size > most:
        return "%s is %s; write %s" % (
            known, text, "%d to %d" % (least, most) if most is not None else "%d or more" % least)
    return ""


def memory(attributes):
    # type: (Mapping[str, Any]) -> list[tuple[str, int]]
    """Return [(part, bytes)] of a node's memory that the daemon takes, with the defaults for what is not declared."""
    def value(name):
        # type: (str) -> int
        declared = attributes.get(name)
        return number(KNOWN[name][1] if declared is None else declared) or 0
    return [
        ("pagepool", value("pagepool")),
        ("maxFilesToCache x 10 KB", value("maxFilesToCache") * FILE_BYTES),
        ("maxStatCache x 400 B", value("maxStatCache") * STAT_BYTES),
    ]


def memory_problem(attributes, memory_mb, percent):
    # type: (Mapping[str, Any], int, int) -> str
    """Return why a node of this size cannot spare that memory, with the sum and its parts, or ""."""
    parts = memory(attributes)
    needed, spare = sum(size for _part, size in parts), memory_mb * MB * percent // 100
    if needed <= spare:
        return ""
    return "needs %d MB (%s); %d %% of its %d MB are %d MB" % (
        needed // MB, " + ".join("%s %d MB" % (part, size // MB) for part, size in parts), percent, memory_mb,
        spare // MB)


def stat_cache_remark(attributes, version, lroc=False):
    # type: (Mapping[str, Any], str, bool) -> str
    """Return why maxStatCache has no effect, or "" (IBM Docs, mmchconfig 5.0.2: without LROC from that release on)."""
    if attributes.get("maxStatCache") is None or lroc or release(version) >= (5, 0, 2):
        return ""
    return "maxStatCache %s has no effect on Linux without LROC before 5.0.2, and this is %s" % (
        written(attributes["maxStatCache"]), version)


def release(version):
    # type: (str) -> tuple[int, ...]
    """Return (5, 0, 4) of 5.0.4-3."""
    return tuple(int(part) for part in version.split("-")[0].split(".")[:3])


def is_switch(value):
    # type: (object) -> bool
    """Return whether a value is a yes or a no in any spelling."""
    return plain(value) in SWITCHES
