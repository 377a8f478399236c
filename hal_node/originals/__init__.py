# -*- coding: utf-8 -*-
"""What a role replaced for the first time: kept, listed, put back.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
