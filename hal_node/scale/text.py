# -*- coding: utf-8 -*-
"""Output of Spectrum Scale's commands with -Y, read by the names in its headers.

Pure functions. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
The form (IBM Docs, mmlsconfig and others, -Y): fields end with a colon, a HEADER row for each kind of row names them,
and what a field must not contain is written as %3A (mmclidecode). Releases add columns at the end, so they are found by
name. Names of columns are those of published output: mmlsconfig of openstack/cinder's tests and of a listing of 5.2,
mmdiag --config and mmgetstate of treydock/gpfs_exporter's tests (mmgetstate of 5.2 as well), mmlscluster and mmlsfs of
IBM/ibm-spectrum-scale-install-infra. The unit tests read exactly that output.
"""

from __future__ import absolute_import, division, print_function

MYPY = False
if MYPY:
    from typing import Iterable, Sequence  # noqa: F401  in comments

__metaclass__ = type

try:
    from urllib.parse import unquote
except ImportError:  # Python 2.7
    from urllib import unquote  # type: ignore[attr-defined,no-redef]

HEADER = "HEADER"


class ScaleTextError(ValueError):
    """Output that cannot be relied on; the message quotes what is wrong with it."""


def rows(text, command, columns, kind=""):
    # type: (str, str, Sequence[str], str) -> list[dict[str, str]]
    """Return the rows of one kind as dicts. `columns`: names that have to be there.

    A list that was cut off, or an error text in its place, is never taken for a shorter list.
    """
    names, listed, first = None, [], ""
    for line in text.splitlines():
        fields = line.rstrip().split(":")
        if len(fields) < 3 or fields[0] != command:
            if names is not None and line.strip():
                raise ScaleTextError("%s: a line is broken: %s" % (command, quoted(line)))
            first = first or line.strip()  # a banner of ssh, or an error
            continue
        if fields[-1] != "":
            raise ScaleTextError("%s: a line is cut off: %s" % (command, quoted(line)))
        if fields[2] == HEADER:
            if fields[1] == kind:
                names = fields[3:-1]
                missing = [name for name in columns if name not in names]
                if missing:
                    raise ScaleTextError("%s: no column %s in its header" % (command, ", ".join(missing)))
            elif names is None:
                names = []  # a header of another kind: this is -Y output
            continue
        if fields[1] == kind:
            if not names:
                raise ScaleTextError("%s: a row comes before its header: %s" % (command, quoted(line)))
            row = dict(zip(names, [unquote(field) for field in fields[3:-1]]))
            missing = [name for name in columns if name not in row]
            if missing:
                raise ScaleTextError("%s: a row has no %s: %s" % (command, ", ".join(missing), quoted(line)))
            listed.append(row)
    if names is None:
        raise ScaleTextError("%s printed %s" % (command, quoted(first) if first else "nothing"))
    return listed


def quoted(line):
    # type: (str) -> str
    """Return the beginning of a line for a message."""
    line = line.strip()
    return '"%s%s"' % (line[:80], "..." if len(line) > 80 else "")


def configured(text):
    # type: (str) -> list[tuple[str, str, str]]
    """Return (attribute, value, list of nodes and classes) rows of mmlsconfig -Y; an empty list means all nodes."""
    return [
        (row["configParameter"], row["value"], row["nodeList"])
        for row in rows(text, "mmlsconfig", ("configParameter", "value", "nodeList"))
    ]


def running(text):
    # type: (str) -> dict[str, str]
    """Return {attribute in lower case: value} with which the daemon runs, of mmdiag --config -Y."""
    attributes = rows(text, "mmdiag", ("name", "value"), "config")
    if not attributes:
        raise ScaleTextError("mmdiag shows no attribute: the daemon does not run")
    return {row["name"].lower(): row["value"] for row in attributes}


def members(text):
    # type: (str) -> dict[str, str]
    """Return {name or address: node} of mmlscluster -Y, where a node is the first part of its adminNodeName.

    A daemon may use an interface of its own, such as IPoIB: then daemonNodeName and ipAddress are that interface's.
    """
    known = {}  # type: dict[str, str]
    for row in rows(text, "mmlscluster", ("daemonNodeName", "ipAddress", "adminNodeName"), "clusterNode"):
        node = short(row["adminNodeName"])
        for name in (row["adminNodeName"], node, row["daemonNodeName"], short(row["daemonNodeName"]), row["ipAddress"]):
            known.setdefault(name.lower(), node)
    if not known:
        raise ScaleTextError("mmlscluster shows no node")
    return known


def member(known, name, addresses=()):
    # type: (dict[str, str], str, Iterable[str]) -> str | None
    """Return the node of members() that has this name or one of the addresses, None where there is none."""
    return next((known[key] for key in [name.lower(), short(name).lower()] + list(addresses) if key in known), None)


def classes(text):
    # type: (str) -> dict[str, frozenset[str]]
    """Return {class: frozenset of nodes} of mmlsnodeclass --all, a table: a name, and its members.

    One without a line of dashes has no class. A class may have classes as members, also those that every cluster has
    (IBM Docs, mmcrnodeclass and mmlsnodeclass 5.0.4: siteA has linuxNodes): without --all they would not be listed,
    and a row of mmlsconfig for nsdNodes or cesNodes would have nobody. IBM publishes no columns of -Y for it.
    """
    listed = {}  # type: dict[str, frozenset[str]]
    name, below = None, False
    for line in text.splitlines():
        if not below:
            below = line.startswith("-----")
            continue
        words = line.replace(",", " ").split()
        if words and not line[0].isspace():
            name = words.pop(0)
        if name:
            listed[name] = listed.get(name, frozenset()) | frozenset(short(node) for node in words)
    return {
        name: frozenset(node for word in its for node in (listed[word] if word in listed and word != name else [word]))
        for name, its in listed.items()
    }


def state(text):
    # type: (str) -> str
    """Return the state of this node's daemon of mmgetstate -Y: active, down, arbitrating, unknown."""
    nodes = rows(text, "mmgetstate", ("nodeName", "state"))
    if len(nodes) != 1:
        raise ScaleTextError("mmgetstate shows %d nodes instead of this one" % len(nodes))
    return nodes[0]["state"]


def file_system(text):
    # type: (str) -> dict[str, str]
    """Return {field: data} of one file system, of mmlsfs NAME -Y."""
    fields = {
        row["fieldName"]: row["data"] for row in rows(text, "mmlsfs", ("deviceName", "fieldName", "data"))
    }
    if not fields:
        raise ScaleTextError("mmlsfs shows nothing of this file system")
    return fields


def short(node):
    # type: (str) -> str
    """Return a node's name without its domain."""
    return node.strip().split(".")[0]
