# -*- coding: utf-8 -*-
"""What the modules of the audit share: quiet logging, and errors of one line.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import os
import sys

from ..run_command import AnsibleModule

__metaclass__ = type


class QuietModule(AnsibleModule):
    """A module that leaves its arguments out of the node's log: expectations and declarations may be secrets."""

    def _log_invocation(self):
        # type: () -> None
        self.log('%s looks at this node' % self._name)


def one_line(what, error):
    # type: (str, BaseException) -> str
    """Return an error without its text, which may quote a value: what failed, its type, and where in our code."""
    place, trace = '', sys.exc_info()[2]
    while trace is not None:
        code = trace.tb_frame.f_code
        if 'hal_' in os.path.basename(code.co_filename):
            place = ', %s:%d' % (os.path.basename(code.co_filename), trace.tb_lineno)
        trace = trace.tb_next
    reason = getattr(error, 'strerror', None)
    return '%s: %s%s%s' % (what, type(error).__name__, ' (%s)' % reason if reason else '', place)
