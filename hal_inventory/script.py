"""The inventory script: --list and --host, as Ansible and other programs call it. Imports nothing slow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hal_inventory.compiled import Compiled
from hal_inventory.connection import Connection, connection
from hal_inventory.errors import HalError, UnknownNameError
from hal_inventory.packed import Packed, as_list, host_vars
from hal_inventory.printable import complain
from hal_inventory.settings import configured_sources
from hal_inventory.sources import all_sources, last_source, one_site
from hal_inventory.suggest import did_you_mean

USAGE = "usage: hal_inventory.py (--list | --host NAME)"


def source_of(paths: Sequence[str]) -> Path:
    """Return the source that decides; UnknownNameError if there is none, SourceFileError for sources of two sites."""
    source = last_source(paths, strict=True)
    if source is None:
        raise UnknownNameError(
            f"no source of plugin hal among: {', '.join(paths) or 'nothing'}; name a hal.yml with -i"
        )
    one_site(all_sources(paths))
    return source


def list_text(source: str | os.PathLike[str]) -> str:
    """Return what --list prints: the same bytes for the same input."""
    packed, reached = _read(source)
    return json.dumps(as_list(packed, reached), sort_keys=True, separators=(",", ":")) + "\n"


def host_text(source: str | os.PathLike[str], name: str) -> str:
    """Return what --host prints; UnknownNameError for a host that does not exist."""
    packed, reached = _read(source)
    variables: dict[str, Any] = host_vars(packed)
    if name not in variables:
        raise UnknownNameError(f'unknown node "{name}"{did_you_mean(name, variables, kind="nodes")}')
    whole = {**reached.everywhere(), **reached.of(name), **variables[name]}
    return json.dumps(whole, sort_keys=True, indent=2) + "\n"


def _read(source: str | os.PathLike[str]) -> tuple[Packed, Connection]:
    compiled = Compiled(source)
    packed = compiled.inventory()
    return packed, connection(compiled.source, packed["site"])


def main(arguments: Sequence[str]) -> int:
    """Run the script: 0, or 2 with the reason on standard error and nothing on standard output."""
    try:
        if list(arguments) == ["--list"]:
            text = list_text(source_of(configured_sources()))
        elif len(arguments) == 2 and arguments[0] == "--host":
            text = host_text(source_of(configured_sources()), arguments[1])
        else:
            print(USAGE, file=sys.stderr)
            return 2
    except HalError as error:
        complain(error)
        return 2
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
