# -*- coding: utf-8 -*-
"""Where a change of the network keeps what it needs, and what its units are called.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

SCRIPTS = "/etc/sysconfig/network-scripts"
# Forgotten at a boot, as is what the kernel had: files as they were when they were last in force, by interface.
RUN = "/run/hal/network"
SAVED = RUN + "/saved"
LIVE = RUN + "/live"        # what files/rollback.sh makes of the kernel's state
CHANGED = RUN + "/changed"  # names of the interfaces that a change is about
SAID = RUN + "/said"        # what ifdown and ifup have said
DONE = RUN + "/done"        # the same, once they have ended
SEEN = RUN + "/seen"        # a connection has seen that they have ended: the next one was made after that
# Kept over a boot: a node that is switched off before anybody confirms comes up with its old files.
STATE = "/var/lib/hal/network"
ROLLBACK = STATE + "/rollback"
CONFIRMED = STATE + "/rollback.confirmed"
UNDONE = STATE + "/undone"  # files/rollback.sh is at work
# Files that were there before the role's own, for ever.
BEFORE = STATE + "/before"
UNIT = "hal-network-rollback"
CHANGE = "/usr/libexec/hal-network/change"
