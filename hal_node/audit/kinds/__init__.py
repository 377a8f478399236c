# -*- coding: utf-8 -*-
"""Kinds of resources: how each is read, one file a kind or a family that one question answers.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
