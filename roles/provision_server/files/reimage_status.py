# -*- coding: utf-8 -*-
"""Where reimages are, for people: a row for equal situations, and all that is known of one node. Python 2.7 and 3.

Pure: what is shown is made of records and a time, and nothing is read or written here.
"""

from __future__ import absolute_import, division, print_function

import calendar
import re
import textwrap
import time

from hal_node.slurm.conf import fold
from provision_common import clean, stamp
from provision_store import stopped_words
from reimage_store import STEPS

WIDTH = 80
LEAST_WORDS, LEAST_NAMES = 24, 10
SHOWN_DAYS = 7
NOTHING = u"no reimage is under way"
# Whoever drives nodes says so every minute. One that cannot reach this machine gives up after 15 min of trying, which
# may begin with a long look (hal_cluster/reimage/drive.py); going on beside it is safe, one of the two stops.
SILENT_SECONDS = 20 * 60
# From the end of a node to the first record of the next there are a few calls of the controller.
NEXT_SECONDS = 60
HEADS = (u"nodes", u"step", u"since", u"waiting for, or why")
COLOURS = {"left": "31", "failed": "31", "aborted": "33", "done": "32"}
LAST = len(STEPS) - 1


def moment(words):
    """Return the seconds since 1970 of a stamp."""
    return calendar.timegm(time.strptime(words, "%Y-%m-%dT%H:%M:%SZ"))


def duration(seconds):
    """Return a duration for people, in one unit or two."""
    seconds = max(0, int(seconds))
    if seconds < 60:
        return u"%d s" % seconds
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 60:
        return u"%d min" % minutes
    if hours < 24:
        return u"%d h %d min" % (hours, minutes % 60)
    return u"%d d %d h" % (hours // 24, hours % 24)


def step_of(record):
    """Return the step as people count it: 6/11 install."""
    at = STEPS.index(record["step"])
    return u"%d/%d %s" % (at, LAST, record["step"]) if at else record["step"]


def time_of(record):
    """Return when what is shown of a record began to be so: its step, or its end. "" when it does not say."""
    return (record["ended"] if record["state"] != "going" else "") or record["since"] or record["run"]["began"]


# ---------------------------------------------------------------- the table
class Row(object):
    """One situation, and the nodes that are in it."""

    def __init__(self, state, step, words, more=()):
        self.state, self.step, self.words, self.more = state, step, words, more
        self.nodes, self.times, self.silences = [], [], []

    def cells(self, now):
        """Return what the table shows. Of several nodes, since when the first of them has been there."""
        passed = duration(now - min(self.times)) if self.times else u""
        if passed and self.state not in ("going", "left"):
            passed += u" ago"
        return fold(self.nodes), self.step, passed, self.words


def silence(record, looked, now):
    """Return for how many seconds nobody has driven a node that goes on; 0 for one that is driven, or has ended."""
    silent = now - looked
    return silent if record["state"] == "going" and silent >= SILENT_SECONDS else 0


def queue(records, looked, now):
    """Return rows of nodes that a call is to come to, and that have no record of it: their turn has not come.

    Of a call that goes on, and of one that nobody drives any more; of one that ended they are as if nobody had asked.
    A node that goes on in another call is where that one is; one that nobody drives there waits here, if somebody does.
    """
    calls, queued, driven, left = {}, [], set(), set()
    for name, record in sorted(records.items()):
        if record["state"] == "going":
            (left if silence(record, looked[name], now) else driven).add(name)
    for name, record in sorted(records.items()):
        calls.setdefault(_call(record["run"]), {})[name] = record
    for _, begun in sorted(calls.items(), key=repr):
        run = begun[min(begun)]["run"]
        later = {name for name in records if records[name]["run"]["began"] > run["began"]}
        rest = [name for name in run.get("nodes", ()) if name not in begun and name not in driven | later]
        going = [name for name in begun if begun[name]["state"] == "going"]
        bad = [name for name in begun if begun[name]["state"] in ("failed", "aborted")]
        if going and left.issuperset(going):
            rest = [name for name in rest if name not in left]
            row = Row("left", STEPS[0], u"a turn after %s, which nobody drives; the same command goes on" % fold(going))
        elif going and bad and not run.get("go_on"):
            rest = [name for name in rest if name not in left]
            row = Row("going", STEPS[0], u"a turn after %s; without reimage_go_on=true there is none, because %s failed"
                      % (fold(going), fold(bad)))
        elif going:
            row = Row("going", STEPS[0], u"a turn after %s" % fold(going))
        elif (run.get("go_on") or not bad) and now - _ended_last(begun, looked) < NEXT_SECONDS:
            row = Row("going", STEPS[0], u"a turn")
        else:
            continue
        if rest:
            row.nodes, row.times = rest, [moment(run["began"])]
            queued.append(row)
    return queued


def _ended_last(begun, looked):
    # An abort is not a sign of life of the call that drives it.
    return max([looked[name] for name in begun if begun[name]["state"] != "aborted"] or [0])


def _call(run):
    return run["code"], run["by"], run["began"], run.get("call")


def rows(records, problems, known, looked, now, wanted=()):
    """Return the rows of a table: what goes on, what nobody drives, what failed or cannot be read, what ended of late.

    records: {name: record}. problems: {name: text}. known: names of the model. looked: {name: seconds} of all records,
    when somebody drove it last. wanted: of these nodes alone, and then what ended long ago, too.
    """
    by_situation = {}
    waiting = set()
    for number, row in enumerate(queue(records, looked, now)):
        waiting.update(row.nodes)
        row.nodes = [name for name in row.nodes if name in wanted or not wanted]
        if row.nodes:
            by_situation[number] = row
    for name, record in sorted(records.items()):
        since = moment(time_of(record))
        if (wanted and name not in wanted) or (name in waiting and record["state"] == "going"):
            continue
        if record["state"] in ("done", "aborted") and not wanted and now - since > SHOWN_DAYS * 86400:
            continue
        silent = silence(record, looked[name], now)
        row = _row(by_situation, record, bool(silent), u"" if name in known else u"it is no longer in cluster.yml")
        row.nodes.append(name)
        row.times.append(since)
        row.silences.append(silent)
    shown = sorted(by_situation.values(), key=lambda row: (_ORDER[row.state], _at(row), -min(row.times), row.nodes))
    for row in shown:
        if row.state == "failed":
            row.more = [_next(row.nodes)]
        elif row.silences and row.state == "left":
            row.more = [_left(row.nodes, u"for %s" % duration(min(row.silences)))]
    damaged = []
    for name, words in sorted(problems.items()):
        if wanted and name not in wanted:
            continue
        unread = Row("failed", u"not known", clean(words),
                     [u"look at the file; remove it when nothing can be made of it"])
        unread.nodes.append(name)
        damaged.append(unread)
    ended = [row for row in shown if row.state in ("done", "aborted")]
    return shown[:len(shown) - len(ended)] + damaged + ended


_ORDER = {"going": 0, "left": 1, "failed": 2, "done": 3, "aborted": 3}


def _row(by_situation, record, silent, gone):
    # What goes on is one situation whoever confirmed it. What ended, ended together or not.
    state, code = record["state"], record["run"]["code"]
    if state == "going":
        step, words, code = step_of(record), record["waiting"], ""
        state = "left" if silent else state
    elif state == "failed":
        step, words = u"failed: %s" % step_of(record), record["reason"]
    else:
        step, words = state, record["reason"] or record["plan"]["image"]["folder"]
    words = clean(u"; ".join(part for part in (words, gone) if part))
    return by_situation.setdefault((state, step, words, code), Row(state, step, words))


def _at(row):
    # The furthest first; what ended is sorted by its time alone.
    number = row.step.split(u"/")[0].split(u" ")[-1]
    return -int(number) if number.isdigit() else 0


def _next(nodes):
    return u"look: hal-reimage show %s; again: the same command; give up: hal-reimage abort %s" % (
        nodes[0], u" ".join(sorted(nodes)))


def _left(nodes, how_long):
    return u"nobody has driven %s %s: give the same command again to go on, or: hal-reimage abort %s" % (
        u"it" if len(nodes) == 1 else u"them", how_long, u" ".join(sorted(nodes)))


def table(shown, now, width=WIDTH, colour=False):
    """Return the lines of a table that fits the width."""
    if not shown:
        return [NOTHING]
    cells = [row.cells(now) for row in shown]
    widths = [max(len(line[at]) for line in [HEADS] + cells) for at in range(3)]
    # Many nodes with names of several kinds: their names take lines too.
    widths[0] = min(widths[0], max(LEAST_NAMES, width - widths[1] - widths[2] - 6 - LEAST_WORDS))
    rest = max(LEAST_WORDS, width - sum(widths) - 6)
    lines = _lines(HEADS, widths, rest)
    for row, line in zip(shown, cells):
        made = _lines(line, widths, rest)
        for words in row.more:
            made += [u" " * (widths[0] + 2) + part
                     for part in textwrap.wrap(words, max(LEAST_WORDS, width - widths[0] - 2), break_on_hyphens=False)]
        if colour and row.state in COLOURS:
            made = [u"\033[%sm%s\033[0m" % (COLOURS[row.state], part) for part in made]
        lines += made
    return lines


def _lines(cells, widths, rest):
    names = _broken(cells[0], widths[0])
    words = textwrap.wrap(cells[3], rest, break_on_hyphens=False) or [u""]
    lines = []
    for at in range(max(len(names), len(words))):
        shown = [names[at] if at < len(names) else u""] + [cell if at == 0 else u"" for cell in cells[1:3]]
        text_ = words[at] if at < len(words) else u""
        lines.append((u"  ".join(u"%-*s" % pair for pair in zip(widths, shown)) + u"  " + text_).rstrip())
    return lines


def _broken(names, width):
    """Return folded names in lines, broken after commas."""
    lines = [u""]
    for part in re.findall(r"[^,]*,?", names):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append(u"")
        lines[-1] += part
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return lines


# ---------------------------------------------------------------- one line for a change
def changes(records, looked, now, wanted=()):
    """Return {name: line}: where each node is now, without what changes by itself. wanted: of these alone."""
    lines = {name: _change(name, record, looked[name], now) for name, record in records.items()}
    for row in queue(records, looked, now):
        lines.update((name, u"%s: waiting for %s" % (name, row.words)) for name in row.nodes)
    return {name: line for name, line in lines.items() if name in wanted or not wanted}


def _change(name, record, looked, now):
    if record["state"] == "going":
        left = _left([name], u"since %s" % stamp(looked)) if silence(record, looked, now) else u""
        parts = (step_of(record), clean(record["waiting"]), left)
        return u"%s: %s" % (name, u": ".join(part for part in parts if part))
    where = u" at %s" % step_of(record) if record["state"] == "failed" else u""
    parts = (record["state"] + where, clean(record["reason"]))
    return u"%s: %s" % (name, u": ".join(part for part in parts if part))


# ---------------------------------------------------------------- one node
def sheet(record, known, boots, written, looked, now, width=WIDTH):
    """Return the lines with all that is known of one node.

    boots: what the provisioning server says of it, in words. written: when the record was written, looked: when
    somebody drove it last, in seconds.
    """
    name, silent = record["node"], silence(record, looked, now)
    plan, run, image = record["plan"], record["run"], record["plan"]["image"]
    before = record["drained_before"]
    wiped = u", ".join(plan["wipe"])
    pairs = [
        (u"reason", record["reason"]),
        (u"waiting for", record["waiting"] if record["state"] == "going" else u""),
        (u"machine", u"serial number %s%s" % (plan["serial"], u"" if known else u"; it is no longer in cluster.yml")),
        (u"erases", plan["disk"] + (u", and %s" % wiped if wiped else u", and no other disk")),
        (u"image", u"%s, kernel %s, sha256 %s" % (image["folder"], image["kernel"], image["sha256"])),
        (u"confirmed", u"by %s at %s, code %s" % (run["by"], run["began"], run["code"])),
        (u"begun by", u"scontrol reboot ASAP" if run["by_slurm"] else u""),
        (u"afterwards", u"it stays drained (next state DOWN)" if run["next_state"] == "DOWN" else
         u"it stays drained: %s had drained it before: %s" % (before["by"], before["reason"]) if before else
         u"it is given back to Slurm"),
        (u"server", boots),
        (u"host key", record["host_key"]),
        (u"test job", record["job"]),
        (u"took", u", ".join(u"%s %s" % (step, duration(record["seconds"][step]))
                             for step in STEPS if step in record["seconds"])),
        (u"record", u"revision %d, written %s ago" % (record["revision"], duration(now - written))
         + (u", driven %s ago" % duration(now - looked) if record["state"] == "going" else u"")),
        (u"last time", u"ended at %s" % plan["previous"] if plan["previous"] else u""),
        (u"next", _next([name]) if record["state"] == "failed" else
         _left([name], u"for %s" % duration(silent)) if silent else u""),
    ]
    since = time_of(record)
    state = record["state"] if record["state"] in ("going", "done") else u"%s at" % record["state"]
    head = u"%s: %s%s since %s (%s)" % (
        name, state, u"" if state == "done" else u" " + step_of(record), since, duration(now - moment(since)))
    lines = [head]
    for what, words in pairs:
        parts = textwrap.wrap(clean(words), max(LEAST_WORDS, width - 14), break_on_hyphens=False)
        lines += [u"  %-12s%s" % (what if at == 0 else u"", part) for at, part in enumerate(parts)]
    return lines


def boots_now(status):
    """Return in words what the provisioning server has a node boot, of its status."""
    if status.get("problem"):
        return status["problem"]
    words = [u"it boots the installer until %s" % status["until"] if status["armed"] else u"it boots its disk"]
    if status["stopped"] and status["armed"]:
        words.append(stopped_words(status["stopped"]))
    elif status["unfinished"]:
        words.append(status["unfinished"])
    elif status["called"] and not status["armed"]:
        words.append(u"it called home at %s" % status["called"]["at"])
    return u"; ".join(words)
