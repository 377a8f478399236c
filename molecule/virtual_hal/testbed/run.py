"""Run programs: quietly, with a log file, and with one clear line when they fail."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.errors import VirtualNodesError

LAB = Path(__file__).resolve().parent.parent
PODMAN = LAB / "podman"
TAIL_LINES = 15


def say(text: str) -> None:
    """Show progress on standard error, at once."""
    print(text, file=sys.stderr, flush=True)


def need(program: str, package: str) -> str:
    """Return the path of a program; raise VirtualNodesError that names the Debian package it comes in."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path is None:
        raise VirtualNodesError(f"{program} is not installed: apt install {package}")
    return path


def as_root(argv: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
    """Return argv as it has to be called to run as root with these variables set."""
    settings = [f"{name}={value}" for name, value in (env or {}).items()]
    command = ["env", *settings, *argv] if settings else list(argv)
    return command if os.geteuid() == 0 else ["sudo", "-n", *command]


def capture(argv: Sequence[str | Path], stdin: bytes | None = None) -> str:
    """Return what a program prints; raise VirtualNodesError with its last words when it fails."""
    command = [str(word) for word in argv]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        last = words[-1] if words else "no output"
        raise VirtualNodesError(f"{shlex.join(command[:4])} failed ({done.returncode}): {last}")
    return done.stdout.decode(errors="replace")


def logged(argv: Sequence[str | Path], log: Path, what: str, env: Mapping[str, str] | None = None) -> None:
    """Run a long program with its output in a log file; when it fails, raise VirtualNodesError with the log's tail."""
    command = [str(word) for word in argv]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"\n$ {shlex.join(command)}\n".encode())
        out.flush()
        environment = {**os.environ, **(env or {})}
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, check=False
        ).returncode
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        head = f"{what} failed ({code}); the end of {log}:"
        raise VirtualNodesError("\n".join([head, *(f"  {line}" for line in tail)]))
