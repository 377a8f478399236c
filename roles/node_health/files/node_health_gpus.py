# -*- coding: utf-8 -*-
"""Who computes on GPUs without a job; and a job's GPUs, before it and after it. Python 2.7 and 3.

Slurm names them in SLURM_JOB_GPUS, older releases in CUDA_VISIBLE_DEVICES (prolog and epilog see the numbers of the
node, not those that the job sees): prolog_epilog guide, "Environment Variables".

What a user runs is not a fault of the hardware. Its process may come from a login, without any job, and may be made to
look like one that hangs; so it takes the node out only as long as it is there. Anything may be in a process's name:
nvidia-smi is never asked for it, because a line break in it would make a line for another process.
"""

from __future__ import absolute_import, division, print_function

import collections
import os
import re
import signal
import syslog
import time

from hal_node.expect.process import run
from hal_node.expect.values import Unreadable

import node_health_checks
from node_health_users import is_user, named, plain

__metaclass__ = type

NUMBERS = re.compile(r"^\d+(-\d+)?(,\d+(-\d+)?)*$")
ROLE = "nvidia_driver"
# The promise of expect.yml that asks for foreign processes on GPUs that no job has; a job's own get the same words.
FOREIGN, FOREIGN_WORDS = "no GPU is used without a job", "GPU in use without a job"
PROC = "/proc"
SECONDS, LONG_SECONDS = 15, 60  # for nvidia-smi to answer, and for a second time
PAUSE_SECONDS = 3  # before that
# 6: no GPU is left; 9, 18: no driver is in effect; 15: one is lost. What is wrong then, the role's own checks say.
ANSWERS = (0, 6, 9, 15, 18)
SHOWN = 5  # processes that are named
KILLED = 1 << (signal.SIGKILL - 1)  # in the masks of /proc/PID/status

#: On a GPU. uid: None when the process has ended; born: in the kernel's ticks; killed: SIGKILL waits for it.
Process = collections.namedtuple("Process", "pid gpu uid command born killed")


def of_job(environment):
    """Return the numbers of the job's GPUs, none for a job without."""
    return _numbers(environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES") or "")


def of_jobs(gres_used):
    """Return the numbers of the GPUs that jobs have, of Slurm's GresUsed: gpu:v100:3(IDX:0,2-3). Raises Unreadable."""
    listed = re.findall(r"gpu:[^,]*?\(IDX:([^)]*)\)", gres_used)
    if not listed:
        raise Unreadable("Slurm does not say which GPUs jobs have: GresUsed=%s" % gres_used)
    return {number for text in listed for number in _numbers(text)}


def _numbers(text):
    if not NUMBERS.match(text):
        return []
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


# ---------------------------------------------------------------- processes
def on_gpus(gpus=()):
    """Return the processes that compute on these GPUs, on any of the node if none is named. Raises Unreadable."""
    rows = _rows(gpus)
    numbers = dict(_pairs(["--query-gpu=gpu_uuid,index"])) if rows else {}
    unknown = [uuid for uuid, _ in rows if uuid not in numbers]
    if unknown:
        raise Unreadable("nvidia-smi gives %s no number" % unknown[0])
    return [_process(int(pid), int(numbers[uuid])) for uuid, pid in rows]


def foreign(gres_used):
    """Return the processes of users on GPUs that no job has. Raises Unreadable, and what `gres_used` raises.

    `gres_used` returns what jobs have, as Slurm's GresUsed, or None while that is not known; it is called only if
    anybody computes. A process that is there before it answers, and still there after it, was there when no job had the
    GPU.
    """
    processes = of_users(on_gpus())
    used = gres_used() if processes else None
    if used is None:
        return []
    jobs = of_jobs(used)
    processes = [process for process in processes if process.gpu not in jobs]
    still = {pid for _, pid in _rows()} if processes else ()
    return [process for process in processes if str(process.pid) in still and _same(process)]


def of_users(processes):
    """Return those that users run, or ran: what has ended, and is on a GPU all the same, had any owner."""
    return [process for process in processes if process.uid is None or is_user(process.uid)]


def told(processes):
    """Return a line for each of the processes, of many for the first ones."""
    lines = [line for _, line in _described(processes)]
    return lines[:SHOWN] + ["and %d more" % (len(lines) - SHOWN)] * (len(lines) > SHOWN)


def end(processes):
    """End those of users, and say so in the system's log. What cannot be ended is left."""
    syslog.openlog("hal-node-health", 0, syslog.LOG_DAEMON)
    for process, line in _described(processes):
        # Now, because its number may have become another process's.
        if process.uid is None or not is_user(process.uid) or process.killed or not _same(process):
            continue
        try:
            os.kill(process.pid, signal.SIGKILL)
        except OSError:
            continue
        syslog.syslog(syslog.LOG_WARNING, "killed: " + line)


def _described(processes):
    """Return (process, line) of each, by number, however many GPUs it is on."""
    names = named(sorted({process.uid for process in processes if process.uid is not None}))
    gpus = {}
    for process in processes:
        gpus.setdefault(process.pid, (process, []))[1].append(process.gpu)
    return [(process, _line(process, where, names)) for _, (process, where) in sorted(gpus.items())]


def _line(process, where, names):
    if process.uid is None:
        return "process %d has ended and is still on GPU %s" % (process.pid, _listed(where))
    return "%s runs %d %s on GPU %s without a job%s" % (
        names[process.uid], process.pid, process.command, _listed(where),
        ", and does not end when killed" if process.killed else "")


def _rows(gpus=()):
    """Return (UUID of a GPU, process) of all that computes."""
    return _pairs(["--query-compute-apps=gpu_uuid,pid"] + (["--id=%s" % _listed(gpus)] if gpus else []))


def _pairs(query):
    status, text = _nvidia_smi(query + ["--format=csv,noheader"])
    if status not in ANSWERS:
        raise Unreadable("nvidia-smi ended with status %d" % status, text)
    return re.findall(r"(?m)^\s*(GPU-[^,\s]+),\s*(\d+)\s*$", text)


def _process(pid, gpu):
    """Return the process as /proc has it (proc(5)). The owner of /proc/PID is not asked: a process can make it root."""
    try:
        with open("%s/%d/status" % (PROC, pid), "rb") as stream:
            status = stream.read()
        with open("%s/%d/stat" % (PROC, pid), "rb") as stream:
            before, _, after = stream.read().rpartition(b")")
        uid = re.search(br"(?m)^Uid:\s*(\d+)", status).group(1)  # the real one; the kernel escapes line breaks in Name
        born = after.split()[19]
    except (AttributeError, IndexError, IOError, OSError):
        return Process(pid, gpu, None, "", "", False)
    waiting = re.findall(br"(?m)^S(?:ig|hd)Pnd:\s*([0-9a-f]+)", status)
    killed = any(int(mask, 16) & KILLED for mask in waiting)
    return Process(pid, gpu, int(uid), plain(before.partition(b"(")[2]), born.decode("ascii"), killed)


def _same(process):
    """Whether it is still the process that it was."""
    now = _process(process.pid, process.gpu)
    return (now.uid, now.born) == (process.uid, process.born)


# ---------------------------------------------------------------- around a job
def left_over(gpus, wait_seconds, end_foreign):
    """Return (result, result): the processes of users that are still on a job's GPUs after a while, and all others."""
    deadline = time.time() + wait_seconds
    try:
        if end_foreign:
            end(on_gpus(gpus))
        while True:
            processes = on_gpus(gpus)
            if not processes or time.time() > deadline:
                break
            time.sleep(1)
    except Unreadable as error:
        return _result("unknown", FOREIGN, said(error), FOREIGN_WORDS), _left([])
    users = of_users(processes)
    words = ", ".join(told(users))
    return (_result("fail" if users else "pass", FOREIGN, words, FOREIGN_WORDS),
            _left([process for process in processes if process not in users]))


def _left(processes):
    """Return the result for processes of the system; a process of no user cannot be anybody's plot."""
    reason = "; ".join(
        "process %d, %s, on GPU %d" % (process.pid, process.command, process.gpu) for process in processes)
    return _result("fail" if processes else "pass", "no process is left on the GPUs", reason, "process left on a GPU",
                   hardware=True)


def reset(gpus, settings):
    """Apply each list of arguments of nvidia-smi to the GPUs; return results, one that fails for each refusal.

    What was refused, or got no answer, is tried once more: other jobs may end on the node at the same moment. No later
    check asks this again, or what processes of the system are left: an administrator ends such a drain, as one for
    hardware. A missing answer is not a refusal: a user who keeps the node busy could cause it.
    """
    results = []
    for arguments in settings:
        verdict, text = _set(gpus, list(arguments), SECONDS)
        if verdict != "pass":
            time.sleep(PAUSE_SECONDS)
            verdict, text = _set(gpus, list(arguments), LONG_SECONDS)
        reason = "" if verdict == "pass" else "nvidia-smi %s: %s" % (" ".join(arguments), text)
        results.append(_result(verdict, "settings of the GPUs", reason, "GPU settings not reset", hardware=True))
    return results


def _set(gpus, arguments, seconds):
    """Return (pass, fail or unknown; what nvidia-smi said against it)."""
    try:
        status, text = _nvidia_smi(arguments + ["--id=%s" % _listed(gpus)], seconds)
    except Unreadable as error:
        return "unknown", said(error)
    return ("fail", " ".join(text.split())) if status else ("pass", "")


def _nvidia_smi(arguments, seconds=SECONDS):
    """Return (exit status, what it printed). Raises Unreadable, also while one hangs that an earlier check started."""
    hangs = node_health_checks.hanging("nvidia-smi")
    if hangs:
        raise Unreadable("nvidia-smi of an earlier check still hangs (process %d)" % hangs)
    status, out, err = run(["nvidia-smi"] + arguments, timeout_seconds=seconds)
    return status, out + " " + err if status else out


def said(error):
    """Return what an error says, in one line."""
    detail = getattr(error, "detail", "")
    return " ".join(("%s: %s" % (error, detail) if detail else "%s" % error).split())


def _listed(gpus):
    return ",".join("%d" % gpu for gpu in gpus)


def _result(status, name, reason, words, hardware=False):
    return {"words": words, "role": ROLE, "id": name, "hardware": hardware, "status": status, "reason": reason,
            "why": "the next job would get it"}
