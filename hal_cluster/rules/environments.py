"""Environments: what nodes are told of them, and their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Environment = Mapping[str, Any]


def declared(environments: Sequence[Environment]) -> list[dict[str, Any]]:
    """Return what `hal-environment status` compares with: of packages only the names of their records.

    `environments`: as lookup hal_environments returns them. Nodes keep the result below /etc/hal/environments.d; what
    only installing needs is not in it.
    """
    kept = ("id", "at", "name", "version", "link", "prefix", "digest", "python", "metas")
    return [{field: entry[field] for field in kept} for entry in environments]


def modules(
    environments: Sequence[Environment], owner_role: str, family: str = "", help: str = "", **more: Any
) -> list[dict[str, Any]]:
    """Return each environment as hal_module_files takes a module; `more`: fields for all of them.

    `environments`: as lookup hal_environments returns them. `owner_role` is written into the files. Modules of one
    `family` cannot be loaded beside each other. `help`: what `module help` says of all of them.
    """
    return [
        {
            "name": entry["name"], "version": entry["version"],
            "default": entry["default"],
            "title": entry["title"] or f"{entry['name']} {entry['version']}, Python {entry['python']}",
            "roots": [entry["link"]], "settings_file": _settings(entry["link"]), "owner_role": owner_role,
            "extensions": _extensions(entry["packages"]),
            **{field: entry[field] for field in ("hidden", "deprecated") if entry[field]},
            **({"family": family} if family else {}), **({"help": help} if help else {}), **more,
        }
        for entry in environments
    ]  # fmt: skip


def retired(declared: Sequence[Any], name: str, owner_role: str, root: str, family: str = "") -> list[dict[str, Any]]:
    """Return the retired ones of a declaration as hal_module_files takes a module: loading them says why.

    `root` and `family` are what they were loaded with: whoever has one loaded can unload it.
    `declared`: entries as they are written. `name`: that of entries which have none. `root`: the shared tree.
    `owner_role` is written into the files.
    """
    return [
        {
            "name": entry.get("name") or name, "version": entry["version"], "retired": entry["retired"],
            "owner_role": owner_role, **({"family": family} if family else {}),
            "settings_file": _settings(f"{root}/{entry.get('name') or name}/{entry['version']}"),
            "title": entry.get("title") or f"{entry.get('name') or name} {entry['version']}, retired",
        }
        for entry in declared
        if isinstance(entry, Mapping) and entry.get("retired") and entry.get("version")
    ]  # fmt: skip


def _extensions(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return NAME/VERSION of Python and of each locked package that needs it: what users look for by name.

    conda's names: PyTorch's is pytorch, which `module spider torch` finds, too. An epoch ("1!2.0") is left out.
    """
    return sorted(
        f"{package['name']}/{package['version'].rpartition('!')[2]}"
        for package in packages
        if not package["name"].startswith("_")
        and (package["name"] == "python" or any(words.split()[0] == "python" for words in package["depends"]))
    )


def _settings(link: str) -> str:
    """Return what an environment sets, as its installation wrote it down."""
    return f"{link}/.hal/activate.lua"
