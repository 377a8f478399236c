# -*- coding: utf-8 -*-
"""Read Slurm's configuration files (slurm.conf, gres.conf, cgroup.conf, topology.conf) as data.

Pure functions, no Slurm needed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
Grammar: slurm.conf(5) - names are case insensitive except those of nodes and partitions, "#" starts a comment,
a backslash at the end of a line continues it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import re

MYPY = False
if MYPY:
    from typing import Iterable  # noqa: F401  in comments

# The first key of a line decides what the line is about. Everything else in slurm.conf is a parameter.
OBJECTS = {"nodename": "node", "partitionname": "partition", "downnodes": "down", "nodeset": "nodeset",
           "frontendname": "frontend", "frontendnode": "frontend", "include": "include"}
MAX_NAMES = 100000

# What a slurm.conf says.
#
# parameters: {lower case name: (name as written, value)}; a repeated SlurmctldHost is joined by ";" in order.
# nodes, partitions: {name: {lower case key: value}} with the values of the DEFAULT lines filled in.
# others: lines that are not taken apart (DownNodes, NodeSet, Include, ...), normalised, in order.
Conf = collections.namedtuple("Conf", "parameters nodes partitions others")


class SlurmConfError(ValueError):
    """A configuration text that cannot be read; the message says which line and why."""


def logical_lines(text):
    # type: (str) -> list[str]
    """Return the lines that mean something: comments and empty lines dropped, continuations joined, blanks folded."""
    lines = []
    held = ""
    for raw in text.splitlines():
        line = re.sub(r"(^|[^\\])#.*$", r"\1", raw).rstrip()
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        line = " ".join((held + line).split())
        held = ""
        if line:
            lines.append(line)
    if held.strip():
        lines.append(" ".join(held.split()))
    return lines


def pairs(line):
    # type: (str) -> list[tuple[str, str]]
    """Return [(key, value)] of a line of Key=Value words; a value may be in double quotes. Raises SlurmConfError."""
    words = []
    position = 0
    pattern = re.compile(r'\s*([A-Za-z0-9_]+)\s*=\s*(?:"([^"]*)"|(\S*))')
    while line[position:].strip():
        match = pattern.match(line, position)
        if match is None:
            raise SlurmConfError("not Key=Value: '%s'" % line[position:].strip()[:60])
        words.append((match.group(1), match.group(2) if match.group(2) is not None else match.group(3)))
        position = match.end()
    return words


def _split_outside_brackets(text):
    # type: (str) -> list[str]
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in parts if part]


def expand(hostlist):
    # type: (str) -> list[str]
    """Return the names of a Slurm host list in order: "hal[01-03],x" -> hal01 hal02 hal03 x. Raises SlurmConfError."""
    names = []
    for part in _split_outside_brackets(hostlist):
        expanded = [""]
        for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            if literal:
                expanded = [name + literal for name in expanded]
                continue
            numbers = []
            for item in ranges.split(","):
                match = re.match(r"^(\d+)(?:-(\d+))?$", item)
                if match is None:
                    place = "range '%s' of host list '%s'" % (item, hostlist)
                    raise SlurmConfError(place + " is not a number or number-number")
                first, last = match.group(1), match.group(2) or match.group(1)
                if int(last) - int(first) >= MAX_NAMES or int(last) < int(first):
                    place = "range '%s' of host list '%s'" % (item, hostlist)
                    raise SlurmConfError(place + " runs backwards or is too long")
                numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
            if len(expanded) * len(numbers) > MAX_NAMES:
                raise SlurmConfError("host list '%s' has more than %d names" % (hostlist, MAX_NAMES))
            expanded = [name + number for name in expanded for number in numbers]
        names += expanded
    return names


def fold(names):
    # type: (Iterable[str]) -> str
    """Return names as a short host list for people: hal01 hal02 hal03 x -> "hal[01-03],x". Sorted, each once."""
    groups = collections.OrderedDict()  # type: dict[tuple[str, int | None], list[int]]
    for name in sorted(set(names)):
        match = re.match(r"^(.*?)(\d+)$", name)
        key = (match.group(1), len(match.group(2))) if match else (name, None)
        groups.setdefault(key, []).append(int(match.group(2)) if match else 0)
    out = []
    for (prefix, width), numbers in groups.items():
        if width is None:
            out.append(prefix)
            continue
        runs = []  # type: list[list[int]]
        for number in numbers:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        shown = [str(a).zfill(width) if a == b else "%s-%s" % (str(a).zfill(width), str(b).zfill(width))
                 for a, b in runs]
        out.append(prefix + (shown[0] if len(numbers) == 1 else "[%s]" % ",".join(shown)))
    return ",".join(out)


def _per_name(name, hostlist, key, value):
    # type: (str, list[str], str, str) -> str
    """Return this node's own part of a value that lists one item a node (NodeAddr, NodeHostname, Port)."""
    if key not in ("nodeaddr", "nodehostname", "port") or "[" not in value:
        return value
    items = expand(value)
    return items[hostlist.index(name)] if len(items) == len(hostlist) else value


def parse(text):
    # type: (str) -> Conf
    """Return the Conf of a slurm.conf text. Raises SlurmConfError with the line it cannot read."""
    parameters = {}  # type: dict[str, tuple[str, str]]
    nodes, partitions, others = {}, {}, []  # type: dict[str, dict[str, str]], dict[str, dict[str, str]], list[str]
    defaults = {"node": {}, "partition": {}}  # type: dict[str, dict[str, str]]
    for line in logical_lines(text):
        if line.split()[0].lower() == "include":
            others.append(line)
            continue
        words = pairs(line)
        kind = OBJECTS.get(words[0][0].lower())
        if kind in ("node", "partition"):
            values = {key.lower(): value for key, value in words[1:]}
            if words[0][1].upper() == "DEFAULT":
                defaults[kind].update(values)
                continue
            names = expand(words[0][1]) if kind == "node" else [words[0][1]]
            target = nodes if kind == "node" else partitions
            for name in names:
                target[name] = dict(defaults[kind])
                target[name].update((k, _per_name(name, names, k, v)) for k, v in values.items())
        elif kind:
            others.append(line)
        else:
            for key, value in words:
                low = key.lower()
                if low == "slurmctldhost" and low in parameters:
                    value = parameters[low][1] + ";" + value
                parameters[low] = (key, value)
    return Conf(parameters, nodes, partitions, others)


def parse_gres(text):
    # type: (str) -> dict[str, list[tuple[tuple[str, str], ...]]]
    """Return {node name or "": sorted list of devices} of a gres.conf; a device is a sorted tuple of (key, value).

    "" holds the lines without NodeName, which concern every node that reads the file.
    """
    devices = {}  # type: dict[str, list[tuple[tuple[str, str], ...]]]
    for line in logical_lines(text):
        words = [(key.lower(), value) for key, value in pairs(line)]
        names = [""]
        for key, value in words:
            if key == "nodename":
                names = expand(value)
        device = tuple(sorted((key, value) for key, value in words if key != "nodename"))
        for name in names:
            devices.setdefault(name, []).append(device)
    return {name: sorted(listed) for name, listed in devices.items()}


def parse_flat(text):
    # type: (str) -> dict[str, tuple[str, str]]
    """Return {lower case key: (key, value)} of a file of plain parameters (cgroup.conf)."""
    return {key.lower(): (key, value) for line in logical_lines(text) for key, value in pairs(line)}
