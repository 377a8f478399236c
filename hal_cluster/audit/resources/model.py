"""A resource as a task declares it, and how values of arguments are read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# What may be kept of a secret resource: nothing that comes from its content.
OPEN_ATTRIBUTES = frozenset({"state", "type", "mode", "owner", "group", "target", "enabled", "masked", "content"})
TRUE = frozenset({"y", "yes", "on", "1", "true", "t"})
FALSE = frozenset({"n", "no", "off", "0", "false", "f"})
OCTAL = re.compile(r"^0?[0-7]{3,4}$")


@dataclass(frozen=True)
class Resource:
    """What one task says about one thing on a node."""

    resource: str
    declared: Mapping[str, Any] = field(default_factory=dict)
    secret: bool = False

    def without_content(self) -> Resource:
        """The same thing, marked as secret, without what could reveal its content."""
        kept = {name: value for name, value in self.declared.items() if name in OPEN_ATTRIBUTES}
        return replace(self, declared=kept, secret=True)


@dataclass(frozen=True)
class Units:
    """What a call says about units: those that now run with their files, and which files (by resource) a unit reads."""

    effective: tuple[str, ...] = ()
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One call of a module. Arguments come in every form that YAML and templates give them: 420, "0644", "yes"."""

    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    secret: bool = False
    task: str = ""

    def get(self, *names: str) -> Any:
        """The first argument of these names that is given; None when none is."""
        return next((self.arguments[name] for name in names if self.arguments.get(name) is not None), None)

    def text(self, *names: str, default: str = "") -> str:
        """An argument as text."""
        value = self.get(*names)
        return default if value is None else text(value)

    def flag(self, name: str) -> bool | None:
        """An argument as a truth value; None when it is not given or not one."""
        return truth(self.get(name))

    def items(self, *names: str) -> list[str]:
        """An argument as a list of texts; a text is split at commas, as Ansible does."""
        value = self.get(*names)
        if value is None:
            return []
        if isinstance(value, (list, tuple)):
            return [text(part) for part in value]
        return [part.strip() for part in text(value).split(",") if part.strip()]

    def absent(self, *words: str) -> bool:
        """True when the task says that it must not be there."""
        return self.text("state") in {"absent", *words}

    def given(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Pairs of those arguments that are given."""
        return ((name, self.arguments[name]) for name in names if self.arguments.get(name) is not None)


def text(value: Any) -> str:
    """A value as the text that a module would make of it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def truth(value: Any) -> bool | None:
    """A value as a truth value, None when it is not one."""
    if value is None or isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in TRUE else False if word in FALSE else None


def number(value: Any) -> int | None:
    """A value as a number, None when it is not one."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def file_mode(value: Any) -> str:
    """A file mode as four octal digits; "" for a symbolic one, which says nothing exact."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:04o}"
    word = str(value if value is not None else "").strip()
    return word.zfill(4) if OCTAL.match(word) else ""


def content_id(*parts: str) -> str:
    """16 hex digits that name what has only its content for a name."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


ABSENT: Mapping[str, Any] = {"state": "absent"}
PRESENT: Mapping[str, Any] = {"state": "present"}
