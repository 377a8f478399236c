# -*- coding: utf-8 -*-
"""What /etc/subuid and /etc/subgid have, and what they get: lines `owner:start:count`. Pure.

Who reads them: newuidmap (any line of the user, by name or uid), and Singularity with its setuid starter (the first
line of the user with exactly 65536 ids, else the largest; "!" before it: disabled by `singularity config fakeroot
--disable`). So our lines stand first, by uid, and lines of others follow as they were. Source: Singularity 3.5.3,
internal/pkg/fakeroot/fakeroot.go.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

NUMBER = re.compile(r"[0-9]{1,10}\Z")
LOWEST = 600000000  # ranges of slots end above it; what useradd gives is below


def decoded(content):
    # type: (bytes) -> str
    """Return bytes of a file as text in which each byte is a character, so that lines of others stay as they are."""
    return content.decode("latin-1")


def encoded(text):
    # type: (str) -> bytes
    """Return the bytes that a text of decoded() came from."""
    return text.encode("latin-1")


def readable(text):
    # type: (str) -> str
    """Return a text of decoded() for people."""
    return encoded(text).decode("utf-8", "replace")


def lines_of(text):
    # type: (str) -> list[str]
    """Return the lines of a text of decoded(). Not splitlines(), to which some bytes of UTF-8 end a line."""
    return text[:-1].split("\n") if text.endswith("\n") else text.split("\n") if text else []


def parse(text):
    # type: (str) -> list[dict[str, Any]]
    """Return a dictionary for each line: number, line, owner, disabled, start, count; start None: no range."""
    entries = []
    for number, line in enumerate(lines_of(text), 1):
        entry = {"number": number, "line": line, "owner": None, "disabled": False, "start": None, "count": None}
        parts = line.strip().split(":")
        if len(parts) >= 3 and parts[0].lstrip("!"):
            entry["disabled"] = parts[0].startswith("!")
            entry["owner"] = parts[0].lstrip("!")
            if NUMBER.match(parts[1]) and NUMBER.match(parts[2]) and int(parts[2]) > 0:
                entry["start"], entry["count"] = int(parts[1]), int(parts[2])
        entries.append(entry)
    return entries


def line_of(user, disabled):
    # type: (dict[str, Any], bool) -> str
    """Return the line of a user."""
    return "%s%d:%d:%d" % ("!" if disabled else "", user["uid"], user["start"], user["count"])


def is_own(entry, user):
    # type: (dict[str, Any], dict[str, Any]) -> bool
    """Tell whether a line gives a user the declared range, whoever wrote it."""
    return (entry["owner"] in (user["name"], str(user["uid"])) and entry["start"] == user["start"]
            and entry["count"] == user["count"])


def other_slot(entry, user):
    # type: (dict[str, Any], dict[str, Any]) -> int | None
    """Return the number of the slot that a line gives a user, other than the declared one; None if it gives none."""
    if entry["owner"] not in (user["name"], str(user["uid"])) or is_own(entry, user) or entry["start"] < LOWEST:
        return None
    steps, rest = divmod(user["start"] - entry["start"], user["count"])
    return user["slot"] + steps if entry["count"] == user["count"] and rest == 0 else None


def ends(start, count):
    # type: (int, int) -> str
    """Return a range as text: first and last id."""
    return "%d to %d" % (start, start + count - 1)


def overlap(start, count, other_start, other_count):
    # type: (int, int, int, int) -> bool
    """Tell whether two ranges have an id in common."""
    return start < other_start + other_count and other_start < start + count


def problems(path, entries, users):
    # type: (str, list[dict[str, Any]], list[dict[str, Any]]) -> list[str]
    """Return a sentence for each line of somebody else that has an id of a declared range, or a user's other slot."""
    sentences = []
    for entry in entries:
        if entry["start"] is None:
            continue
        for user in users:
            other = other_slot(entry, user)
            if other is not None:
                sentences.append(
                    "%s:%d: %s has slot %d, and users.yml says %d: a slot is for ever, because files have its numbers;"
                    " say %d there (another checkout may have it)"
                    % (path, entry["number"], user["name"], other, user["slot"], other))
            if is_own(entry, user) or not overlap(user["start"], user["count"], entry["start"], entry["count"]):
                continue
            if (entry["start"], entry["count"]) == (user["start"], user["count"]):
                sentences.append(
                    "%s:%d: slot %d was given to %s and is never given again; %s needs another in users.yml, and the"
                    " entry of %s has to be there (another checkout may have it)"
                    % (path, entry["number"], user["slot"], readable(entry["owner"]), user["name"],
                       readable(entry["owner"])))
                continue
            sentences.append(
                "%s:%d: %s has ids %s, and slot %d of %s is %s: who owns both could read the other's files; remove"
                " the line if nobody needs it, or give %s another slot in users.yml"
                % (path, entry["number"], readable(entry["owner"]), ends(entry["start"], entry["count"]), user["slot"],
                   user["name"], ends(user["start"], user["count"]), user["name"]))
    return sentences


def shadowed(path, entries, users):
    # type: (str, list[dict[str, Any]], list[dict[str, Any]]) -> list[str]
    """Return a sentence for each user of whom Singularity would take another range: the first that is large enough."""
    sentences = []
    for user in users:
        for entry in entries:
            if entry["owner"] not in (user["name"], str(user["uid"])) or entry["count"] != user["count"]:
                continue
            if not is_own(entry, user):
                sentences.append("%s:%d: this line of %s comes before the declared one, and Singularity takes the first"
                             % (path, entry["number"], user["name"]))
            break
    return sentences


def taken_ids(path, text, users):
    # type: (str, str, list[dict[str, Any]]) -> list[str]
    """Return a sentence for each local account or group (lines of passwd or group) whose number is in a range."""
    sentences = []
    for number, line in enumerate(lines_of(text), 1):
        parts = line.split(":")
        if len(parts) < 3 or not NUMBER.match(parts[2]):
            continue
        for user in users:
            if overlap(user["start"], user["count"], int(parts[2]), 1):
                sentences.append("%s:%d: %s has number %s, which is in slot %d of %s (%s): give one of them another"
                             % (path, number, readable(parts[0]), parts[2], user["slot"], user["name"],
                                ends(user["start"], user["count"])))
    return sentences


def planned(entries, users, enable_ok):
    # type: (list[dict[str, Any]], list[dict[str, Any]], bool) -> tuple[str, list[str]]
    """Return (text of the file, names of users whose line somebody disabled here and that stay so)."""
    lines, kept_disabled = [], []
    for user in sorted(users, key=lambda user: user["slot"]):
        own = [entry for entry in entries if is_own(entry, user)]
        disabled = not user["enabled"]
        if not disabled and own and own[0]["disabled"] and not enable_ok:
            disabled = True
            kept_disabled.append(user["name"])
        lines.append(line_of(user, disabled))
    lines += [entry["line"] for entry in entries if not any(is_own(entry, user) for user in users)]
    return "".join(line + "\n" for line in lines), kept_disabled
