# -*- coding: utf-8 -*-
"""Kernel modules: loaded or not.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ...expect.kernel import read_modules
from ...expect.values import Unreadable

__metaclass__ = type


def observe_kernel_module(name, node):
    reading = read_modules([{'name': name}], folder=node.native('/sys/module'))[0]
    if isinstance(reading, Unreadable):
        raise reading
    return {'loaded': bool(reading.value)}
