"""Units that roles write are started by something, again when they have to, and make room for jobs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.contract import declared
from tests.contract.project import Finding, rule, text_of
from tests.contract.rules import daemons, places, selinux
from tests.contract.rules.centos7_systemd import directives

ROOM = ("Nice", "IOSchedulingClass")
# Elsewhere than in the tables: every node has them.
BASE = re.compile(r"/bin/\w+|/usr/bin/python3?")
Settings = dict[tuple[str, str], list[str]]


@rule
def services_are_whole(root: Path) -> Iterator[Finding]:
    """A service says what it is, which program it starts, and how systemd knows that it is up; it is started."""
    for path, settings in _templates(root, ".service"):
        at = _lines(path)
        timed = any(path.with_name(path.name.replace(".service.", kind)).is_file() for kind in (".timer.", ".path."))
        if not settings.get(("Unit", "Description")):
            yield Finding(path, at("[Unit]"), "no Description; say what it is for")
        if not settings.get(("Service", "ExecStart")):
            yield Finding(path, at("[Service]"), "no ExecStart")
        if settings.get(("Service", "Type")) != ["oneshot"] and not settings.get(("Service", "Restart")):
            yield Finding(path, at("[Service]"), "no Type=oneshot, so a daemon: Restart says what becomes of it")
        if not (timed or "@" in path.name or settings.get(("Install", "WantedBy"))):
            yield Finding(path, at("[Service]"), "nothing starts it: neither WantedBy nor a timer or path of its name")
        for name in ROOM if timed and not settings.get(("Install", "WantedBy")) else ():
            if not settings.get(("Service", name)):
                yield Finding(path, at("[Service]"), f"no {name}: it works by the way, and jobs come first")


@rule
def timers_go_on(root: Path) -> Iterator[Finding]:
    """A timer has a time that systemd reads, makes up for what a node that was off has missed, and starts at boot."""
    for path, settings in _templates(root, ".timer"):
        at = _lines(path)
        calendar = settings.get(("Timer", "OnCalendar"), [])
        again = bool(settings.get(("Timer", "OnUnitActiveSec")))
        if not calendar and not (again and settings.get(("Timer", "OnBootSec"))):
            yield Finding(path, at("[Timer]"), "neither OnCalendar nor OnBootSec with OnUnitActiveSec: it ends")
        if calendar and "hourly" not in calendar and settings.get(("Timer", "Persistent")) != ["true"]:
            yield Finding(path, at("[Timer]"), "no Persistent=true: what a node that was off has missed is left out")
        if settings.get(("Install", "WantedBy")) != ["timers.target"]:
            yield Finding(
                path,
                at("[Install]") if ("Install", "WantedBy") in settings else at("[Timer]"),
                "no WantedBy=timers.target: it does not start at boot",
            )
        for value in calendar:
            if fault := _no_time(value):
                yield Finding(path, at("OnCalendar"), f"OnCalendar={value}: {fault}")


@rule
def programs_of_units_are_there(root: Path) -> Iterator[Finding]:
    """What a unit starts is written by a role, or comes with a package of CentOS 7.7."""
    there = {one.key for one in declared.of_project(root).resources if one.kind == "file"}
    there |= {str(entry["program"]) for entry in selinux.table()["units"].values()}
    there |= {path for entry in places.table().values() for path in entry["files"]}
    for kind in (".service", ".unit.conf"):
        for path, settings in _templates(root, kind):
            for (_, name), values in settings.items():
                for value in values if re.fullmatch(r"Exec\w+", name) else ():
                    program = value.lstrip("-@").partition(" ")[0]
                    if program not in there and not BASE.fullmatch(program):
                        yield Finding(path, _lines(path)(name), f"{program}: no role writes it, no package brings it")


def _templates(root: Path, kind: str) -> Iterator[tuple[Path, Settings]]:
    """(template, what is set in it) of units, once for each text that a host gets."""
    for (path, _), texts in sorted(daemons.texts_of(root).items()):
        for text in sorted({one.text for one in texts if not one.fault} if path.name.endswith(f"{kind}.j2") else ()):
            settings: Settings = {}
            for _, section, name, value in directives(text):
                settings.setdefault((section, name), []).append(value)
            yield path, settings


def _lines(path: Path) -> Callable[[str], int]:
    """Where a word begins a line of a template; the first line when it does not."""
    lines = [re.sub(r"{#.*?#}", "", line) for line in text_of(path).splitlines()]
    return lambda word: next((number for number, line in enumerate(lines, 1) if line.startswith(word)), 1)


@cache
def _no_time(value: str) -> str:
    """What systemd says of a time that it does not understand. Without systemd here nobody is asked."""
    if not shutil.which("systemd-analyze"):
        return ""
    asked = subprocess.run(["systemd-analyze", "calendar", value], capture_output=True, text=True, check=False)
    return asked.stderr.strip().splitlines()[0] if asked.returncode else ""
