# -*- coding: utf-8 -*-
"""Seal a run into the node's record: read, merge, observe, write.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type


class SealError(Exception):
    """The record was not written; the old one is as it was. The message is one line."""


def seal(request):
    """Return {serial, digest, record, problems, observed}. Raises SealError."""
    raise SealError('not there yet')
