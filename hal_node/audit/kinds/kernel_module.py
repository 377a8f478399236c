# -*- coding: utf-8 -*-
"""Kernel modules: loaded or not.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind
from ...expect.kernel import read_modules
from ...expect.values import Unreadable

MYPY = False
if MYPY:
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type


def observe_kernel_module(name, node):
    # type: (str, Node) -> Attributes
    reading = read_modules([{'name': name}], folder=node.native('/sys/module'))[0]
    if isinstance(reading, Unreadable):
        raise reading
    return {'loaded': bool(reading.value)}


class KernelModule(Kind):
    """kernel-module:NAME."""

    words = {'loaded': 'live'}

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return observe_kernel_module(name, survey.node)
