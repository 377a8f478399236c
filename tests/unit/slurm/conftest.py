"""Make plugins/module_utils importable as Ansible imports it on a node."""

from __future__ import annotations

import sys
from pathlib import Path

import ansible.module_utils

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
ansible.module_utils.__path__.append(str(PLUGINS / "module_utils"))
sys.path.insert(0, str(PLUGINS / "filter"))
