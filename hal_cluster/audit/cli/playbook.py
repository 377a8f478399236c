"""Call Ansible's programs: this environment's, with this project's configuration, quietly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hal_cluster.audit.errors import AuditError

PROJECT = Path(__file__).resolve().parents[3]
# Lines that say why Ansible ended before it did anything.
REASON = re.compile(r"^(?:\[ERROR\]: |ERROR! |ansible(?:-playbook)?: error: )(.*)$", re.MULTILINE)


def program(name: str) -> str:
    """Return the path of one of Ansible's programs: the one beside this Python, else the one in PATH."""
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.is_file() else shutil.which(name)
    if not path:
        raise AuditError(f"{name} is not installed: make setup")
    return path


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment: the configuration that somebody chose, else this project's."""
    configure()
    return {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0", **extra}


def configure() -> None:
    """Make Ansible find this project's configuration from any folder. Before it is imported."""
    if not os.environ.get("ANSIBLE_CONFIG") and not Path("ansible.cfg").is_file():
        os.environ["ANSIBLE_CONFIG"] = str(PROJECT / "ansible.cfg")


def arguments(sources: Sequence[str], limit: str, rest: Sequence[str]) -> list[str]:
    """Return the options that all calls have."""
    options = [word for source in sources for word in ("-i", source)]
    return [*options, *(["--limit", limit] if limit else []), *rest]


def reason(status: int, out: str, err: str) -> str:
    """Return why a call came to nothing, in one line."""
    matched = REASON.search(err) or REASON.search(out)
    if matched:
        return matched[1].strip()
    lines = [line for line in (err.strip() or out.strip()).splitlines() if line.strip()]
    return f"{lines[-1].strip() if lines else 'it said nothing'} (exit status {status})"


def call(command: Sequence[str], extra: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible and keep what it prints."""
    return subprocess.run(command, env=environment(extra), capture_output=True, text=True, check=False)
