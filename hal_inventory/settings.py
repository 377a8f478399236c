"""Where sources come from when nobody names one, and the folder of ansible.cfg. Imports nothing slow."""

from __future__ import annotations

import os
from pathlib import Path

from hal_inventory.sources import split

ENVIRONMENT = "HAL_INVENTORY_SOURCES"
DEFAULT = "inventory/hal/hal.yml"


def root() -> Path:
    """Return the folder of the ansible.cfg that counts, else this project's."""
    project = Path(__file__).resolve().parent.parent
    configuration = _configuration(project)
    return configuration.parent if configuration is not None else project


def configured_sources() -> list[str]:
    """Return HAL_INVENTORY_SOURCES, else the inventory of ansible.cfg as Ansible finds it, else HAL's own source."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return list(split(named))
    inventory = os.environ.get("ANSIBLE_INVENTORY")
    if inventory:
        return [part.strip() for part in inventory.split(",") if part.strip()]
    project = Path(__file__).resolve().parent.parent
    configuration = _configuration(project)
    if configuration is not None:
        found = _inventory_of(configuration)
        if found:
            return found
    return [str(project / DEFAULT)]


def _configuration(project: Path) -> Path | None:
    named = os.environ.get("ANSIBLE_CONFIG")
    places = [Path(named).expanduser()] if named else []
    places += [Path("ansible.cfg"), project / "ansible.cfg"]
    for place in places:
        path = place / "ansible.cfg" if place.is_dir() else place
        if path.is_file():
            return path.absolute()
    return None


def _inventory_of(configuration: Path) -> list[str]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, inline_comment_prefixes=(";",))
    try:
        parser.read(configuration, encoding="utf-8")
        value = parser.get("defaults", "inventory", fallback="")
    except (Error, OSError, UnicodeDecodeError):
        return []  # Ansible itself says what is wrong with it
    parts = [os.path.expanduser(part.strip()) for part in value.split(",") if part.strip()]
    return [os.path.normpath(configuration.parent / part) for part in parts]
