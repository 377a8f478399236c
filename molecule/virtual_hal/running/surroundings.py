"""What a run here does not take over from the user who starts it: settings of their Ansible, terminal, language, umask.

Their ~/.ssh/config is kept out by inventory/virtual, for virtual nodes alone.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
THEIRS = ("ANSIBLE_", "COLUMNS", "LANG", "LC_", "LINES", "MOLECULE_", "PYTEST_", "PYTHON")
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # who is not root has them nowhere; ip, dnsmasq and modinfo are there
OURS = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "LANG": "C.UTF-8"}


def take_ours() -> None:
    """Put ours in their place, for this process and all that it starts."""
    for name in list(os.environ):
        if name.startswith(THEIRS):
            del os.environ[name]
    os.environ.update(OURS)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *SBIN])
    os.umask(0o022)
