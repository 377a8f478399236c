# -*- coding: utf-8 -*-
"""Slurm's files, commands and states.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
