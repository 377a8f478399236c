# -*- coding: utf-8 -*-
"""Compare declared reservations with "scontrol show reservation --oneliner" and say which commands make them equal.

Pure functions, no Slurm needed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
Times are the cluster's local time, as scontrol prints and takes them.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import datetime
import re

from .accounting import AccountingError, seconds
from .conf import SlurmConfError, expand

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

FORMAT = "%Y-%m-%dT%H:%M:%S"
KEYS = ("name", "state", "nodes", "node_count", "partition", "start", "end", "duration", "users", "accounts", "flags")
# Slurm sets these itself.
OWN_FLAGS = {"SPEC_NODES", "ALL_NODES", "PART_NODES"}
Step = collections.namedtuple("Step", "argv text")


class ReservationError(ValueError):
    """A declaration or an output that cannot be used; the message says which and why."""


def read(text):
    # type: (str) -> dict[str, dict[str, str]]
    """Return {name: {key: text}} of "scontrol show reservation --oneliner"; "(null)" is ""."""
    rows = {}
    for line in text.splitlines():
        row = dict(re.findall(r"(\w+)=(\S*)", line))
        if "ReservationName" in row:
            rows[row["ReservationName"]] = {k: "" if v == "(null)" else v for k, v in row.items()}
    return rows


def _time(name, key, value):
    # type: (str, str, object) -> datetime.datetime
    try:
        return datetime.datetime.strptime(str(value).replace(" ", "T"), FORMAT)
    except ValueError:
        raise ReservationError("reservation %s: %s '%s' is not a time such as 2026-12-01T08:00:00" % (name, key, value))


def _span(entry):
    # type: (dict[str, Any]) -> tuple[datetime.datetime, datetime.datetime]
    name = entry["name"]
    start = _time(name, "start", entry.get("start"))
    if entry.get("end") is not None:
        return start, _time(name, "end", entry["end"])
    try:
        return start, start + datetime.timedelta(seconds=seconds(entry.get("duration")))
    except AccountingError as error:
        raise ReservationError("reservation %s: duration: %s" % (name, error.args[0]))


def _check(entries):
    # type: (list[dict[str, Any]]) -> None
    seen = set()
    for entry in entries:
        name = entry.get("name")
        if not name or name in seen:
            raise ReservationError("reservation %s is declared twice" % name if name else "reservation without a name")
        seen.add(name)
        unknown = sorted(set(entry) - set(KEYS))
        if unknown:
            raise ReservationError("reservation %s: unknown key %s; known are %s" % (
                name, ", ".join(unknown), ", ".join(KEYS)))
        if entry.get("state", "present") == "absent":
            continue
        if (entry.get("end") is None) == (entry.get("duration") is None):
            raise ReservationError("reservation %s: give either end or duration" % name)
        if not entry.get("users") and not entry.get("accounts"):
            raise ReservationError("reservation %s: give users or accounts" % name)
        if bool(entry.get("nodes")) == bool(entry.get("node_count")):
            raise ReservationError("reservation %s: give either nodes or node_count" % name)
        start, end = _span(entry)
        if end <= start:
            raise ReservationError("reservation %s: it ends before it starts" % name)


def _names(value):
    # type: (object) -> set[str]
    items = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return {str(item) for item in items if str(item)}


def _options(entry, start, end):
    # type: (dict[str, Any], str, datetime.datetime) -> list[str]
    words = ["StartTime=" + start, "EndTime=" + end.strftime(FORMAT)]
    if entry.get("nodes"):
        words.append("Nodes=" + entry["nodes"])
    else:
        words.append("NodeCnt=%d" % int(entry["node_count"]))
    if entry.get("partition"):
        words.append("PartitionName=" + entry["partition"])
    for key, option in (("users", "Users"), ("accounts", "Accounts"), ("flags", "Flags")):
        if entry.get(key):
            words.append("%s=%s" % (option, ",".join(entry[key])))
    return words


def _differing(entry, row, now):
    # type: (dict[str, Any], dict[str, str], datetime.datetime) -> list[str]
    start, end = _span(entry)
    words = []
    if start > now and row["StartTime"] != start.strftime(FORMAT):
        words.append("StartTime=" + start.strftime(FORMAT))
    if row["EndTime"] != end.strftime(FORMAT):
        words.append("EndTime=" + end.strftime(FORMAT))
    try:
        if entry.get("nodes") and set(expand(row["Nodes"])) != set(expand(entry["nodes"])):
            words.append("Nodes=" + entry["nodes"])
    except SlurmConfError as error:
        raise ReservationError("reservation %s: nodes: %s" % (entry["name"], error.args[0]))
    if entry.get("node_count") and int(row.get("NodeCnt") or 0) != int(entry["node_count"]):
        words.append("NodeCnt=%d" % int(entry["node_count"]))
    if entry.get("partition") and row.get("PartitionName") != entry["partition"]:
        words.append("PartitionName=" + entry["partition"])
    for key, column in (("accounts", "Accounts"), ("users", "Users")):
        if _names(entry.get(key)) != _names(row.get(column)):
            words.append("%s=%s" % (column, ",".join(entry.get(key) or [])))
    # An empty list is refused while it is the only one left: set the filled one first.
    words.sort(key=lambda word: word.endswith("="))
    has, wanted = _names(row.get("Flags")) - OWN_FLAGS, _names(entry.get("flags"))
    if wanted - has:
        words.append("Flags+=" + ",".join(sorted(wanted - has)))
    if has - wanted:
        words.append("Flags-=" + ",".join(sorted(has - wanted)))
    return words


def steps(entries, current, now):
    # type: (list[dict[str, Any]], dict[str, dict[str, str]], datetime.datetime) -> list[Step]
    """Return the Steps, in order, that make the reservations what is declared. Raises ReservationError.

    now: the cluster's local time, a datetime. A reservation that is over is not made again; one that should have begun
    begins now.
    """
    _check(entries)
    out = []
    for entry in entries:
        name, row = entry["name"], current.get(entry["name"])
        if entry.get("state", "present") == "absent":
            if row:
                out.append(Step(["scontrol", "delete", "ReservationName=" + name], "%s deleted" % name))
            continue
        start, end = _span(entry)
        if end <= now:
            continue
        if row is None:
            begin = start.strftime(FORMAT) if start > now else "now"
            out.append(Step(["scontrol", "create", "reservation", "ReservationName=" + name]
                            + _options(entry, begin, end), "%s added" % name))
            continue
        for word in _differing(entry, row, now):
            out.append(Step(["scontrol", "update", "reservation", "ReservationName=" + name, word],
                            "%s: %s" % (name, word)))
    return out
