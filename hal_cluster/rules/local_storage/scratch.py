"""What scratch is before the role has written anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hal_cluster.rules.errors import RuleError

ABSENT = "No such file or directory"
MADE = ("empty", "755", "root:root")
"""What a folder, or the root of a file system, is that was just made: nobody has set anything there."""


def problem(seen: Mapping[str, Any], scratch: Mapping[str, Any], record: str) -> str:
    """Return why a folder for scratch is not taken as it is; empty when it may be given the declared mode.

    `seen`: what find said of the folder and of `record`, a file that is there where this role made the folder or was
    permitted to change it: a line each, "empty|used TYPE MODE USER:GROUP PATH". RuleError: it said something
    else.
    `seen` is a result with stdout_lines and stderr_lines. `scratch`: local_storage_scratch; without a mode in it 1777
    is declared.
    """
    lines = dict(_line(text) for text in seen["stdout_lines"])
    wrong = [text for text in seen["stderr_lines"] if ABSENT not in text]
    mount, declared = scratch["mount"], scratch.get("mode") or "1777"
    if wrong or not (lines or seen["stderr_lines"]):
        return f"{mount} cannot be looked at, so nothing was changed: {wrong[0] if wrong else 'find said nothing'}"
    if mount not in lines or record in lines:
        return ""
    filled, kind, mode, owner = lines[mount]
    if kind != "d":
        return f"{mount} is there and is no folder: move it away, or name another one (local_storage_scratch.mount)"
    if int(mode, 8) == int(declared, 8) or (filled, mode, owner) == MADE:
        return ""
    keep = mode.zfill(4)
    return (
        f"{mount} is there with mode {keep}, of {owner}, and this role did not create it; declared is mode {declared}. "
        f"Nothing was changed. To keep it, declare its mode: local_storage_scratch: {{mount: {mount}, "
        f'mode: "{keep}"}}. '
        "To change it, -e local_storage_scratch_mode_ok=true; its owner stays in any case"
    )


def _line(text: str) -> tuple[str, tuple[str, ...]]:
    fields = text.split(" ", 4)
    if len(fields) != 5:
        raise RuleError(f"hal_scratch_problem: find said {text!r}")
    return fields[4], tuple(fields[:4])


def served(text: str, settings: Mapping[str, Any]) -> bool:
    """Return whether the settings of a clean-up that runs on a node have the rules of these.

    `text`: its settings, JSON; empty where none runs. What cannot be read has other rules.
    Rules are the folder, the days, whether Slurm is asked and whether scratch is a disk. `settings`: the declared ones.
    """
    try:
        return _rules(json.loads(text)) == _rules(settings)
    except (ValueError, TypeError, KeyError):
        return False


def _rules(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the code of a permission stands for: code_of of scratch_clean.py."""
    return settings["mount"], int(settings["days"]), bool(settings["slurm"]), bool(settings["device"])
