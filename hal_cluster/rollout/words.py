"""What is said of a rollout that holds a node. A node chooses its words, so they are bounded and made printable."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.rollout.processes import Life
from hal_inventory.printable import one_line

SHORT = 80
LONG = 300
VALUED = "cfilMtTu"
"""Short options of ansible-playbook that take a value, beside -e."""
PERMISSION = "rollout_take_over"
"""The variable by which an administrator says that a controller is gone which cannot be seen from here."""


def command_line(argv: Sequence[str]) -> str:
    """Return a command as it was typed, without its extra variables: these may be secrets."""
    shown = [Path(argv[0]).name]
    hide = False
    for word in argv[1:]:
        option = "" if hide else _extra(word)
        if hide:
            shown.append("...")
        elif option and option != word:
            shown.append(f"{shlex.quote(option)}...")
        else:
            shown.append(shlex.quote(word))
        hide = bool(option) and option == word
    return one_line(" ".join(shown), LONG)


def _extra(word: str) -> str:
    """Return the begin of a word that gives extra variables, up to their value; all of it if that is the next word.

    As argparse reads it: a long option may be cut short, and short ones stand together until one takes a value.
    """
    if word.startswith("--"):
        name, is_, _value = word.partition("=")
        return name + is_ if name != "--" and "--extra-vars".startswith(name) else ""
    if not word.startswith("-"):
        return ""
    for place, letter in enumerate(word[1:], 2):
        if letter == "e":
            return word[: place + (word[place : place + 1] == "=")]
        if letter in VALUED:
            return ""
    return ""


def who(holder: Mapping[str, Any]) -> str:
    """Return who rolls out, where from, since when and by which command."""
    person, host, pid, command = (one_line(str(holder.get(key)), SHORT) for key in ("user", "host", "pid", "command"))
    command = one_line(str(holder.get("command")), LONG)
    return f"{person} on {host} (process {pid}) has held it for a rollout since {since(holder.get('since'))}: {command}"


def since(seconds: Any) -> str:
    """Return a time as administrators write it."""
    try:
        return datetime.datetime.fromtimestamp(float(seconds), datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (TypeError, ValueError, OverflowError, OSError):
        return "a time that cannot be read"


def refused(holder: Mapping[str, Any], life: Life) -> str:
    """Return why a node is refused, and what to do."""
    gone = f"If that controller is gone, say so: -e {PERMISSION}=true"
    if "run" not in holder:
        return f"somebody rolls it out, and what the node says of that cannot be read. {gone}"
    if life is Life.LIVES:
        return f"{who(holder)}. Wait until that ends, or leave the node out by --limit"
    return f"{who(holder)}. Wait until that ends, or leave the node out by --limit. {gone}"


def taken_over(holder: Mapping[str, Any], life: Life) -> str:
    """Return whose place a rollout took."""
    if life is Life.OVER:
        return f"taken over from a rollout that is gone ({who(holder)})"
    return f"taken over as {PERMISSION} permits ({who(holder)})"
