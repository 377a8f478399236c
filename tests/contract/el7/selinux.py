"""The targeted policy of CentOS 7.7: the type of a path or a port, and what a domain may do with it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
META = frozenset(".^$?*+|[({")
# What a path has that no rule names: no confined daemon reads it.
DEFAULT = "default_t"


class NotCoveredError(Exception):
    """The rules of this path were not copied, so nothing can be said of it."""


@dataclass(frozen=True)
class Rule:
    """One line of file_contexts."""

    pattern: str
    kind: str
    type: str

    @property
    def exact(self) -> bool:
        """True for the path of one file."""
        return not META.intersection(re.sub(r"\\.", "", self.pattern))

    def matches(self, path: str, kind: str) -> bool:
        """As libselinux: the whole path, and the kind of file where the rule says one."""
        return self.kind in ("any", kind) and _compiled(self.pattern).fullmatch(path) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


@dataclass(frozen=True)
class Contexts:
    """The file contexts of a node: those of the policy, and after them those that roles add (semanage fcontext)."""

    rules: Sequence[Rule]
    aliases: Sequence[tuple[str, str]] = ()
    covered: Sequence[str] = ("/",)
    local: Sequence[Rule] = ()

    def type_of(self, path: str, kind: str) -> str:
        """The type that matchpathcon would print; "none" for <<none>>, default_t where nothing matches."""
        for rule in reversed(self.local):
            if rule.matches(path, kind):
                return rule.type
        if not any(path == one.rstrip("/") or path.startswith(one) for one in self.covered):
            raise NotCoveredError(path)
        looked_up = self.resolved(path)
        return next((rule.type for rule in self._in_order if rule.matches(looked_up, kind)), DEFAULT)

    def resolved(self, path: str) -> str:
        """The path after the first alias that fits (file_contexts.subs_dist)."""
        for alias, target in self.aliases:
            if path == alias or path.startswith(f"{alias}/"):
                return target + path[len(alias) :]
        return path

    @functools.cached_property
    def _in_order(self) -> list[Rule]:
        """Paths of one file first, then the last rule first: libselinux sorts these to the end and begins there."""
        return [rule for rule in reversed(self.rules) if rule.exact] + [
            rule for rule in reversed(self.rules) if not rule.exact
        ]


@dataclass(frozen=True)
class Policy:
    """What confined domains may do, and the types of ports."""

    started: dict[str, str]
    unconfined: frozenset[str]
    domains: dict[str, dict[str, Any]]
    ports: Sequence[tuple[str, int, int, str]] = field(default=())

    def knows(self, domain: str) -> bool:
        """False for a domain whose rules were not copied."""
        return domain in self.unconfined or domain in self.domains

    def may(self, domain: str, what: str, type_: str) -> bool:
        """Whether a domain `reads` files of a type, or `makes` files there."""
        return domain in self.unconfined or type_ in self.domains[domain][what]

    def port_type(self, protocol: str, port: int) -> str:
        """The label of a port: that of the narrowest range it is in."""
        ranges = [
            (last - first, type_)
            for proto, first, last, type_ in self.ports
            if (proto, first <= port <= last) == (protocol, True)
        ]
        return min(ranges)[1]

    def may_bind(self, domain: str, protocol: str, port: int) -> bool:
        """Whether a domain may listen on a port."""
        if domain in self.unconfined:
            return True
        bound = self.domains[domain]["binds"].get(protocol, [])
        return bound == ["any"] or self.port_type(protocol, port) in bound


@functools.cache
def contexts() -> Contexts:
    """The file contexts of file_contexts.yml."""
    data = _read("file_contexts.yml")
    return Contexts([Rule(*one) for one in data["rules"]], tuple(data["aliases"].items()), tuple(data["covered"]))


@functools.cache
def policy() -> Policy:
    """The rules of domains.yml."""
    data = _read("domains.yml")
    return Policy(
        data["started"], frozenset(data["unconfined"]), data["domains"], [tuple(one) for one in data["ports"]]
    )


def local_rules(tasks: Iterable[dict[str, Any]]) -> list[Rule]:
    """The rules that calls of community.general.sefcontext add."""
    kinds = {"a": "any", "f": "file", "d": "directory", "l": "link", "s": "socket", "p": "fifo"}
    return [
        Rule(str(one["target"]), kinds.get(str(one.get("ftype", "a")), "any"), str(one["setype"]))
        for one in tasks
        if one.get("setype") and one.get("state", "present") == "present"
    ]


def _read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((HERE / name).read_text())
    return data
