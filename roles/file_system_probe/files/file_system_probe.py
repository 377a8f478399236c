# -*- coding: utf-8 -*-
"""How long a listing of all homes takes, and one stat. Python 2.7 and 3, standard library alone.

A process that asks a hung file system cannot be killed. So a child asks, and this program waits for it no longer than
declared, says so and ends; while that child hangs no second one is started. The child holds nothing that anybody else
waits for: no lock, no pipe of a caller.
"""

from __future__ import absolute_import, division, print_function

import argparse
import errno
import io
import json
import os
import re
import select
import sys
import time

from hal_node.lock import locked

CONFIGURATION = "/etc/hal/file_system_probe.json"
MEASUREMENT = "file_system_probe"
NUMBERS = ("timeout_seconds", "keep")  # Ansible's templates give them as text


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


# ---------------------------------------------------------------- the child
def measure(path, turn):
    """Return how long one listing took, and one stat: of another entry each time; the kernel remembers one."""
    clock = getattr(time, "monotonic", time.time)
    begun = clock()
    names = os.listdir(path)
    listed = clock()
    try:
        os.lstat(os.path.join(path, names[turn % len(names)]) if names else path)
    except OSError as error:
        if error.errno != errno.ENOENT:  # removed in between: that was an answer, too
            raise
    ended = clock()
    return {
        "list_ms": max(0.0, round((listed - begun) * 1000, 3)),
        "stat_ms": max(0.0, round((ended - listed) * 1000, 3)),
        "entries": len(names),
    }


def _child(path, turn, answer):
    """Measure, answer and end; never returns."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(3, answer)
        os.closerange(answer + 1, 256)
        try:
            measured = measure(path, turn)
        except (IOError, OSError) as error:
            measured = {"error": errno.errorcode.get(error.errno, "error")}
        os.write(answer, json.dumps(measured).encode("ascii"))
    finally:
        os._exit(0)


# ---------------------------------------------------------------- the one who asks
class Probe(object):
    """One file system, and what is known of it: files in `run_dir`, which is in memory."""

    def __init__(self, config):
        self.config = config
        self.path = config["path"]
        self._folder = config["run_dir"]

    def file(self, name):
        """Return the path of one of our files."""
        return os.path.join(self._folder, name)

    def once(self):
        """Ask now and keep the result; return the state. Never takes much longer than the timeout."""
        try:
            if not os.path.isdir(self._folder):
                os.mkdir(self._folder, 0o755)
            # One question at a time. Whoever has the lock ends within the timeout.
            with locked(self.file("lock"), Problem, self.config["timeout_seconds"] + 5, "the probe"):
                return self._once()
        except (IOError, OSError) as error:
            raise Problem(u"%s: %s" % (error.filename or self._folder, error.strerror or error))

    def _once(self):
        before = load(self.file("state.json")) or {}
        state = {"at": time.time(), "uptime": uptime(), "file_system": self.config["file_system"], "path": self.path}
        state.update(timed_out=False, hung_seconds=0, error="none", list_ms=None, stat_ms=None, entries=None)
        child = load(self.file("child.json"))
        if is_alive(child):
            state.update(timed_out=True, error="timeout", hung_seconds=int(uptime() - child["since"]))
        elif not is_mounted(self.config["mount"]):
            state["error"] = "not_mounted"  # the folder below would be listed in no time
        else:
            state.update(self._ask())
        recent = before.get("recent", []) if before.get("path") == self.path else []
        state["recent"] = self._with(recent, state)
        for number, name in enumerate(("list_median_ms", "stat_median_ms")):
            state[name] = median([turn[number] for turn in state["recent"]])
        save(self.file("last.influx"), line_of(state))
        save(self.file("state.json"), json.dumps(state, sort_keys=True) + "\n")
        _tell(before, state)
        return state

    def _ask(self):
        """Have a child measure, and wait for it as long as declared."""
        hears, answers = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(self.path.encode("utf-8"), int(time.time() // 60), answers)
        os.close(answers)
        since = uptime()
        # Before waiting: if this program is killed, its child stays, and the next program has to know it.
        save(self.file("child.json"), json.dumps({"pid": pid, "started": started(pid), "since": since}))
        try:
            if not select.select([hears], [], [], self.config["timeout_seconds"])[0]:
                return {"timed_out": True, "error": "timeout", "hung_seconds": int(uptime() - since)}
            answer = os.read(hears, 4096)
        finally:
            os.close(hears)
        os.unlink(self.file("child.json"))
        return json.loads(answer.decode("ascii")) if answer else {"error": "killed"}

    def _with(self, recent, state):
        """Return the last results with this one. What timed out took the timeout; a refusal does not tell the speed."""
        if state["timed_out"]:
            recent = recent + [[self.config["timeout_seconds"] * 1000.0] * 2]
        elif state["list_ms"] is not None:
            recent = recent + [[state["list_ms"], state["stat_ms"]]]
        return recent[-self.config["keep"]:]

    def status(self):
        """Return the last result with its age; asks no file system."""
        state = load(self.file("state.json"))
        if state is None:
            raise Problem("%s: no result yet" % self.file("state.json"))
        state["age_seconds"] = round(uptime() - state.pop("uptime"), 1)
        return state

    def last(self):
        """Return the line of the last result; asks no file system."""
        try:
            with io.open(self.file("last.influx"), encoding="utf-8") as source:
                return source.read()
        except (IOError, OSError) as error:
            raise Problem("%s: %s" % (self.file("last.influx"), error.strerror))


def _tell(before, state):
    """Say on standard error, which is the journal, when it begins and when it ends."""
    was, now = before.get("error", "none"), state["error"]
    if now != was and now == "none":
        _write(sys.stderr, u"%s answers again; before: %s\n" % (state["path"], was))
    elif now != was:
        _write(sys.stderr, u"%s: %s\n" % (state["path"], {"timeout": "does not answer"}.get(now, now)))


def _write(stream, text):
    """Write in UTF-8, whatever the locale."""
    getattr(stream, "buffer", stream).write(text if isinstance(text, bytes) else text.encode("utf-8"))
    stream.flush()


def median(values):
    """Return the middle one, of an even number the smaller; None of nothing."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


# ---------------------------------------------------------------- line protocol
def line_of(state):
    """Return a state in InfluxDB's line protocol. What was not measured has no field: 0 ms would be a good result."""
    tags = (("file_system", state["file_system"]), ("path", state["path"]))
    forms = (("list_ms", "%s"), ("stat_ms", "%s"), ("entries", "%di"))
    fields = [(name, form % state[name]) for name, form in forms if state[name] is not None]
    fields += [
        ("timed_out", "true" if state["timed_out"] else "false"),
        ("hung_seconds", "%di" % state["hung_seconds"]),
        ("error", '"%s"' % re.sub(r'(["\\])', r"\\\1", state["error"])),
    ]
    return u"%s,%s %s %d\n" % (
        MEASUREMENT,
        ",".join("%s=%s" % (name, _escaped(value)) for name, value in tags),
        ",".join("%s=%s" % field for field in fields),
        int(state["at"] * 1000000) * 1000,  # a float does not hold nanoseconds
    )


def _escaped(value):
    """Return a tag's value as the protocol wants it. A backslash stands for itself, but not at the end."""
    text = re.sub(r"([,= ])", r"\\\1", re.sub(r"[\r\n]", " ", value))
    return text[:-1] + "/" if text.endswith("\\") else text


# ---------------------------------------------------------------- the system
def uptime():
    """Return seconds since boot: a clock that nobody sets."""
    with open("/proc/uptime") as source:
        return float(source.read().split()[0])


def _stat(pid):
    """Return the fields of /proc/PID/stat behind the name, which may hold anything; None without such a process."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as source:
            return source.read().rpartition(b")")[2].split()
    except (IOError, OSError):
        return None


def started(pid):
    """Return when a process began, in ticks since boot: pid and start name it for good."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def is_alive(child):
    """Whether a child that was left waiting still does."""
    fields = _stat(child["pid"]) if child else None
    return bool(fields) and int(fields[19]) == child["started"] and fields[0] not in (b"Z", b"X")


def is_mounted(mount):
    """Whether something is mounted there, by the kernel's list: the file system is not asked."""
    wanted = (mount.rstrip("/") or "/").encode("utf-8")
    with open("/proc/self/mounts", "rb") as source:
        return any(_plain(line.split(b" ")[1]) == wanted for line in source)


def _plain(word):
    return re.sub(br"\\([0-7]{3})", lambda hit: bytes(bytearray([int(hit.group(1), 8)])), word)


def load(path):
    """Return a JSON file's content; None when there is none that can be read."""
    try:
        with io.open(path, encoding="utf-8") as source:
            return json.load(source)
    except (IOError, OSError, ValueError):
        return None


def save(path, text):
    """Replace a file that everybody may read: whole or not at all."""
    with io.open(path + ".new", "w", encoding="utf-8") as target:
        target.write(text if isinstance(text, type(u"")) else text.decode("utf-8"))
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def configuration(path):
    """Return the settings as the role wrote them."""
    config = load(path)
    if config is None:
        raise Problem("%s cannot be read" % path)
    return {name: float(value) if name in NUMBERS else value for name, value in config.items()}


def main(arguments):
    """Do what the command line says; return the exit status: 0 also when the file system hangs."""
    parser = argparse.ArgumentParser(description="Time a listing of all homes and one stat; wait for no hang.")
    what = parser.add_mutually_exclusive_group(required=True)
    for option, text in (
        ("--once", "ask now, keep the result and print it in InfluxDB's line protocol (root)"),
        ("--last", "print the last result so; the file system is not asked"),
        ("--status", "print the last result, its age and the medians as JSON; the file system is not asked"),
    ):
        what.add_argument(option, action="store_true", help=text)
    parser.add_argument("--config", default=CONFIGURATION, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    try:
        config = configuration(chosen.config)
        config["keep"] = int(config["keep"])
        probe = Probe(config)
        if chosen.status:
            text = json.dumps(probe.status(), indent=1, sort_keys=True) + "\n"
        else:
            text = line_of(probe.once()) if chosen.once else probe.last()
    except Problem as error:
        _write(sys.stderr, u"%s\n" % error)
        return 1
    _write(sys.stdout, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
