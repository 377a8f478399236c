# -*- coding: utf-8 -*-
"""Promises of roles, read and judged on the node.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
