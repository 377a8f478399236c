# -*- coding: utf-8 -*-
"""Whether the node has processors to spare. Python 2.7 and 3.

On a busy node an answer comes late because its program does not run, and says nothing about what is asked. The load
says little about that. How much longer than needed some work takes says more.
"""

from __future__ import absolute_import, division, print_function

import resource
import time

__metaclass__ = type

WORK_SECONDS = 0.02  # of a processor
SLOW = 4  # times as long as the work: even with a program on each processor it is about 2


def slow():
    """Whether it is so at this moment."""
    began, before = time.time(), _worked()
    while _worked() - before < WORK_SECONDS:
        sum(range(1000))
    return time.time() - began >= SLOW * WORK_SECONDS


def _worked():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
