# -*- coding: utf-8 -*-
"""A Slurm daemon that is to run with the configuration that its files hold.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
