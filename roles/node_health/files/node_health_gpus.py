# -*- coding: utf-8 -*-
"""The GPUs of a job, around it: nothing is left on them, and their settings are the site's again. Python 2.7 and 3.

Slurm names them in SLURM_JOB_GPUS, older releases in CUDA_VISIBLE_DEVICES (prolog and epilog see the numbers of the
node, not those that the job sees): prolog_epilog guide, "Environment Variables".
"""

from __future__ import absolute_import, division, print_function

import re
import time

from ansible.module_utils.hal_expect_process import run
from ansible.module_utils.hal_expect_values import Unreadable

__metaclass__ = type

NUMBERS = re.compile(r"^\d+(-\d+)?(,\d+(-\d+)?)*$")
ROLE = "nvidia_driver"


def of_job(environment):
    """Return the numbers of the job's GPUs, none for a job without."""
    text = environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES") or ""
    if not NUMBERS.match(text):
        return []
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def left_over(gpus, wait_seconds):
    """Return results, one that fails for each process that is still on a GPU after a while."""
    deadline = time.time() + wait_seconds
    while True:
        result = _processes(gpus)
        if result["status"] == "pass" or time.time() > deadline:
            return [result]
        time.sleep(1)


def _processes(gpus):
    argv = ["--query-compute-apps=pid,process_name", "--format=csv,noheader", "--id=%s" % _listed(gpus)]
    status, text = _nvidia_smi(argv)
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*\d+,", line)]
    if status == 0 and not lines:
        return _result("pass", "no process is left on the GPUs", "")
    reason = "GPU %s: %s" % (_listed(gpus), "; ".join("process " + line for line in lines) or text)
    return _result("fail", "no process is left on the GPUs", reason, "process left on a GPU")


def reset(gpus, settings):
    """Apply each list of arguments of nvidia-smi to the GPUs; return results, one that fails for each refusal.

    No later check asks this again, or what was left over: an administrator ends such a drain, as one for hardware.
    """
    results = []
    for arguments in settings:
        status, text = _nvidia_smi(list(arguments) + ["--id=%s" % _listed(gpus)])
        reason = "" if status == 0 else "nvidia-smi %s: %s" % (" ".join(arguments), text)
        results.append(_result("fail" if reason else "pass", "settings of the GPUs", reason, "GPU settings not reset"))
    return results


def _nvidia_smi(arguments):
    try:
        status, out, err = run(["nvidia-smi"] + arguments, timeout_seconds=15)
    except Unreadable as error:
        return 1, error.reason
    return status, " ".join((out + " " + err).split()) if status else out


def _listed(gpus):
    return ",".join(str(gpu) for gpu in gpus)


def _result(status, name, reason, words=""):
    return {"words": words, "role": ROLE, "id": name, "hardware": True, "status": status, "reason": reason,
            "why": "the next job would get it"}
