#!/usr/bin/env python3
"""The site model as an executable inventory (--list, --host NAME), for programs that are not Ansible.

Sources: HAL_INVENTORY_SOURCES, separated by colons, else those of ansible.cfg. Ansible itself uses the plugin: the
script plugin is not enabled in ansible.cfg, so this file is never run by accident.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
NEEDED = ("yaml", "pydantic", "ClusterShell")


def main() -> int:
    """Run the script; in the project's environment when this Python lacks what it needs."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        environment = os.path.join(ROOT, ".venv")
        python = os.path.join(environment, "bin", "python")
        if os.access(python, os.X_OK) and os.path.realpath(sys.prefix) != os.path.realpath(environment):
            os.execv(python, [python, os.path.realpath(__file__), *sys.argv[1:]])
        sys.exit(f"{sys.argv[0]}: {sys.executable} lacks {', '.join(missing)}; make setup installs them into .venv")
    sys.path.insert(0, ROOT)
    from hal_inventory.script import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
