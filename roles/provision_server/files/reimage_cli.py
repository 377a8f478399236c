# -*- coding: utf-8 -*-
"""hal-reimage: where reimages are, and ending one, on the machine that nodes are installed from. Python 2.7 and 3.

Exit status: 0 done, 2 refused (a line on standard error), 3 somebody else wrote the record meanwhile, 4 of status
--watch: something goes on, and nobody drives it.
"""

from __future__ import absolute_import, division, print_function

import argparse
import fcntl
import json
import os
import pwd
import re
import struct
import sys
import termios
import time

from hal_node.slurm.conf import fold
from hal_node.slurm.drains import REIMAGE

import provision_store
import reimage_slurm
import reimage_status as shown
import reimage_store as store
from provision_common import Place, Problem, exit_status, standard_input, stamp, tell, text

SETTINGS = "/etc/hal/provision.json"
WATCH_SECONDS = 2
LEFT = ("A playbook that still drives it stops by itself, the next time it looks. What was disarmed boots its disk from"
        " its next start on.")

FORGET = (u"%s: its BMC may have been told to boot from the network, once. A playbook that still drives it takes that"
          u" back. Without one: ansible-playbook playbooks/power.yml -e power_nodes=%s -e power_action=boot"
          u" -e power_boot=none")


def _parser():
    parser = argparse.ArgumentParser(
        prog="hal-reimage", description="Where the reimages of nodes are. playbooks/reimage.yml drives them.")
    parser.add_argument("--settings", default=SETTINGS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    looking = commands.add_parser("status", help="which node is at which step, since when, waiting for what")
    looking.add_argument("node", metavar="NODE", nargs="*", help="without one: all of the last days")
    looking.add_argument("--watch", action="store_true", help="again and again, until nothing goes on (exit status 0)"
                         " or nobody drives what does (4)")
    commands.add_parser("show", help="all that is known of one reimage").add_argument("node", metavar="NODE")
    commands.add_parser("abort", help="end reimages: the nodes stay drained, and boot their disks").add_argument(
        "node", metavar="NODE", nargs="+")
    reading = commands.add_parser("read", help="records, as JSON")
    reading.add_argument("node", metavar="NODE", nargs="*")
    commands.add_parser("driven", help="mark that these nodes are being driven, by who does that").add_argument(
        "node", metavar="NODE", nargs="+")
    commands.add_parser("write", help="write a record, from standard input").add_argument("node", metavar="NODE")
    return parser


def run(place, asked):
    """Do what the command line says; return what to print."""
    if asked.command == "status":
        return watch(place, asked.node) if asked.watch else _table(place, asked.node)
    if asked.command == "show":
        return _sheet(place, asked.node)
    if asked.command == "abort":
        return abort(place, asked.node)
    if asked.command == "read":
        records, problems = store.read_all(place, asked.node)
        return _json({"nodes": records, "problems": problems})
    if asked.command == "driven":
        return store.driven(place, asked.node)
    if asked.command == "write":
        return _json(store.write(place, asked.node, _given(asked.node)))
    raise Problem("say what to do; hal-reimage --help")


def _json(data):
    return json.dumps(data, indent=1, sort_keys=True)


def _given(name):
    raw = standard_input().read(store.MOST_BYTES + 1)
    if len(raw) > store.MOST_BYTES:
        raise Problem("%s: more than %d bytes on standard input are not a record" % (name, store.MOST_BYTES))
    try:
        return json.loads(raw.decode("utf-8"))
    except ValueError:
        raise Problem("%s: no record on standard input; JSON" % name)


# ---------------------------------------------------------------- looking
def _seen(place, names):
    """Return all records and problems: which nodes wait for their turn is known of the others of their call."""
    for name in names:
        if not os.path.lexists(store.path_of(place, name)):
            place.node(name)  # a slip of the pen is not a node that was never reimaged
    return store.read_all(place)


def _table(place, names):
    now = time.time()
    records, problems = _seen(place, names)
    return _drawn(shown.rows(records, problems, place.names(), _looks(place, records, now), now, names), now)


def _drawn(rows, now):
    return u"\n".join(shown.table(rows, now, _width(), _coloured()))


def _looks(place, records, now):
    """Return when each was driven last. One whose record was removed just now is not what nobody drives."""
    return {name: store.looked(place, name) or now for name in records}


class Undriven(Problem):
    """What goes on is driven by nobody."""

    status = 4


def watch(place, names):
    """Show it until nothing goes on, and return the last of it. Not on a terminal: print a line for each change.

    Undriven when nobody drives what goes on: nothing would ever change.
    """
    last, quiet = {}, True
    while True:
        now = time.time()
        records, problems = _seen(place, names)
        looks = _looks(place, records, now)
        rows = shown.rows(records, problems, place.names(), looks, now, names)
        goes = sorted(name for row in rows if row.state in ("going", "left") for name in row.nodes)
        if sys.stdout.isatty():
            if not goes:
                return u"\033[H\033[J" + _drawn(rows, now)
            tell(u"\033[H\033[J" + _drawn(rows, now))
        else:
            for name, line in sorted(shown.changes(records, looks, now, names).items()):
                if last.get(name, "" if name in goes else line) != line:
                    tell(u"%s %s" % (stamp(now), line))
                    quiet = False
                last[name] = line
            if not goes:
                return shown.NOTHING if quiet else ""
        if not any(row.state == "going" for row in rows):
            raise Undriven(u"nobody drives %s any more" % fold(goes))
        time.sleep(WATCH_SECONDS)


def _sheet(place, name):
    records, problems = _seen(place, [name])
    if name in problems:
        raise Problem(problems[name])
    now = time.time()
    looks = _looks(place, records, now)
    lines = [u"%s: waiting for %s" % (name, row.words) for row in shown.queue(records, looks, now) if name in row.nodes]
    if name not in records:
        return u"\n".join(lines) or u"%s: no reimage of it is known" % name
    known = name in place.names()
    try:
        boots = shown.boots_now(provision_store.status(place, [name])["nodes"][name]) if known else u""
    except Problem as problem:
        boots = text(problem)
    written = os.path.getmtime(store.path_of(place, name))
    return u"\n".join(lines + shown.sheet(records[name], known, boots, written, looks[name], now, _width()))


def _coloured():
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"


def _width():
    """Return the columns of the terminal. Python 2.7 has nothing for that."""
    try:
        columns = struct.unpack("HHHH", fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8))[1]
    except (IOError, OSError, ValueError, AttributeError):
        columns = 0
    return columns or shown.WIDTH


# ---------------------------------------------------------------- ending one
def abort(place, names):
    """End the reimages of these nodes; return what was done. Problem, after all that could be done, for what could not.

    The record first: from then on nobody drives the node. Then what it boots, then Slurm.
    """
    who, wrong, ended = _who(), [], []
    for name in names:
        try:
            record = store.abort(place, name, who)
            tell(u"%s: %s" % (name, shown.clean(record["reason"])))
        except store.NothingOn as problem:
            wrong.append(text(problem))
            continue
        except Problem as problem:  # a damaged record, a full disk: all the same its node is to boot its disk
            wrong.append(text(problem))
            record = None
        ended.append(name)
        for part in (_disarm, _drain):
            try:
                tell(u"%s: %s" % (name, shown.clean(part(place, name, record, who))))
            except Problem as problem:
                wrong.append(u"%s: %s" % (name, text(problem)))
        if record is None or record["step"] in ("boot", "install"):
            tell(FORGET % (name, name))
    if ended:
        tell(LEFT)
    if wrong:
        raise Problem(u"\n".join(wrong))
    return ""


def _disarm(place, name, record, who):
    began = provision_store.unfinished(place, name)
    done = provision_store.disarm(place, name, forget=False)
    if began:
        return u"%s; its disk was erased, and it boots nothing or half a system: %s" % (done, began)
    return done


def _drain(place, name, record, who):
    if record is not None and record["step"] == store.STEPS[0]:
        return u"Slurm was not asked to do anything yet, and has it as it was"
    step = u"" if record is None else u" at step %s" % record["step"]
    before = (record or {}).get("drained_before")
    drained = u" (%s had drained it before: %s)" % (before["by"], before["reason"]) if before else u""
    return reimage_slurm.drain(name, shown.clean(u"%s: aborted by %s%s%s" % (REIMAGE, who, step, drained)))


def _who():
    user = os.environ.get("SUDO_USER")
    if not user:
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            user = "uid %d" % os.geteuid()
    return re.sub(r"[^A-Za-z0-9_.@ -]", "?", user)


def main(arguments=None):
    """Run the program and return its exit status."""
    asked = _parser().parse_args(arguments)
    return exit_status("hal-reimage", lambda: run(Place(asked.settings), asked))


if __name__ == "__main__":
    sys.exit(main())
