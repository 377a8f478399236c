# -*- coding: utf-8 -*-
"""Kinds of resources: one file for each, or for a family that one question answers; registry.py has them all.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
