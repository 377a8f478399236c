"""The sources if nobody names one, and the folder of ansible.cfg. Imports nothing slow."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hal_inventory.sources import split

if TYPE_CHECKING:
    from configparser import ConfigParser

ENVIRONMENT = "HAL_INVENTORY_SOURCES"
DEFAULT = "inventory/hal/hal.yml"


PROJECT = Path(__file__).resolve().parent.parent
PLUGIN = "hal"


def root() -> Path:
    """Return the folder of the ansible.cfg that counts, else this project's."""
    configuration = _configuration()
    return configuration.parent if configuration is not None else PROJECT


def configured_sources() -> list[str]:
    """Return HAL_INVENTORY_SOURCES, else the inventory of ansible.cfg as Ansible finds it, else HAL's own source."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return list(split(named))
    inventory = os.environ.get("ANSIBLE_INVENTORY")
    if inventory:
        return [part.strip() for part in inventory.split(",") if part.strip()]
    configuration = _configuration()
    if configuration is not None:
        sources = _inventory_of(configuration)
        if sources:
            return sources
    return [str(PROJECT / DEFAULT)]


def _configuration() -> Path | None:
    """Return Ansible's configuration, looked for where Ansible does (find_ini_config_file in its config/manager.py).

    Somebody chose that of ANSIBLE_CONFIG. Those that merely lie about, as in the current folder, count only if Ansible
    would find our plugin by them: others are for something else. The last one is the project's own.
    """
    named = os.environ.get("ANSIBLE_CONFIG")
    if named:
        place = Path(os.path.expandvars(named)).expanduser()
        path = place / "ansible.cfg" if os.path.isdir(place) else place
        if os.path.isfile(path):
            return path.absolute()
    own = PROJECT / "ansible.cfg"
    places = [Path(os.path.expanduser("~/.ansible.cfg")), Path("/etc/ansible/ansible.cfg")]
    here = _here()
    if here is not None:
        places.insert(0, here / "ansible.cfg")
    for path in places:
        if os.path.isfile(path) and _is_ours(path):
            return path
    return own if own.is_file() else None


def _here() -> Path | None:
    """Return the current folder; None if anybody may write there, because Ansible ignores an ansible.cfg in it then."""
    try:
        folder = Path.cwd()
        return None if folder.stat().st_mode & stat.S_IWOTH else folder
    except OSError:  # it was removed
        return None


def _is_ours(configuration: Path) -> bool:
    """Tell whether a configuration enables our inventory plugin, or names a folder that has it."""
    parser = _parsed(configuration)
    enabled = parser.get("inventory", "enable_plugins", fallback="").split(",")
    folders = parser.get("defaults", "inventory_plugins", fallback="").split(os.pathsep)
    return PLUGIN in (name.strip() for name in enabled) or any(
        os.path.isfile(configuration.parent / os.path.expanduser(folder.strip()) / f"{PLUGIN}.py")
        for folder in folders
        if folder.strip()
    )


def _inventory_of(configuration: Path) -> list[str]:
    value = _parsed(configuration).get("defaults", "inventory", fallback="")
    parts = [os.path.expanduser(part.strip()) for part in value.split(",") if part.strip()]
    return [os.path.normpath(configuration.parent / part) for part in parts]


def _parsed(configuration: Path) -> ConfigParser:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, inline_comment_prefixes=(";",))
    try:
        parser.read(configuration, encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):
        # Ansible itself says what is wrong with it.
        return ConfigParser(interpolation=None)
    return parser
