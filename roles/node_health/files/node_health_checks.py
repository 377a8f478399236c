# -*- coding: utf-8 -*-
"""Evaluate the checks of a node side by side and within a time limit. Python 2.7 and 3.

A check is a promise of a role that keeps the node from jobs when it does not hold: see docs/expectations.md, "health".
What does not answer in time costs that check, not the others, and is not started again while it hangs: a program that
waits for a dead driver cannot be killed.
"""

from __future__ import absolute_import, division, print_function

import errno
import json
import os
import re
import select
import signal
import time

from hal_node.expect.evaluate import evaluate
from hal_node.expect.vocabulary import READERS

__metaclass__ = type

#: Matchers, and how a reason names what they want.
WORDS = {"equal": "", "at_least": "at least ", "at_most": "at most ", "count": "", "one_of": "one of ", "match": ""}
SHORT = 60  # characters of a value that a reason shows
LONG = 160  # of what should not be there
HUNG = "/var/lib/hal-node-health/hung.json"


def run(checks, seconds):
    """Return [{words, role, id, hardware, why, status, reason, hangs}] of all checks, in their order.

    status is pass, fail or unknown; what did not answer within `seconds` is unknown. hangs: a process that an earlier
    run has killed waits in the kernel all the same.
    """
    return [_result(check, answer) for check, answer in zip(checks, _answers([c["question"] for c in checks], seconds))]


def printed(argv, seconds):
    """Return what a program prints within so many seconds, without blanks at its ends; "" when it does not end well."""
    answer = _answers([{"command": {"argv": argv, "timeout_seconds": seconds}, "equal": ""}], seconds + 1)[0]
    return ("%s" % (answer["observed"] or "",)).strip()


def hanging(program):
    """Return a process of a check that hangs since an earlier run and has to do with this program, 0 for none."""
    return next((process for name, (process, _) in sorted(_still_hanging().items()) if '"%s"' % program in name), 0)


def _answers(questions, seconds):
    still = _still_hanging()
    groups = {}
    for position, question in enumerate(questions):
        groups.setdefault(_asked(question), []).append(position)
    answers = [None] * len(questions)
    children = {}
    deadline = time.time() + seconds
    for name, positions in sorted(groups.items()):
        unread = "an earlier check of it still hangs (process %d)" % still[name][0] if name in still else ""
        hangs = name in still and _status(still[name][0])[:1] == ["D"]
        if not unread:
            try:
                child, stream = _start([questions[position] for position in positions])
                children[stream] = (child, name, positions, [])
            except OSError as error:  # no process or no memory is left: then nothing is known of what is asked
                unread = "nothing can be started: %s" % error.strerror
        for position in positions if unread else ():
            answers[position] = dict(_unread(unread), hangs=hangs)
    for positions, answered in _collect(children, deadline, seconds, still):
        for position, answer in zip(positions, answered):
            answers[position] = answer
    _remember(still)
    return answers


def _asked(question):
    """Return what is asked in one process: equal commands run once, a path that hangs keeps no other waiting."""
    for reader in ("command", "file"):
        if reader in question:
            request = question[reader]
            return json.dumps([reader, request.get("argv") or request.get("path")], sort_keys=True)
    return next(name for name in sorted(question) if name in READERS)


def _start(questions):
    incoming, outgoing = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(incoming)
        os.close(outgoing)
        raise
    if child == 0:
        _serve(questions, incoming, outgoing)
    os.close(outgoing)
    return child, incoming


def _serve(questions, incoming, outgoing):
    """Body of a child: never returns, and holds nothing of its caller open should it hang."""
    try:
        os.setsid()
        os.close(incoming)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        answers = evaluate(questions)
        # What could not be read may have left a process that nobody can end.
        left = _children_of(os.getpid()) if any(answer["status"] == "unknown" for answer in answers) else []
        line = json.dumps({"answers": answers, "left": left}).encode("ascii") + b"\n"
        while line:
            line = line[os.write(outgoing, line):]
    finally:
        os._exit(0)


def _collect(children, deadline, seconds, still):
    """Yield (positions, answers) of each child. What cannot be ended goes into `still`."""
    while children:
        left = deadline - time.time()
        ready = _readable(list(children), left) if left > 0 else []
        if not ready:
            break
        for stream in ready:
            child, name, positions, chunks = children[stream]
            chunk = os.read(stream, 65536)
            chunks.append(chunk)
            # Not the end of the stream: a process that hangs holds it open.
            if chunk and not chunk.endswith(b"\n"):
                continue
            del children[stream]
            os.close(stream)
            os.waitpid(child, 0)
            answers, processes = _read(b"".join(chunks), len(positions))
            _note(still, name, processes)
            yield positions, answers
    for stream, (child, name, positions, _chunks) in sorted(children.items()):
        os.close(stream)
        started = _children_of(child)
        for process in started + [child]:
            _kill(process)
        time.sleep(0.1)
        os.waitpid(child, os.WNOHANG)
        _note(still, name, started + [child])
        yield positions, [_unread("no answer within %d s" % seconds)] * len(positions)


def _read(text, count):
    """Return (answers, processes that the child could not end)."""
    try:
        said = json.loads(text.decode("ascii"))
    except ValueError:
        said = {"answers": [], "left": []}
    answers = said["answers"]
    return answers if len(answers) == count else [_unread("the process that asked ended")] * count, said["left"]


def _kill(process):
    for kill in (os.killpg, os.kill):  # what a command started is in a session of its own
        try:
            kill(process, signal.SIGKILL)
        except OSError:
            pass


def _readable(streams, seconds):
    try:
        return select.select(streams, [], [], seconds)[0]
    except select.error as error:  # Python 2 does not retry after a signal
        if error.args[0] == errno.EINTR:
            return _readable(streams, 0)
        raise


def _unread(reason):
    return {"status": "unknown", "observed": None, "reason": reason}


def _result(check, answer):
    result = {key: check[key] for key in ("words", "role", "id", "hardware", "why")}
    result["status"], result["hangs"] = answer["status"], answer.get("hangs", False)
    result["reason"] = "" if answer["status"] == "pass" else _difference(check["question"], answer)
    return result


def _difference(question, answer):
    """Return how the answer differs, in one line for sinfo and for a log."""
    reason = answer["reason"]
    if answer["status"] == "unknown":
        text = reason if reason.startswith("cannot") else "cannot be read: %s" % reason
    elif question.get("absent") and answer["observed"]:
        text = _shown(answer["observed"])
        text = text if len(text) <= LONG else text[:LONG - 3] + "..."
    elif answer["observed"] is None or isinstance(answer["observed"], dict) or len(_shown(answer["observed"])) > SHORT:
        text = reason
    else:
        words = ["%s%s" % (WORDS[name], _shown(question[name])) for name in sorted(WORDS) if name in question]
        text = "is %s, declared %s" % (_shown(answer["observed"]), words[0]) if words else reason
    return re.sub(r"\s+", " ", text).strip()


def _shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(_shown(part) for part in value) if isinstance(value, list) else "%s" % (value,)


# ---------------------------------------------------------------- what hangs since an earlier run
def _born(process):
    """Return when a process began, in the kernel's ticks; "" when it is gone or a zombie."""
    fields = _status(process)
    return "" if not fields or fields[0] == "Z" else fields[19]


def _status(process):
    """Return the fields of /proc/PID/stat from the state on (proc(5)); none when the process is gone."""
    try:
        with open("/proc/%d/stat" % process, "rb") as stream:  # the name before may not be text
            return stream.read().rpartition(b")")[2].decode("ascii").split()
    except (IOError, OSError):
        return []


def _note(still, name, processes):
    for process in processes:
        born = _born(process)
        if born:
            still[name] = (process, born)


def _children_of(parent):
    """Return the processes that a process has started and that have not ended."""
    children = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _status(int(name))
            if fields and fields[0] != "Z" and int(fields[1]) == parent:
                children.append(int(name))
    return children


def _still_hanging():
    try:
        with open(HUNG) as stream:
            known = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    return {name: (int(child[0]), child[1]) for name, child in known.items() if _born(int(child[0])) == child[1]}


def _remember(still):
    """Keep it for the next run. Several may run at once, one of them by somebody who may not: then it is not kept."""
    new = "%s.%d" % (HUNG, os.getpid())
    try:
        if still:
            with open(new, "w") as stream:
                json.dump(still, stream)
            os.rename(new, HUNG)
        elif os.path.exists(HUNG):
            os.unlink(HUNG)
    except (IOError, OSError):
        pass
