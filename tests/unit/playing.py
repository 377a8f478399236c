"""Run a playbook with the real inventories, without recording and without the caller's settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.unit import warm

ROOT = Path(__file__).resolve().parents[2]
UNRECORDED = "hal_bench_unrecorded"  # our playbooks refuse to run without the callbacks that it stands for
CALLBACK_PLUGINS = f"{ROOT / 'plugins/callback'}:{ROOT / 'tests/bench/callback'}"
LONG_SECONDS = 600  # a run that has not ended by then never will


def play(
    playbook: Path | str,
    *arguments: str,
    sites: Sequence[str] = ("hal", "virtual"),
    state: Path | str | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Return a finished ansible-playbook with the inventories of these sites; `playbook` is relative to the root.

    `state`: a folder that is there, for the controller's state; otherwise it is the last site's own.
    """
    sources = [word for name in sites for word in ("-i", f"inventory/{name}/hal.yml")]
    if state is not None:
        own = {"plugin": "hal", "base": str(ROOT / f"inventory/{sites[-1]}/hal.yml"), "state": str(state)}
        source = Path(state, "hal.yml")
        source.write_text(json.dumps(own))
        sources += ["-i", str(source)]
    words = [str(Path(sys.executable).with_name("ansible-playbook")), *sources, *arguments, str(playbook)]
    settings = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_PLUGINS": CALLBACK_PLUGINS,
        "ANSIBLE_CALLBACKS_ENABLED": UNRECORDED,
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        **environment,
    }
    return warm.run(words, settings, LONG_SECONDS)


def play_text(
    folder: Path,
    text: str,
    limit: str,
    *,
    sites: Sequence[str] = ("hal", "virtual"),
    state: Any = None,
    **variables: Any,
) -> subprocess.CompletedProcess[str]:
    """Return a finished run of this playbook, which prints JSON; `folder` is where it is written."""
    playbook = folder / "play.yml"
    playbook.write_text(text)
    words = ("--limit", limit, "--extra-vars", json.dumps(variables))
    return play(playbook, *words, sites=sites, state=state, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json")
