# -*- coding: utf-8 -*-
"""What slurmctld and slurmd said of a configuration while they read it.

Pure functions, fed with what the daemons printed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .conf import SlurmConfError, expand

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

LINE = re.compile(r"^[^\s:]+: (?:(error|fatal): +)?(.*)$")
READY = "Running as primary controller"
# slurmd waits 19 seconds for a device, and then ends (gres.c).
NO_DEVICE = "Waiting for gres.conf file"

# Errors that are about the texts: Slurm goes on after most of them, with something else than what was declared.
# Messages: src/common/parse_config.c, parse_value.c, read_config.c, gres.c, src/slurmctld/read_config.c,
# src/plugins/topology/tree/topology_tree.c of 19.05 to 22.05.
OF_THE_TEXTS = re.compile("|".join([
    r"Parsing error at unrecognized key", r"Parse error in file ", r"is not a valid number", r"is out of range",
    r"is less than zero", r"is greater than \d", r"is not a valid option for", r"^Bad ", r"mutually exclusive",
    r'^The option "[^"]*" is defunct', r"^Invalid (GRES|parameter|\w+Param(eter)?s?\b|\w*(Flag|Debug))",
    r"^Ignoring (gres\.conf record|invalid|bad)", r"Invalid hostnames in switch configuration",
    r"lookup failure for node", r"match no Sockets", r"^cannot find \S+ plugin for", r"^Partition=\S+ .* is invalid",
]))
# The same, as information only.
GRES_MISMATCH = re.compile(r"^WARNING: A line in gres\.conf for GRES .* more configured than expected")
# What ends only this instance, or says nothing of the texts: a port that is taken by now, a database that it does
# not have, a device that is not there.
NOT_OF_THE_TEXTS = re.compile("|".join([
    r"Address already in use", r"slurmdbd", r"can't stat gres\.conf file", r"not a valid character or block device",
    r"[Mm]unge", r"No space left", r"Cannot allocate memory",
]))
# Mere companions of another message: which file it was, which of several names.
COMPANION = re.compile("|".join([
    r"^Unable to process configuration file", r"^error opening/reading ", r"^Could not open/read/parse ",
    r"^something wrong with opening/reading ", r"lookup failure for node", r"^[Ff]ailed to initialize \S+ plugin",
]))
PARSE_ERROR = re.compile(r"^Parse error in file (\S+) line (\d+): ")
# Of which file a message is that names neither file nor parameter.
OF_FILE = (("switch", "topology.conf"), ("gres.conf", "gres.conf"), ("cgroup", "cgroup.conf"))
# What Slurm calls a line, and the key with which it begins.
OF_LINE = {"node": "nodename", "nodes": "nodename", "partition": "partitionname", "switch": "switchname",
           "NodeHostName": "nodename"}
MOST = 6
MOST_PLACES = 3


def said(output):
    # type: (str) -> list[tuple[str, str]]
    """Return [(level, message)] of a daemon's output; the level is "error", "fatal" or "" for information."""
    messages = []
    for line in output.splitlines():
        match = LINE.match(line)
        if match:
            messages.append((match.group(1) or "", match.group(2).strip()))
    return messages


def refusals(output):
    # type: (str) -> list[str]
    """Return the messages that refuse the texts, each once and in order."""
    refusing = []
    for level, message in said(output):
        if NOT_OF_THE_TEXTS.search(message):
            continue
        wrong = level == "fatal" or (level == "error" and OF_THE_TEXTS.search(message)) or GRES_MISMATCH.match(message)
        if wrong and message not in refusing:
            refusing.append(message)
    return [message for message in refusing if not COMPANION.search(message)] or refusing


def foreign(output):
    # type: (str) -> str
    """Return the last error that says nothing of the texts, "" where there is none."""
    messages = [message for level, message in said(output) if level and NOT_OF_THE_TEXTS.search(message)]
    return messages[-1] if messages else ""


def last_words(output):
    # type: (str) -> str
    """Return what a daemon said last that was not mere information, or its last line."""
    lines = said(output)
    grave = [message for level, message in lines if level]
    return (grave or [message for _level, message in lines] or ["nothing"])[-1]


def placed(messages, texts):
    # type: (list[str], dict[str, str]) -> list[str]
    """Return the messages, each with the lines of the texts that it is about; texts: {file name: text}.

    The place that Slurm gives behind a message (Parse error in file ... line ...) becomes that message's own.
    """
    rows, told = [], set()  # type: list[list[Any]], set[int]
    for message in messages:
        parse = PARSE_ERROR.match(message)
        if not parse:
            rows.append([message, about(message, texts)])
            continue
        name, number = parse.group(1).split("/")[-1], int(parse.group(2))
        lines = texts.get(name, "").splitlines()
        if not rows or number > len(lines):
            rows.append([message, []])
            continue
        if id(rows[-1]) not in told:
            told.add(id(rows[-1]))
            rows[-1][1] = []
        rows[-1][1].append((name, number, " ".join(lines[number - 1].split())))
    return [_with_places(message, lines) for message, lines in rows]


def about(message, texts):
    # type: (str, dict[str, str]) -> list[tuple[str, int, str]]
    """Return [(file name, number, line)] that a message is about, as far as its words say.

    A word is a parameter if it has a capital letter, as all of Slurm's have. Of the lines that have one, those count
    whose values have another word of the message.
    """
    words = set(re.findall(r"[\w./-]+(?:\[[\d,-]+\])?(?::[\w:]+)?", message))
    keys = {word.lower() for word in words if word != word.lower()}
    keys |= {OF_LINE[word] for word in words if word in OF_LINE}
    hinted = [name for hint, name in OF_FILE if hint in message.lower()]
    for name in hinted + ["slurm.conf"] + sorted(texts):
        places = _about(words, keys, name, texts.get(name, ""), name in hinted)
        if places:
            return places
    return []


def _about(words, keys, name, text, by_value_alone):
    # type: (set[str], set[str], str, str, bool) -> list[tuple[str, int, str]]
    by_key, by_value, by_path = [], [], []
    names = {name for word in words for name in values(word) if not name.isdigit()}
    for number, line in enumerate(text.splitlines(), 1):
        pairs = re.findall(r'([A-Za-z0-9_]+)=("[^"]*"|\S+)', re.sub(r"(^|[^\\])#.*$", r"\1", line))
        entry = (name, number, " ".join(line.split()))
        inside = set().union(*[values(value) for _key, value in pairs]) if pairs else set()
        if keys & {key.lower() for key, _value in pairs}:
            by_key.append(entry)
            if names & inside:
                by_value.append(entry)
        if any(by_value_alone or "/" in word for word in names & inside):
            by_path.append(entry)
    return by_value or by_key or by_path


def values(text):
    # type: (str) -> set[str]
    """Return the names that a value may be about: itself, its parts and those of a host list."""
    text = text.strip('"')
    names = set(re.split(r"[,:]", text)) | {text}
    try:
        names |= set(expand(text))
    except SlurmConfError:
        pass
    return names - {""}


def _with_places(message, lines):
    # type: (str, list[tuple[str, int, str]]) -> str
    if not lines:
        return message
    shown = ["%s line %d: %s" % (name, number, _hidden(line)) for name, number, line in lines[:MOST_PLACES]]
    if len(lines) > MOST_PLACES:
        shown.append("%d more" % (len(lines) - MOST_PLACES))
    return "%s (%s)" % (message, "; ".join(shown))


def _hidden(line):
    # type: (str) -> str
    line = re.sub(r"(?i)(\w*Pass=)\S+", r"\1...", line)
    return line if len(line) <= 120 else line[:117] + "..."
