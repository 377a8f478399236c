"""What `make shell` opens and `. .state/env` gives a shell: the programs, the configuration, and the nodes that run."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

PROJECT = Path(__file__).resolve().parents[3]
FILE = PROJECT / ".state" / "env"


def leave(source: Path) -> bool:
    """Write the file for the inventory source of the nodes that run; `make clean` removes it with them. True."""
    FILE.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = FILE.with_suffix(".new")
    temporary.write_text(text(source))
    os.replace(temporary, FILE)
    return True


def text(source: Path) -> str:
    """Return the file's text: plain sh."""
    return (
        "# Written by make demo, removed by make clean. Commands without -i go to the virtual HAL that runs.\n"
        f'export PATH={quote(str(PROJECT / ".venv/bin"))}:"$PATH"\n'
        f"export ANSIBLE_CONFIG={quote(str(PROJECT / 'ansible.cfg'))}\n"
        f"export ANSIBLE_INVENTORY={quote(str(source))}\n"
        "unset HAL_INVENTORY_SOURCES\n"
    )
