# -*- coding: utf-8 -*-
"""What runs on nodes. A module imports it as ansible.module_utils.hal_node; programs and the controller as hal_node.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type
