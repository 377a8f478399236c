"""Run the command that the program was called as."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from virtual_scale import config, faults, filesystems, gpl, members, remote, running
from virtual_scale.say import Failed, note, out

Command = Callable[[Sequence[str]], int]
COMMANDS: dict[str, Command] = {
    "mmaddnode": members.mmaddnode,
    "mmautoload": running.mmautoload,
    "mmbuildgpl": gpl.mmbuildgpl,
    "mmchconfig": config.mmchconfig,
    "mmchfs": filesystems.mmchfs,
    "mmchlicense": members.mmchlicense,
    "mmchnodeclass": members.mmchnodeclass,
    "mmcrnodeclass": members.mmcrnodeclass,
    "mmdelnode": members.mmdelnode,
    "mmdelnodeclass": members.mmdelnodeclass,
    "mmdiag": config.mmdiag,
    "mmfsd": running.mmfsd,
    "mmgetstate": running.mmgetstate,
    "mmhealth": running.mmhealth,
    "mmlscluster": members.mmlscluster,
    "mmlsconfig": config.mmlsconfig,
    "mmlsfs": filesystems.mmlsfs,
    "mmlslicense": members.mmlslicense,
    "mmlsmount": filesystems.mmlsmount,
    "mmlsnodeclass": members.mmlsnodeclass,
    "mmlsnsd": filesystems.mmlsnsd,
    "mmmount": filesystems.mmmount,
    "mmremote": running.mmremote,
    "mmsdrrestore": members.mmsdrrestore,
    "mmshutdown": running.mmshutdown,
    "mmstartup": running.mmstartup,
    "mmumount": filesystems.mmumount,
}
HELP = ("-?", "-h", "--help")
FAILED = "{command}: Command failed. Examine previous error messages to determine cause."


def command(name: str, words: Sequence[str]) -> int:
    """Run one command; return its status after saying why it failed."""
    if name == "virtual-scale":
        chosen: Command = faults.virtual_scale
    else:
        chosen = COMMANDS[name]
        if words and words[0] in HELP:
            out(f"{name}: {chosen.__doc__}")
            out("Stand-in of the virtual HAL for IBM Spectrum Scale; the command line is IBM's.")
            return 0
    try:
        return chosen(words)
    except Failed as failure:
        if str(failure):
            note(str(failure).replace("{command}", name))
        if name in COMMANDS and name != "mmremote":
            note(FAILED.replace("{command}", name))
        return failure.status


def main() -> int:
    """Run the command of this program's name; `serve` answers a command of another node."""
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    if name == "serve":
        return remote.serve(command)
    if os.geteuid() != 0 and place_is_real():
        note(f"{name}: You must have root authority to run this command.")
        return 1
    return command(name, words)


def place_is_real() -> bool:
    """Return whether this is a node, and no test."""
    return "VIRTUAL_NODE_ROOT" not in os.environ
