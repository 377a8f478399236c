# -*- coding: utf-8 -*-
"""The tree of a node image while it is built.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
