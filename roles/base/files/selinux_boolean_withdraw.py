# -*- coding: utf-8 -*-
"""Takes back what this site has set of one boolean of SELinux, and prints its name if there was something."""

from __future__ import absolute_import, division, print_function

import sys

import seobject

records = seobject.booleanRecords()
if sys.argv[1] in records.get_all(locallist=1):
    records.delete(sys.argv[1])
    print(sys.argv[1])
