# -*- coding: utf-8 -*-
"""Whether this node may have jobs. Python 2.7 and 3.

hal-node-health                  look, and show every check
hal-node-health --act            the same, and tell Slurm: drain with the reason in words, or end a drain of its own
hal-node-health --job-begin      prolog of a job with GPUs: checks them, and that nobody else's process is on them; the
                                 job does not start on a node that fails
hal-node-health --job-end        epilog of a job with GPUs: checks them, that nothing is left on them, and gives them
                                 the site's settings again
hal-node-health --foreign-processes      show processes of users on GPUs that no job has
hal-node-health --end-foreign-processes  show and kill them
hal-node-health --observed               show what this node would have been drained for while it was only observed
hal-node-health --who-fills /tmp 1024    show whose files are why less than 1024 MB are free there; 95%: why more than
                                         that is in use

--role ROLE runs the checks of that role alone; you may repeat it. --json prints the results as data.
Exit status: 0 healthy; 1 not healthy; 2 not known, or Slurm could not be told; 3 not healthy, and not drained, because
too many nodes are or because it is only observed.
"""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import sys
import time

import node_health_alarm
import node_health_checks
import node_health_doubt
import node_health_gpus
import node_health_observe
import node_health_slow
import node_health_space
from hal_node.expect.values import Unreadable
from hal_node.printable import say, shown, write
from node_health_slurm import Held, Observed, Slurm, SlurmError

__metaclass__ = type

CHECKS = "/etc/hal-node-health/checks.json"
STATE = "/var/lib/hal-node-health/drained.json"
# What may take long runs as another process of this program, which can be ended.
SELF = [sys.executable, "-B", os.path.abspath(__file__)]
# What failed is asked again after a pause, if the first answers came so fast that slurmd's 60 s suffice for both.
PAUSE_SECONDS, AGAIN_SECONDS = 3, 8
HEALTHY, NOT_HEALTHY, NOT_KNOWN, HELD = 0, 1, 2, 3
NUMBERS = ("seconds", "gpu_wait_seconds", "most_drained_percent", "window_minutes", "observe_days")
# A list that was written before these were, while a rollout writes the next: defaults/main.yml
LATER = {"most_drained_percent": 25, "window_minutes": 60, "observe_days": 0}
COLOURS = {"pass": "32", "fail": "31", "unknown": "33"}
WORD = {"pass": "ok", "fail": "FAIL", "unknown": "?"}


def main(argv):
    """Return the exit status."""
    options = _options(argv)
    if options.who_fills:
        return _who_fills(*options.who_fills)
    if options.observed:
        for line in node_health_observe.told():
            say(line)
        return HEALTHY
    try:
        with open(CHECKS) as stream:
            declared = dict(LATER, **json.load(stream))
        # Given on a command line they are text.
        declared.update((name, int(declared[name])) for name in NUMBERS)
    except (IOError, OSError, KeyError, TypeError, ValueError) as error:
        return _say_error("%s: %s: roll the role node_health out to this node" % (CHECKS, error))
    acts = options.act or options.job_begin or options.job_end
    slurm = Slurm(declared["node"], STATE, declared["most_drained_percent"], declared["window_minutes"],
                  node_health_observe.observes(declared["observe_days"]) if acts else "")
    if options.foreign_processes or options.end_foreign_processes:
        return _foreign_processes(slurm, options.end_foreign_processes)
    if options.job_begin or options.job_end:
        return around_job(options, declared, slurm)
    unknown = set(options.role) - {check["role"] for check in declared["checks"]}
    if unknown:
        return _say_error("no check of role %s is declared for this node" % ", ".join(sorted(unknown)))
    if options.act:
        return _act(declared, options.role, slurm)
    started = time.time()
    results = _run(declared, options.role)
    seconds = time.time() - started
    if options.json:
        data = json.dumps({"node": declared["node"], "results": results}, indent=2, sort_keys=True)
        write(data.encode("ascii") + b"\n")
    else:
        show(declared["node"], results, seconds, brief=False)
    return _status(results)


def _act(declared, roles, slurm):
    """The regular check; with roles a part of it, which knows nothing of earlier looks."""
    runs = None if roles else node_health_doubt.Runs()
    times = runs.times if runs else {}
    if runs:
        node_health_alarm.keep(runs.unfinished(), complete=False)
    results = _run(declared, roles, again=True, doubted=times)
    times, alarms = node_health_doubt.judge(results, times, declared.get("witnesses", {}))
    if runs:
        runs.end(times, results)
    show(declared["node"], results, None, brief=True)
    return settle(slurm, results, not roles, alarms)


def around_job(options, declared, slurm):
    """Prolog or epilog of a job: without GPUs, or checks of them, there is nothing to do.

    No answer keeps no job from its node: that is for the regular check, which looks twice. Were the prolog to fail,
    Slurm would drain the node, so it fails only where the node has been drained in words, and counts with the others.
    """
    gpus = node_health_gpus.of_job(os.environ)
    if not gpus or not any(check["role"] == node_health_gpus.ROLE for check in declared["checks"]):
        return HEALTHY
    results = node_health_gpus.reset(gpus, declared["gpu_settings"]) if options.job_end else []
    users, others = node_health_gpus.left_over(
        gpus, declared["gpu_wait_seconds"], declared.get("end_foreign_processes", False))
    results += [users, others] if options.job_end else [users]
    results += _run(declared, [node_health_gpus.ROLE], again=True)
    if all(result["status"] == "pass" for result in results):
        return HEALTHY  # and slurmctld is not asked: it may be busy starting this job everywhere
    node_health_doubt.judge(results, {}, {})
    show(declared["node"], results, None, brief=True)
    if not any(node_health_doubt.counts(result) for result in results):
        return HEALTHY
    status = settle(slurm, results, complete=False)
    if status in (HELD, NOT_KNOWN):
        return HEALTHY
    # Once it is drained in words the job's end has nothing to add; slurmd would only write "Epilog error" over nothing.
    return HEALTHY if options.job_end and status == NOT_HEALTHY else status


def settle(slurm, results, complete, alarms=()):
    """Tell Slurm, and let the alarms stand; return the exit status."""
    if not results:
        return NOT_KNOWN
    status, alarms = _status(results), list(alarms)
    try:
        said = slurm.settle(results, complete)
        if said:
            say(said)
    except Held as error:
        status = HELD
        if isinstance(error, Observed):
            node_health_observe.note(error.reason)
        alarms.append("%s" % error)
        say("%s" % error)
    except SlurmError as error:
        status = _say_error("Slurm was not told: %s" % error)
        looked = slurm.with_held(results) if complete else results
        failing = [result["words"] for result in looked if node_health_doubt.counts(result)]
        words = "; ".join(sorted(set(failing), key=failing.index))
        alarms += ["not drained for %s: %s" % (words, error)] if failing else []
    node_health_alarm.keep(alarms, complete)
    return status


def _run(declared, roles, again=False, doubted=()):
    """Return the results. With `again` what failed is asked once more: a daemon may be restarting.

    doubted: keys of checks that had no answer in the run before; they get all the time that there is.
    """
    checks = [check for check in declared["checks"] if not roles or check["role"] in roles]
    slow = node_health_slow.slow()
    started = time.time()
    results = _look(checks, declared["seconds"], doubted)
    wrong = [position for position, result in enumerate(results) if result["status"] != "pass"]
    left = int(started + declared["seconds"] - PAUSE_SECONDS - time.time())
    if again and wrong and time.time() - started < min(AGAIN_SECONDS, declared["seconds"]) and left > 0:
        failed = [results[position]["id"] for position in wrong]
        if declared.get("end_foreign_processes") and node_health_gpus.FOREIGN in failed:
            node_health_checks.printed(SELF + ["--end-foreign-processes"], left)
        time.sleep(PAUSE_SECONDS)
        asked = [checks[position] for position in wrong]
        for position, result in zip(wrong, _look(asked, left, [node_health_doubt.key(check) for check in asked])):
            results[position] = result
    slow = slow or bool(wrong) and node_health_slow.slow()
    for result in results:
        result["slow"] = slow
    _name_who_fills(checks, results, started + declared["seconds"])
    return results


def _look(checks, seconds, patiently):
    """Return the results of checks, side by side. Those with these keys may take longer than their own limits."""
    return node_health_checks.run([_patient(check, seconds) if node_health_doubt.key(check) in patiently else check
                                   for check in checks], seconds)


def _patient(check, seconds):
    """Return a check that gives its command all the time; other readers have more of their own."""
    question = dict(check["question"])
    if "command" in question:
        question["command"] = dict(question["command"], timeout_seconds=seconds)
    return dict(check, question=question)


def _name_who_fills(checks, results, deadline):
    """Add to the reasons of full disks who fills them, as long as there is time."""
    for check, result in zip(checks, results):
        full = node_health_space.asked(check["question"]) if result["status"] == "fail" else []
        left = deadline - time.time()
        if full and left > node_health_space.SECONDS:
            words = node_health_checks.printed(SELF + ["--who-fills"] + full, left)
            result["reason"] += words and "; " + words


def _who_fills(directory, free):
    try:
        words = node_health_space.who_fills(directory, free)
    except (IOError, OSError, ValueError) as error:
        return _say_error("--who-fills: %s; give a directory, and 1024 for MB or 95%% for what may be in use" % error)
    if words:
        say(words)
    return HEALTHY


def _foreign_processes(slurm, end):
    """Print a line for each; with `end` they are killed."""
    try:
        processes = node_health_gpus.foreign(slurm.gres_used)
        lines = node_health_gpus.told(processes)
        if end:
            node_health_gpus.end(processes)
    except (Unreadable, SlurmError) as error:
        return _say_error(node_health_gpus.said(error))
    for line in lines:
        say(line)
    return HEALTHY


def _status(results):
    if not results:
        return NOT_KNOWN
    return HEALTHY if all(result["status"] == "pass" for result in results) else NOT_HEALTHY


def show(node, results, seconds, brief):
    """Print a line for each check, or only those that did not pass, and a summary."""
    wrong = [result for result in results if result["status"] != "pass"]
    width = max([len(result["role"]) for result in results] or [0])
    for result in wrong if brief else results:
        words = result["id"] if result["status"] == "pass" else "%s (%s: %s); %s" % (
            result["words"], result["id"], result["reason"], result.get("doubt") or result["why"])
        write(_coloured(result["status"]) + shown(" %-*s  %s" % (width, result["role"], words)) + b"\n")
    took = "" if seconds is None else " in %.2f s" % seconds
    number = "%d check%s" % (len(results), "" if len(results) == 1 else "s")
    verdict = "%d of %s failed" % (len(wrong), number) if wrong else "healthy, %s" % number
    if not results:
        verdict = "not known: no check is declared"
    if not brief or wrong:
        say("%s: %s%s" % (node, verdict, took))


def _coloured(status):
    word = "%-4s" % WORD[status]
    return ("\033[%sm%s\033[0m" % (COLOURS[status], word) if sys.stdout.isatty() else word).encode("ascii")


def _say_error(text):
    say("hal-node-health: %s" % text, sys.stderr)
    return NOT_KNOWN


def _options(argv):
    parser = argparse.ArgumentParser(
        prog="hal-node-health", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--act", action="store_true", help="tell Slurm what follows from it")
    does.add_argument("--job-begin", action="store_true", help="as Slurm's Prolog")
    does.add_argument("--job-end", action="store_true", help="as Slurm's Epilog")
    does.add_argument("--foreign-processes", action="store_true", help="show processes of users on GPUs without a job")
    does.add_argument("--end-foreign-processes", action="store_true", help="kill them")
    does.add_argument("--who-fills", nargs=2, metavar=("DIRECTORY", "FREE"), help="whose files leave too little room")
    does.add_argument("--observed", action="store_true", help="what the node would have been drained for")
    parser.add_argument("--role", action="append", default=[], help="only checks of this role")
    parser.add_argument("--json", action="store_true", help="print the results as data")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
