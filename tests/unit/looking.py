"""Run what a role looks at before it writes: its tasks/look.yml, on a node that is a folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play


def look(
    folder: Path, role: str, paths: Mapping[str, str], programs: Mapping[str, str], **variables: Any
) -> subprocess.CompletedProcess[str]:
    """Return a finished run for hal05; `paths` of the role are below the folder, as the programs that stand in."""
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, text in programs.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    for path in (ROOT / "roles" / role).rglob("*"):
        if path.is_file():
            text = path.read_text()
            for old, new in {**paths, "PATH=$PATH:": f"PATH={bin_}:$PATH:"}.items():
                text = text.replace(old, new)
            copy = folder / "roles" / role / path.relative_to(ROOT / "roles" / role)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
    tasks = f"[{{import_role: {{name: {role}, tasks_from: look}}}}]"
    (folder / "play.yml").write_text(f"- {{hosts: hal05, gather_facts: false, connection: local, tasks: {tasks}}}\n")
    given = {"ansible_become": False, "ansible_python_interpreter": LOCAL, **variables}
    words = ["--limit", "hal05", "--extra-vars", json.dumps(given)]
    return play(folder / "play.yml", *words, ANSIBLE_ROLES_PATH=f"{folder}/roles:{ROOT}/roles")


def words(run: subprocess.CompletedProcess[str]) -> str:
    """What it said, with single blanks."""
    return " ".join((run.stdout + run.stderr).split())
