"""Inventory sources: small files that name a cluster.yml, and which view of it to take. Imports nothing slow.

plugin: hal
base: ../hal/hal.yml                    # another source; what this one does not say, that one does
cluster: cluster.yml                    # relative to this file
virtual: true                           # the nodes are containers; placeholders may be used
only: login or hal[01-02]               # part of the site
networks: {management: 10.65.3.0/24}    # other networks, the same host parts
state: ../../.state/virtual             # the controller's folder for the site; else .state/<name> beside ansible.cfg
ssh: {user: root, key: FILE}            # how nodes are reached; else as root, with ca/admin in state
users: users.yml                        # relative to this file; without it the one beside the cluster.yml, if any
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hal_inventory.errors import ClusterFileError, Finding, SourceFileError
from hal_inventory.reader import Document, display_name, parse, read_bytes
from hal_inventory.suggest import did_you_mean

SOURCE_NAME = "hal.yml"
MODEL_NAME = "cluster.yml"
USERS_NAME = "users.yml"
FIELDS = ("plugin", "base", "cluster", "virtual", "only", "networks", "users", "state", "ssh")
SSH_FIELDS = ("user", "key")
PLUGINS = ("hal",)


@dataclass(frozen=True)
class Source:
    """One source file, read."""

    path: Path
    cluster: Path
    virtual: bool = False
    only: str | None = None
    networks: Mapping[str, str] = field(default_factory=dict)
    users: Path | None = None
    state: Path | None = None
    ssh: Mapping[str, str | Path] = field(default_factory=dict)
    said: Mapping[str, Path] = field(default_factory=dict)
    """Which file says a field: this one, or one of its bases."""
    bases: tuple[Path, ...] = ()
    """The bases of this source, first to last: their group_vars count in this order, its own last."""

    @property
    def users_file(self) -> Path | None:
        """Return the users.yml that the source names, else the one beside its cluster.yml; None if there is none."""
        beside = self.cluster.parent / USERS_NAME
        return self.users or (beside if os.path.lexists(beside) else None)

    def view(self) -> dict[str, Any]:
        """Return what the source makes of its cluster.yml, as plain data. With that file's content it decides all."""
        return {"virtual": self.virtual, "only": self.only, "networks": dict(sorted(self.networks.items()))}


def read_source(path: str | os.PathLike[str]) -> Source:
    """Return a source; SourceFileError with every finding if it, or one of its bases, cannot be used."""
    return _read(Path(path), ())


def _read(path: Path, above: tuple[Path, ...]) -> Source:
    """Return a source that is a base of those ``above``."""
    try:
        document = parse(read_bytes(path), display_name(path))
    except ClusterFileError as error:
        raise SourceFileError(error.findings) from None
    given, base = _checked(path, document)
    if document.findings:
        raise SourceFileError(document.findings)
    if base is None:
        return Source(path, said=dict.fromkeys(given, path), **given)
    above = (*above, path)
    if any(os.path.realpath(base) == os.path.realpath(earlier) for earlier in above):
        document.add(("base",), f"{display_name(base)} begins with this one: that is a circle")
        raise SourceFileError(document.findings)
    below = _read(base, above)
    said = {**below.said, **dict.fromkeys(given, path)}
    return replace(below, path=path, said=said, bases=(*below.bases, base), **given)


def _checked(path: Path, document: Document) -> tuple[dict[str, Any], Path | None]:
    """Return the fields that a source says, and its base. Faults are added to the document."""
    data: dict[str, Any] = document.plain()
    if data.get("plugin") not in PLUGINS:
        what = "this is a site model; name a source for it, a hal.yml" if "format" in data else "must be hal"
        document.add(("plugin",), f"{what} (plugin: hal, cluster: {MODEL_NAME})")
        return {}, None
    for name in data:
        if name not in FIELDS:
            document.add((name,), f"unknown field{did_you_mean(name, FIELDS, kind='fields')}")
    base = _text(document, data, "base", "the path of another source, such as ../hal/hal.yml")
    cluster = _text(document, data, "cluster", "the path of a cluster.yml")
    if "cluster" not in data and "base" not in data:
        document.add(("cluster",), "is missing; name the cluster.yml, relative to this file")
    virtual = data.get("virtual", False)
    if not isinstance(virtual, bool):
        document.add(("virtual",), "must be true or false")
    networks = data.get("networks", {})
    if not isinstance(networks, dict):
        document.add(("networks",), "must be a mapping of network names to networks")
        networks = {}
    for name, value in networks.items():
        if not isinstance(value, str):
            document.add(("networks", name), "must be a network such as 10.65.3.0/24")
    only = _text(document, data, "only", "an expression such as login or hal[01-02]")
    users = _text(document, data, "users", "the path of a users.yml")
    state = _text(document, data, "state", "the path of a folder")
    read = {
        "cluster": path.parent / (cluster or ""),
        "virtual": virtual,
        "only": only,
        "networks": networks,
        "users": path.parent / users if users else None,
        "state": _for_ssh(path, document, ("state",), state) if state else None,
        "ssh": _ssh(path, document, data.get("ssh", {})),
    }
    return {name: value for name, value in read.items() if name in data}, path.parent / base if base else None


def _ssh(path: Path, document: Document, data: Any) -> dict[str, str | Path]:
    """Return how nodes are reached, paths joined with the folder of the source."""
    if not isinstance(data, dict):
        document.add(("ssh",), "must be a mapping such as {user: root, key: FILE}")
        return {}
    ssh: dict[str, str | Path] = {}
    for name, value in data.items():
        if name not in SSH_FIELDS:
            document.add(("ssh", name), f"unknown field{did_you_mean(name, SSH_FIELDS, kind='fields')}")
        elif not isinstance(value, str) or not value.strip():
            document.add(("ssh", name), "must be " + ("a name" if name == "user" else "the path of a file"))
        elif name == "user" and not _USER.fullmatch(value):
            document.add(("ssh", name), f'"{value}" is not the name of a user')
        else:
            ssh[name] = value if name == "user" else _for_ssh(path, document, ("ssh", name), value)
    return ssh


def _for_ssh(path: Path, document: Document, where: tuple[str, ...], value: str) -> Path:
    """Return a path for ssh, joined with the folder of the source; ~ is somebody's home, as for ssh."""
    expanded = os.path.expanduser(value)
    if '"' in value:
        document.add(where, "has a quotation mark, which ssh takes for the end of a path")
    elif expanded.startswith("~"):
        document.add(where, f"{value.partition('/')[0]} is nobody's home here; a folder of that name is ./~...")
    return path.parent / expanded


_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _text(document: Document, data: Mapping[str, Any], name: str, what: str) -> str | None:
    value = data.get(name)
    if name in data and (not isinstance(value, str) or not value.strip()):
        document.add((name,), f"must be {what}")
        return None
    return value


def last_source(paths: Iterable[str], *, strict: bool = False) -> Path | None:
    """Return the last source of the model among Ansible's inventory sources; of a folder the hal.yml in it.

    ``strict`` takes any YAML file, and any that does not exist, for a source: reading it then says what is wrong.
    """
    for path in reversed(_files(paths)):
        if is_source(path) or (strict and (path.suffix in _SUFFIXES or not os.path.exists(path))):
            return path
    return None


def _files(paths: Iterable[str]) -> list[Path]:
    return [path / SOURCE_NAME if os.path.isdir(path) else path for path in map(Path, paths)]


def all_sources(paths: Iterable[str]) -> list[Source]:
    """Return every source of the model among Ansible's inventory sources; SourceFileError as ``read_source``."""
    return [read_source(path) for path in _files(paths) if is_source(path)]


def one_site(sources: Iterable[Source]) -> None:
    """Raise SourceFileError if sources of one call are of two sites: the group_vars of both would count."""
    first: Source | None = None
    for source in sources:
        if first is not None and not _same_site(first, source):
            message = (
                f"is of another site than {display_name(first.path)} in the same call; name one, or give it a base"
            )
            raise SourceFileError([Finding(display_name(source.path), 0, "", message)])
        first = source


def _same_site(first: Source, other: Source) -> bool:
    """Tell whether two sources have one model, or one of them is a base of the other."""
    files = [{os.path.realpath(path) for path in (source.path, *source.bases)} for source in (first, other)]
    return os.path.realpath(first.cluster) == os.path.realpath(other.cluster) or bool(
        os.path.realpath(first.path) in files[1] or os.path.realpath(other.path) in files[0]
    )


_SUFFIXES = (".yml", ".yaml")
_MARK = re.compile(rb"""(?:^|[{,\s])["']?plugin["']?\s*:\s*["']?hal["']?\s*(?:$|[,}#])""", re.MULTILINE)
_MODEL_MARK = re.compile(rb"^format\s*:", re.MULTILINE)


def is_source(path: Path) -> bool:
    """Tell whether a YAML file says ``plugin: hal``, without reading it as YAML."""
    return path.suffix in _SUFFIXES and _says(path, _MARK)


def is_model(path: Path) -> bool:
    """Tell whether a file is meant to be a site model rather than a source."""
    return path.name == MODEL_NAME or (not is_source(path) and _says(path, _MODEL_MARK))


def is_users(path: Path) -> bool:
    """Tell whether a file is meant to be a site's list of users."""
    return path.name == USERS_NAME


def _says(path: Path, mark: re.Pattern[bytes]) -> bool:
    try:
        return mark.search(read_bytes(path)) is not None
    except ClusterFileError:
        return False


def split(text: str) -> Sequence[str]:
    """Split HAL_INVENTORY_SOURCES at its colons."""
    return [part for part in text.split(os.pathsep) if part]
