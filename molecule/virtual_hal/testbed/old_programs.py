"""Scripts that stand in front of a node's programs and refuse the options that CentOS 7's releases of them do not have.

The table is image/old_programs.yml, the check itself image/old_programs.sh. Nodes have the scripts in /usr/local/bin:
roles, expectations, modules and people meet them; what names its programs in full, or searches /usr/bin only (units,
package scripts, cron), has Debian's own. The lint of the tree runs the same scripts with nothing behind them.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import VirtualNodesError
from testbed.run import LAB

TABLE = LAB / "image" / "old_programs.yml"
CHECK = LAB / "image" / "old_programs.sh"
CHECK_ON_NODES = "/usr/libexec/hal-node/old_programs.sh"
FIELDS = ("options", "verbs", "columns", "outputs", "keywords", "style", "stops", "bundle")
STYLES = ("", "prefix", "words", "operands", "long")


@dataclass(frozen=True)
class Program:
    """A program as CentOS 7 has it; `absent` when it does not."""

    name: str
    package: str
    fields: tuple[tuple[str, str], ...] = ()
    absent: bool = False

    def script(self, real: str, check: str = CHECK_ON_NODES) -> str:
        """Return the script that checks its arguments and then becomes the program at `real`."""
        lines = [
            "#!/bin/sh",
            f"# {self.name} of {self.package}, CentOS 7: refuses what came later, else becomes {real}.",
        ]
        if self.absent:
            message = shlex.quote(f"{self.name}: not in {self.package} (CentOS 7)")
            lines.append(f"printf '%s\\n' {message} >&2; exit 127")
        else:
            lines += [f"program={self.name} package={shlex.quote(self.package)}"]
            lines += [f"{name}={shlex.quote(value)}" for name, value in self.fields]
            lines += [f". {shlex.quote(check)}", f'exec {shlex.quote(real)} "$@"']
        return "\n".join([*lines, ""])


def programs(table: Path = TABLE) -> dict[str, Program]:
    """Return every program of the table by name; raise VirtualNodesError that names the entry that is wrong."""
    programs: dict[str, Program] = {}
    for package, entry in yaml.safe_load(table.read_text()).items():
        title = f"{package} {entry['version']}"
        for names, fields in (entry.get("programs") or {}).items():
            for name in names.split():
                _add(programs, Program(name, title, _fields(name, fields)))
        for name in entry.get("absent", "").split():
            _add(programs, Program(name, title, absent=True))
    return programs


def _add(programs: dict[str, Program], program: Program) -> None:
    if program.name in programs:
        raise VirtualNodesError(f"{TABLE.name}: {program.name}: is there twice")
    programs[program.name] = program


def _fields(name: str, entry: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    unknown = set(entry) - {*FIELDS, "backported"}
    if unknown:
        raise VirtualNodesError(f"{TABLE.name}: {name}: no such field: {', '.join(sorted(unknown))}")
    if entry.get("style", "") not in STYLES:
        raise VirtualNodesError(f"{TABLE.name}: {name}: style: one of {', '.join(filter(None, STYLES))}")
    values = {field: _words(entry.get(field, "")) for field in FIELDS}
    values["options"] = _words(f"{values['options']} {entry.get('backported', '')}")
    return tuple(values.items())


def _words(value: object) -> str:
    return "yes" if value is True else " ".join(str(value).split())


def write(folder: Path) -> None:
    """Write all scripts into an empty folder; @real@ stands for the program, whose place only the image knows."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, program in programs().items():
        (folder / name).write_text(program.script("@real@"))
