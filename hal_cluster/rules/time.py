"""The time: a parser of the lines that the role writes for chronyd, and what a node had before.

It is a parser, not the program: chronyd reads a file without starting from release 4.0 on (option -p); CentOS 7.7 has
3.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hal_inventory.printable import printable

SERVER = r"[A-Za-z0-9_](?:[A-Za-z0-9._:-]*[A-Za-z0-9_])?\.?"
OPTION = (
    r"(?:auto_offline|burst|noselect|offline|prefer|require|trust|xleave"
    r"|(?:asymmetry|key|maxdelay(?:ratio|devratio)?|maxpoll|maxsamples|mindelay|minpoll|minsamples|minstratum"
    r"|offset|polltarget|port|presend|version|filter) \S+)"
)
NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
FOLDER = r"/\S*"
LINES = {
    "server": (rf"{SERVER}(?: {OPTION})* iburst", "a name or an address, and options of a server"),
    "driftfile": (FOLDER, "a path"),
    "logdir": (FOLDER, "a path"),
    "makestep": (rf"{NUMBER} -?[0-9]+", "a number of seconds, and a whole number of updates"),
    "rtcsync": ("", "nothing"),
    "allow": (r"[0-9a-fA-F.:]+/[0-9]{1,3}", "a network"),
    "local": (r"stratum (?:[1-9]|1[0-5]) orphan", "stratum 1 to 15 orphan"),
}
"""Directives that the template uses, what may follow, and that in words: chrony.conf(5) of chrony 3.4."""


def chrony_problems(text: str) -> list[str]:
    """Return a sentence for each line that chronyd 3.4 would not start with. Comments and empty lines do not count.

    `text`: the chrony.conf that the role writes. Lines have the form of LINES, from chrony.conf(5).
    """
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        directive, _, rest = line.strip().partition(" ")
        if not directive or directive[0] in "#!;%":
            continue
        form = LINES.get(directive)
        if form is None:
            problems.append(f"chrony.conf, line {number}: {directive!r} is not a directive that this role writes")
        elif re.fullmatch(form[0], rest) is None:
            problems.append(f"chrony.conf, line {number}: {directive} {rest!r}: {form[1]} should follow {directive}")
    return problems


MINE = '# Written by the role "time"'
CHRONY = "/etc/chrony.conf"
ABSENT = "No such file or directory"
MOST_SHOWN = 200  # characters of one file's lines


def foreign(answer: Mapping[str, Any]) -> str:
    """Return what a node was configured with before this role, in words; empty where this role has been, or nobody.

    `found`: what grep -H said of the files, "PATH:LINE". What cannot be read is said as well.
    `found` is a result with stdout_lines and stderr_lines; the files are those of chronyd, ntpd and systemd-timesyncd.
    """
    files: dict[str, list[str]] = {}
    for text in answer["stdout_lines"]:
        path, _, line = text.partition(":")
        files.setdefault(path, []).append(" ".join(line.split()))
    if any(line.startswith(MINE) for line in files.get(CHRONY, [])):
        return ""
    said = [f"{path} has {printable('; '.join(lines), MOST_SHOWN)}" for path, lines in sorted(files.items())]
    said += [printable(line, MOST_SHOWN) for line in answer["stderr_lines"] if ABSENT not in line]
    return ". ".join(said)
