"""What a site sets in group_vars and host_vars: each name has a reader, and each file says one thing.

Files in, findings out. Nothing is evaluated and no vault is opened. Which names have a reader: ``variable_names``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from hal_inventory import managed
from hal_inventory.compiled import Compiled
from hal_inventory.connection import MOVED
from hal_inventory.errors import ClusterFileError, Finding, FindingsError
from hal_inventory.packed import group_members
from hal_inventory.printable import printable
from hal_inventory.reader import Document, Scalar, display_name, parse, read_bytes
from hal_inventory.reader import Sequence as Items
from hal_inventory.slurm_parameters import SECTIONS
from hal_inventory.sources import read_source
from hal_inventory.suggest import did_you_mean, nearest
from hal_inventory.variable_names import OF_THE_MODEL, SITE_VARIABLES, words_of_expressions

GROUPS, HOSTS = "group_vars", "host_vars"
SUFFIXES = ("", ".yml", ".yaml", ".json")  # as Ansible tries them; of several files for one name it reads the first
VAULT = b"$ANSIBLE_VAULT"
TIME_ZONE = "base_time_zone"
MADE_IN_A_RUN = frozenset({"bootstrap_asked", "bootstrap_known", "bootstrap_made", "image_root"})
"""Groups that no model has: playbooks/bootstrap.yml and playbooks/image.yml make them. They may have group_vars."""
CLOSE = 0.8
"""As suggest.CLOSE, but higher: names begin with those of roles, so many are alike for that reason alone."""


@dataclass
class Variables:
    """What was read: documents, names of vaulted files, findings and remarks."""

    documents: list[Document] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    """Every word in a template of these files."""
    vaulted: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


Owners: TypeAlias = Mapping[str, Collection[str]]
"""For GROUPS and HOSTS the names that have variables."""


def check_source(path: str | os.PathLike[str], known: Collection[str]) -> Variables:
    """Return what is wrong with the group_vars and host_vars of a source and its bases.

    ``known``: the names that the project reads. A FindingsError says why the source itself cannot be read.
    """
    source = read_source(path)
    sources = (*source.bases, source.path)
    return check(list(dict.fromkeys(file.parent for file in sources)), known, _owners(sources))


def _owners(sources: Sequence[Path]) -> Owners | None:
    """Return the groups and nodes of the sources' models, without restrictions; None if a model has a fault."""
    owners: dict[str, set[str]] = {GROUPS: {"all", "ungrouped", *MADE_IN_A_RUN}, HOSTS: {"localhost"}}
    try:
        for path in sources:
            compiled = Compiled(path)
            compiled.source = replace(compiled.source, only=None)
            packed = compiled.inventory()
            owners[GROUPS].update(group_members(packed))
            owners[HOSTS].update(host[0] for host in packed["hosts"])
    except FindingsError:  # whoever reads the model says it
        return None
    return owners


def check(folders: Sequence[Path], known: Collection[str], owners: Owners | None = None) -> Variables:
    """Return what is wrong with the variables in group_vars and host_vars of the folders, taken together.

    ``owners``: if they are known, a file for any other name is a fault.
    """
    read = Variables()
    for folder in folders:
        for kind in (GROUPS, HOSTS):
            _read_folder(folder / kind, owners[kind] if owners else None, read)
    _check_names(read, known)
    _check_time_zones(read)
    _check_managed_roles(read)
    if read.vaulted:
        read.remarks.append(_unread(read.vaulted))
    read.findings = sorted(set(read.findings))
    return read


def endless(folders: Sequence[Path]) -> list[Finding]:
    """Return what Ansible's own plugin would read for ever in group_vars and host_vars of the folders.

    It opens whatever has the name of a group or node, even a pipe or /dev/zero; in folders below it takes only files.
    """
    read = Variables()
    for folder in folders:
        for kind in (GROUPS, HOSTS):
            for path in _listed(folder / kind, read):
                if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
                    _fault(read, path, _oddity(path))
    return read.findings


def _unread(vaulted: Sequence[str]) -> str:
    files = "1 vaulted file was" if len(vaulted) == 1 else f"{len(vaulted)} vaulted files were"
    return f"{files} not read: {', '.join(vaulted)}"


# --- files, as Ansible finds them (find_vars_files of its parsing/dataloader.py) ---


def _read_folder(folder: Path, owners: Collection[str] | None, read: Variables) -> None:
    first: dict[str, Path] = {}
    for path in sorted(_listed(folder, read), key=lambda path: (path.stem, SUFFIXES.index(path.suffix))):
        name = path.stem
        if first.setdefault(name, path) is not path:
            _fault(read, path, f"is not read: Ansible reads {first[name].name} beside it instead; put the two together")
        elif owners is not None and name not in owners:
            what = "group" if folder.name == GROUPS else "node"
            _fault(read, path, f'is not read: there is no {what} "{name}"{did_you_mean(name, owners, kind=f"{what}s")}')
        else:
            before = len(read.documents)
            _read_path(path, read, ())
            read.remarks += _repeats(read.documents[before:])


def _listed(folder: Path, read: Variables) -> list[Path]:
    """Return what of a folder Ansible would read."""
    if not os.path.lexists(folder):
        return []
    try:
        paths = [folder / name for name in os.listdir(folder)]
    except OSError as error:
        _fault(read, folder, f"cannot be read: {error.strerror}")
        return []
    return [path for path in paths if path.suffix in SUFFIXES and path.name[0] != "." and path.name[-1] != "~"]


def _read_path(path: Path, read: Variables, above: tuple[str, ...]) -> None:
    if os.path.isdir(path):
        real = os.path.realpath(path)
        if real in above:
            _fault(read, path, "is a link to a folder that it is in; take it away")
        else:
            for inner in sorted(_listed(path, read)):
                _read_path(inner, read, (*above, real))
    elif os.path.isfile(path):
        _read_file(path, read)
    else:
        _fault(read, path, _oddity(path))


def _oddity(path: Path) -> str:
    """Return why a path cannot be read: it is missing, or reading it would never end."""
    try:
        os.stat(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "is neither a file nor a folder; take it away"


def _read_file(path: Path, read: Variables) -> None:
    name = display_name(path)
    try:
        content = read_bytes(path)
        if content.startswith(VAULT):
            read.vaulted.append(name)
            return
        document = parse(content, name, variables=True)
    except ClusterFileError as error:
        read.findings += error.findings
        return
    read.documents.append(document)
    read.words.update(words_of_expressions(content.decode("utf-8-sig")))
    read.findings += document.findings


def _fault(read: Variables, path: Path, message: str) -> None:
    read.findings.append(Finding(display_name(path), 0, "", message))


# --- names ---


def _repeats(documents: Sequence[Document]) -> Iterator[str]:
    """Give what several files of one group or node set. Of these the last one counts, as Ansible reads them."""
    earlier: dict[str, str] = {}
    for document in documents:
        for name, line in document.root.lines.items():
            place = f"{document.file}:{line}"
            if name in earlier and name != SITE_VARIABLES:  # its lists add up
                yield printable(f"{place}: {name}: counts instead of {earlier[name]}")
            earlier[name] = place


def _check_names(read: Variables, known: Collection[str]) -> None:
    declared = [name for document in read.documents for name in _declared(document, read)]
    for document in read.documents:
        for name in document.root.items:
            problem = _problem(name, known, read.words, declared)
            if problem:
                read.findings.append(Finding(document.file, document.line((name,)), name, problem))


def _declared(document: Document, read: Variables) -> Iterator[str]:
    """Give the names that a site says it reads itself."""
    value = document.root.items.get(SITE_VARIABLES)
    if value is None:
        return
    items = value.items if isinstance(value, Items) else [value]
    if not (isinstance(value, Items) and items and all(isinstance(item, Scalar) for item in items)):
        message = "must be a list of names such as [motd_text, grafana_*]"
        read.findings.append(Finding(document.file, document.line((SITE_VARIABLES,)), SITE_VARIABLES, message))
    yield from (item.text for item in items if isinstance(item, Scalar))


def _problem(name: str, known: Collection[str], words: Collection[str], declared: Sequence[str]) -> str:
    """Return why nobody reads a name, or the empty text."""
    if name in MOVED:
        return f"does not count for all that uses it; write {MOVED[name]} into the source, hal.yml"
    if name in OF_THE_MODEL:
        return "comes from cluster.yml; take it away here"
    if name in known or name in words or name.startswith("ansible_"):
        return ""
    if any(fnmatchcase(name, pattern) for pattern in declared):
        return ""
    return f"no role and no playbook reads it{_instead(name, known)}"


def _instead(name: str, known: Collection[str]) -> str:
    parameter = _SLURM.get(name.removeprefix("slurm_").replace("_", "").lower())
    if parameter and name.startswith("slurm_"):
        return f"; write {parameter} into slurm_settings_site"
    close = nearest(name, known, close=CLOSE)
    if close:
        return f'; did you mean "{close}"?'
    return f"; where a playbook of yours does, name it in {SITE_VARIABLES}"


_SLURM = {parameter.lower(): parameter for parameter in SECTIONS["slurm.conf"]}


# --- values ---


def _check_time_zones(read: Variables) -> None:
    for document in read.documents:
        value = document.root.items.get(TIME_ZONE)
        if not isinstance(value, Scalar) or _is_later(value, document) or _is_zone(value.text):
            continue
        if not _is_zone("Etc/UTC"):
            read.remarks.append(f"{TIME_ZONE} was not checked: this machine has no time zones (package tzdata)")
            return
        message = f'"{value.text}" is not a time zone{_near_zone(value.text)}'
        read.findings.append(Finding(document.file, value.line, TIME_ZONE, message))


def _check_managed_roles(read: Variables) -> None:
    for document in read.documents:
        value = document.root.items.get(managed.VARIABLE)
        if value is None or (isinstance(value, Scalar) and _is_later(value, document)):
            continue
        items = value.items if isinstance(value, Items) else [value]
        scalars = [item for item in items if isinstance(item, Scalar)]
        if any(_is_later(item, document) for item in scalars):
            continue
        names = [item.text for item in scalars] if isinstance(value, Items) and len(scalars) == len(items) else None
        if problem := managed.problem(names):
            line = document.line((managed.VARIABLE,))
            said = problem.removeprefix(f"{managed.VARIABLE}").lstrip(": ")
            read.findings.append(Finding(document.file, line, managed.VARIABLE, said))


def _is_later(value: Scalar, document: Document) -> bool:
    """Tell whether only a run shows a value (the role refuses null), or it is at fault already."""
    only_then = value.text.startswith(VAULT.decode()) or "{{" in value.text or "{%" in value.text
    null = value.plain and not value.text
    return only_then or null or any(finding.line == value.line for finding in document.findings)


def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a folder of zones, no file of zones, nothing there
        return False
    return True


def _near_zone(name: str) -> str:
    from zoneinfo import available_timezones

    zones = {zone.lower(): zone for zone in available_timezones()}
    close = nearest(name.lower(), zones, close=CLOSE)
    return f'; did you mean "{zones[close]}"?' if close else "; write one such as America/Chicago"
