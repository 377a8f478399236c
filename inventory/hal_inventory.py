#!/usr/bin/env python3
"""The site model as an executable inventory (--list, --host NAME), for programs that are not Ansible.

Sources: HAL_INVENTORY_SOURCES, separated by colons, else those of ansible.cfg. Ansible itself uses the plugin: the
script plugin is not enabled in ansible.cfg, so this file is never run by accident.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hal_inventory.script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
