"""The directives of singularity.conf: what the file of Singularity 3.5 to 3.8 may say, and its text.

Source: struct and template of pkg/runtime/engine/config/config.go (3.5.3) and pkg/util/singularityconf/config.go
(3.6.0, 3.7.0, 3.8.0, 3.8.4). Two things of its parser matter here: it knows `key = value` by the text before the sign
and passes over keys that it does not know, so a misspelt one is silently the default; and a value is split at each
comma. Imports nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hal_inventory.suggest import did_you_mean

Value: TypeAlias = "bool | int | str | list[str]"
VERSIONS = ("3.5", "3.6", "3.7", "3.8")
HEAD = """\
# Written by Ansible, role singularity. What each line means: the administrators' guide of Singularity, and the file
# that the package brings. Root's, and nobody else may write it: the setuid starter refuses to run otherwise.
"""


@dataclass(frozen=True)
class Directive:
    """One key. ``default`` is the program's; ``since`` and ``choices`` by release."""

    name: str
    default: Value
    choices: tuple[str, ...] = ()
    least: int = 0
    item: Callable[[str], bool] | None = None
    wanted: str = ""
    since: str = "3.5"

    def problem(self, value: Any, version: str) -> str | None:
        """Return what is wrong with a value; None when nothing is."""
        if _older(version, self.since):
            return f"Singularity {version} does not know it (it came with {self.since})"
        if isinstance(self.default, bool):
            return None if isinstance(value, bool) else "true or false"
        if isinstance(self.default, int):
            good = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
            return None if good else f"a whole number, {self.least} or more"
        if isinstance(self.default, list):
            if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
                return f"a list of {self.wanted}"
            bad = [choice for choice in value if not (self.item or _printable)(choice)]
            return f"{bad[0]!r} is none of {self.wanted}" if bad else None
        if self.choices:
            choices = [choice for choice in self.choices if choice != "driver" or not _older(version, "3.6")]
            return None if value in choices else f"one of {', '.join(choices)} (in quotes)"
        good = isinstance(value, str) and (value == "" or (self.item or _printable)(value))
        return None if good else f"{self.wanted}, or empty for the program's own"


def _older(version: str, than: str) -> bool:
    return VERSIONS.index(version) < VERSIONS.index(than)


def _printable(text: str) -> bool:
    return bool(text) and text.isprintable() and "," not in text and text == text.strip()


def _path(text: str) -> bool:
    return _printable(text) and re.fullmatch(r"/[^\s,:]*", text) is not None


def _bind(text: str) -> bool:
    """source[:destination[:ro|rw]], as the file's own comment has it."""
    source, *rest = text.split(":")
    return _printable(text) and len(rest) <= 2 and _path(source) and all(map(_path, rest[:1])) and rest[1:] in (
        [], ["ro"], ["rw"])  # fmt: skip


def _account(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}|[0-9]{1,10}", text) is not None


def _memory(text: str) -> bool:
    return re.fullmatch(r"[1-9][0-9]*[KMG]?", text) is not None


def _paths(name: str, since: str = "3.5") -> Directive:
    return Directive(name, "", item=_path, wanted="an absolute path", since=since)


_PATHS = "absolute paths without commas"
_ACCOUNTS = "names or numbers of accounts"
DIRECTIVES = {
    directive.name: directive
    for directive in (
        Directive("allow setuid", True),
        Directive("max loop devices", 256, least=1),
        Directive("allow pid ns", True),
        Directive("config passwd", True),
        Directive("config group", True),
        Directive("config resolv_conf", True),
        Directive("mount proc", True),
        Directive("mount sys", True),
        Directive("mount dev", "yes", choices=("yes", "no", "minimal")),
        Directive("mount devpts", True),
        Directive("mount home", True),
        Directive("mount tmp", True),
        Directive("mount hostfs", False),
        Directive("bind path", ["/etc/localtime", "/etc/hosts"], item=_bind, wanted="source[:destination[:ro|rw]]"),
        Directive("user bind control", True),
        Directive("enable fusemount", True),
        Directive("enable overlay", "try", choices=("yes", "no", "try", "driver")),
        Directive("enable underlay", True),
        Directive("mount slave", True),
        Directive("sessiondir max size", 16, least=1),
        Directive("limit container owners", [], item=_account, wanted=_ACCOUNTS),
        Directive("limit container groups", [], item=_account, wanted=_ACCOUNTS),
        Directive("limit container paths", [], item=_path, wanted=_PATHS),
        Directive("allow container squashfs", True),
        Directive("allow container extfs", True),
        Directive("allow container dir", True),
        Directive("allow container encrypted", True),
        Directive("allow net users", [], item=_account, wanted=_ACCOUNTS, since="3.8"),
        Directive("allow net groups", [], item=_account, wanted=_ACCOUNTS, since="3.8"),
        Directive("allow net networks", [], item=_account, wanted="names of CNI networks", since="3.8"),
        Directive("always use nv", False),
        Directive("always use rocm", False),
        Directive("root default capabilities", "full", choices=("full", "file", "no")),
        Directive("memory fs type", "tmpfs", choices=("tmpfs", "ramfs")),
        _paths("cni configuration path"),
        _paths("cni plugin path"),
        _paths("mksquashfs path"),
        Directive("mksquashfs procs", 0, since="3.6"),
        Directive("mksquashfs mem", "", item=_memory, wanted="a size such as 1G", since="3.6"),
        _paths("cryptsetup path"),
        Directive("shared loop devices", False),
        Directive("image driver", "", wanted="the name of a plugin", since="3.6"),
    )
}


def problems(settings: Mapping[str, Any], version: str) -> list[str]:
    """Return a sentence for each setting that the file of this release cannot have."""
    if version not in VERSIONS:
        return [f"singularity_version is {version!r}: one of {', '.join(VERSIONS)} (in quotes)"]
    faults = []
    for name, value in settings.items():
        directive = DIRECTIVES.get(name)
        if directive is None:
            faults.append(
                f"singularity_conf: {name}: no such directive{did_you_mean(name, DIRECTIVES, kind='directives')}"
            )
            continue
        if value is None:
            continue
        problem = directive.problem(value, version)
        if problem is not None:
            known = problem.startswith("Singularity ")
            faults.append(f"singularity_conf: {name}: {problem if known else f'must be {problem}, not {value!r}'}")
        elif name == "bind path" and not value:
            faults.append(
                "singularity_conf: bind path: an empty list means the program's own (/etc/localtime, /etc/hosts);"
                " name at least one, or leave it out"
            )
    return faults


def settings(declared: Mapping[str, Any], version: str) -> dict[str, Value]:
    """Return every directive of a release with its value: as declared, else the program's default (null: that too)."""
    return {
        name: value if (value := declared.get(name)) is not None else directive.default
        for name, directive in DIRECTIVES.items()
        if not _older(version, directive.since)
    }


def lines(name: str, value: Value) -> list[str]:
    """Return the lines of a directive; none for an empty value, which the program reads as its default."""
    if isinstance(value, bool):
        return [f"{name} = {'yes' if value else 'no'}"]
    if name == "bind path" and isinstance(value, list):
        return [f"{name} = {line}" for line in value]
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return [f"{name} = {text}"] if text else []


def text(declared: Mapping[str, Any], version: str) -> str:
    """Return the whole file."""
    return HEAD + "".join(
        f"{line}\n" for name, value in settings(declared, version).items() for line in lines(name, value)
    )
