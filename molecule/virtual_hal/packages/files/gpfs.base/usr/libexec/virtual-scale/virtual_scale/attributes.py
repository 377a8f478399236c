"""What may be configured: names, types, ranges, defaults, and what an active daemon takes up at once.

From IBM's documentation of mmchconfig (5.0.2 and 5.0.4): README.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from virtual_scale.say import Failed

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Attribute:
    """One attribute. `at_once`: -i and -I may be given; `daemon`: mmfsd knows it, so mmdiag shows it."""

    name: str
    default: str | None
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    pattern: str = ""
    at_once: bool = False
    daemon: bool = True

    def check(self, value: str) -> None:
        """Raise Failed when the attribute cannot have the value."""
        if self.choices and value.lower() not in {choice.lower() for choice in self.choices}:
            raise self._wrong(value, ", ".join(self.choices))
        if self.low is not None and self.high is not None:
            size = number(value)
            if size is None or not self.low <= size <= self.high:
                raise self._wrong(value, f"{self.low} through {self.high}")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise self._wrong(value, self.pattern)

    def _wrong(self, value: str, right: str) -> Failed:
        return Failed(f"{{command}}: Incorrect value {value} specified for {self.name}. Valid: {right}")

    def running(self, value: str) -> str:
        """Return a value as mmdiag shows it: numbers without units, yes and no as 1 and 0."""
        if self.low is not None:
            size = number(value)
            return value if size is None else str(size)
        if self.choices == YES_NO:
            return "1" if value.lower() == "yes" else "0"
        return value


YES_NO = ("yes", "no")


def number(text: str) -> int | None:
    """Return the number of 128K, 4g or 512; None for anything else."""
    matched = re.fullmatch(r"(\d+)([kKmMgGtT]?)", text)
    return int(matched[1]) * UNITS.get(matched[2].upper(), 1) if matched else None


def _yes_no(name: str, default: str, at_once: bool = False, daemon: bool = True) -> Attribute:
    return Attribute(name, default, choices=YES_NO, at_once=at_once, daemon=daemon)


def _choice(name: str, default: str | None, *choices: str, at_once: bool = False, daemon: bool = True) -> Attribute:
    return Attribute(name, default, choices=choices, at_once=at_once, daemon=daemon)


def _number(name: str, default: str | None, low: int, high: int, at_once: bool = False) -> Attribute:
    return Attribute(name, default, low=low, high=high, at_once=at_once)


def _text(name: str, default: str | None, pattern: str = "", at_once: bool = False, daemon: bool = True) -> Attribute:
    return Attribute(name, default, pattern=pattern, at_once=at_once, daemon=daemon)


MILLION, GIB, TIB = 10**6, 1 << 30, 1 << 40

EVERY = (
    _choice("adminMode", "central", "central", "allToAll", daemon=False),
    _yes_no("autoload", "no", daemon=False),
    _yes_no("ccrEnabled", "yes", daemon=False),
    _text("cipherList", "EMPTY"),
    _number("deadlockDetectionThreshold", "300", 0, MILLION, at_once=True),
    _text("defaultHelperNodes", None, daemon=False),
    _number("dmapiFileHandleSize", "32", 32, 48),
    _yes_no("enforceFilesetQuotaOnRoot", "no"),
    _number("failureDetectionTime", "35", 10, 300),
    _number("idleSocketTimeout", "3600", 0, MILLION),
    _yes_no("ignorePrefetchLUNCount", "no", at_once=True),
    _number("leaseRecoveryWait", "35", 0, 300),
    _number("logBufferCount", "3", 1, 1024),
    _number("logWrapThreads", "4", 1, 1024),
    _number("maxblocksize", "4194304", 64 << 10, 16 << 20),
    _number("maxFilesToCache", "4000", 1, 100 * MILLION),
    _number("maxMBpS", "2048", 1, MILLION, at_once=True),
    _number("maxMissedPingTimeout", "60", 3, 3600),
    _number("maxReceiverThreads", "16", 1, 128),
    _number("maxStatCache", "1000", 0, 100 * MILLION),
    _number("maxTcpConnsPerNodeConn", "2", 1, 8),
    _number("minMissedPingTimeout", "3", 1, 300),
    _number("nsdBufSpace", "30", 10, 70, at_once=True),
    _number("nsdInlineWriteMax", "1024", 0, GIB, at_once=True),
    _number("nsdMaxWorkerThreads", "512", 8, 8192),
    _number("nsdMinWorkerThreads", "16", 1, 8192),
    _number("nsdMultiQueue", "256", 1, 1024, at_once=True),
    _number("nsdSmallThreadRatio", "7", 0, 64),
    _number("nsdThreadsPerDisk", "3", 1, 64),
    _number("nsdThreadsPerQueue", "3", 1, 64),
    _yes_no("numaMemoryInterleave", "no"),
    _number("pagepool", "1073741824", 4 << 20, TIB, at_once=True),
    _number("pagepoolMaxPhysMemPct", "75", 10, 90),
    _number("pitWorkerThreadsPerNode", "0", 0, 8192, at_once=True),
    _number("prefetchPct", "20", 0, 60),
    _number("prefetchThreads", "72", 3, 104),
    _choice("readReplicaPolicy", "default", "default", "local", "fastest", at_once=True),
    _yes_no("restripeOnDiskFailure", "no"),
    _number("scatterBufferSize", "32768", 4096, 1 << 20),
    _number("seqDiscardThreshold", "1048576", 0, 999 * GIB, at_once=True),
    _number("socketMaxListenConnections", "128", 1, 65536),
    _number("socketRcvBufferSize", "0", 0, 64 << 20),
    _number("socketSndBufferSize", "0", 0, 64 << 20),
    _number("statCacheDirPct", "10", 0, 100),
    _text("subnets", None),
    _choice("systemLogLevel", "notice", "alert", "critical", "error", "warning", "notice", "configuration",
            "informational", "detail", "debug", at_once=True),
    _text("tiebreakerDisks", None, daemon=False),
    _text("tscCmdPortRange", None, r"\d{4,5}-\d{4,5}", daemon=False),
    _yes_no("tscCmdAllowRemoteConnections", "yes", daemon=False),
    _choice("unmountOnDiskFail", "no", "no", "yes", "meta", at_once=True),
    _choice("verbsRdma", "disable", "enable", "disable"),
    _choice("verbsRdmaCm", "disable", "enable", "disable"),
    _yes_no("verbsRdmaSend", "no"),
    _number("verbsRdmaMinBytes", "16384", 0, GIB),
    _number("verbsRdmaTimeout", "18", 0, 31),
    _text("verbsPorts", "", r"[A-Za-z0-9_.-]+(/\d+(/\d+)?)?([ ;][A-Za-z0-9_.-]+(/\d+(/\d+)?)?)*"),
    _number("worker1Threads", "48", 1, 8192, at_once=True),
    _number("workerThreads", "48", 1, 8192),
    _number("writebehindThreshold", "524288", 0, GIB, at_once=True),
)  # fmt: skip

BY_NAME = {attribute.name.lower(): attribute for attribute in EVERY}
# Set by other commands; mmlsconfig shows them among the values.
FIXED = ("clusterName", "clusterId", "minReleaseLevel")
# mmlsconfig prints this one in lower case, whoever set it how.
SHOWN_AS = {"nsdBufSpace": "nsdbufspace"}


def named(name: str) -> Attribute:
    """Return the attribute of a name in any case; Failed where there is none."""
    attribute = BY_NAME.get(name.lower())
    if attribute is None:
        raise Failed(f"{{command}}: Attribute {name} is not known.")
    return attribute


def shown(name: str) -> str:
    """Return the name as mmlsconfig prints it."""
    return SHOWN_AS.get(name, name)
