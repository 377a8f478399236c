"""``hal-audit timer``: an audit in depth each night, by systemd on the controller.

The controller is not a node and no role sets it up, so this command writes the units. Root's units go to the system,
those of others to their own systemd, which runs without a login once lingering is enabled.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hal_cluster.audit.cli import playbook
from hal_cluster.audit.errors import AuditError

NAME = "hal-audit"
TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d")
# What a run takes over from the shell that set it up: which configuration, which nodes, and where the vault's password
# is. The folder, which may have an ansible.cfg, is taken over, too.
TAKEN = (
    "ANSIBLE_CONFIG",
    "ANSIBLE_INVENTORY",
    "ANSIBLE_VAULT_PASSWORD_FILE",
    "ANSIBLE_VAULT_IDENTITY_LIST",
    "SSH_AUTH_SOCK",
)
# If an audit finds something, the unit fails: systemctl --failed names it, and the journal has the report.
SERVICE = """\
# Written by hal-audit timer; changes made here are lost.
[Unit]
Description=Is every node still what was declared? With all files of all packages

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}ExecStart={command}
"""
TIMER = """\
# Written by hal-audit timer; changes made here are lost.
[Unit]
Description=Audit the nodes in depth each night

[Timer]
OnCalendar={at}
Persistent=true

[Install]
WantedBy=timers.target
"""


def timer(options: argparse.Namespace) -> int:
    """Write the units and start the timer, or take both away; return the exit status."""
    user = [] if os.geteuid() == 0 else ["--user"]
    folder = units_folder()
    paths = [folder / f"{NAME}.{kind}" for kind in ("service", "timer")]
    if options.remove:
        _systemctl([*user, "disable", "--now", f"{NAME}.timer"])
        for path in paths:
            path.unlink(missing_ok=True)
        _systemctl([*user, "daemon-reload"])
        print("From now on an audit runs only by hand.")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    made = texts(options.at, options.sources, options.rest, os.environ)
    for path, text in zip(paths, made, strict=True):
        path.write_text(text, encoding="utf-8")
    _systemctl([*user, "daemon-reload"])
    _systemctl([*user, "enable", "--now", f"{NAME}.timer"])
    print(f"It runs each night: {paths[1]}. Last result: systemctl {' '.join([*user, 'status', NAME])}")
    if user:
        print("To let it run while nobody is logged in: loginctl enable-linger")
    return 0


def units_folder() -> Path:
    """The folder for units of the user who runs this."""
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"


def texts(at: str, sources: Sequence[str], rest: Sequence[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the service and the timer. AuditError for a time that systemd cannot have."""
    if not at.strip() or "\n" in at:
        raise AuditError("--at: write a time of day, such as 03:30, or what systemd takes for OnCalendar")
    argv = [playbook.program("hal-audit"), "run", "--deep"]
    argv += [word for source in sources for word in ("-i", os.path.abspath(source))]
    argv += ["--", *rest] if rest else []
    taken = {name: environment[name] for name in TAKEN if environment.get(name)}
    lines = "".join(f"Environment={quoted(f'{name}={value}')}\n" for name, value in taken.items())
    command = " ".join(quoted(word).replace("$", "$$") for word in argv)  # there it would begin a variable
    service = SERVICE.format(folder=escaped(os.getcwd()), environment=lines, command=command)
    return service, TIMER.format(at=f"*-*-* {at}:00" if TIME.fullmatch(at) else at)


def escaped(text: str) -> str:
    """Return a text as systemd takes it whole, to the end of the line: its specifiers begin with %."""
    if "\n" in text:
        raise AuditError(f"{text!r} has a line break, which no unit can have")
    return text.replace("%", "%%")


def quoted(word: str) -> str:
    """Return a word as systemd.syntax(7) has it."""
    inner = escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def _systemctl(words: Sequence[str]) -> None:
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise AuditError(f"systemctl cannot be run: {error.strerror}: this controller has no systemd") from None
    if done.returncode != 0 and "disable" not in words:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise AuditError(f"systemctl {' '.join(words)}: {said}")
