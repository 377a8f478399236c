"""What roles do otherwise with values that HAL does not have, as lines of tests/contract/written: + with, - without.

A long text that a promise asks for has its lines below it, so that those that differ are seen; of a program that a node
is to run for an answer there is a sum.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hal_cluster.expect.prepare import Prepared
from tests.contract.project import PROJECT, otherwise, roles
from tests.contract.refusing import Site
from tests.contract.rendering import OTHERWISE, REAL, Rendered, rendered

# Not worked out here, or the same of nearly all.
LEFT_OUT = {"sha1": None, "state": "present"}
LONG = 120
Where = tuple[str, str, str]
"""Of a text: its template, the host and where it goes. Of values: the role, the host and the values as JSON."""


def told(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is declared that which says something."""
    return {name: value for name, value in told.items() if name not in LEFT_OUT or value != (LEFT_OUT[name] or value)}


def kind(severity: str) -> str:
    """The word for an entry of expect.yml."""
    return "promise" if severity == "error" else severity


def place(one: Rendered) -> str:
    """Where a text goes, and its template."""
    return f"{one.destination}  ({one.path})" if one.destination else one.path


def of_project() -> Iterator[tuple[str, list[str]]]:
    """The role and a block of lines for each entry of tests/contract/otherwise."""
    site, texts = Site(PROJECT), _texts()
    for role in (path.name for path in roles(PROJECT)):
        for one in otherwise(role):
            host, given = one.get("host") or site.hosts(role)[0], one["given"]
            differing = _differing(_on_host(site, role, host, {}), _on_host(site, role, host, given))
            title = f"with {json.dumps(given)} on {host}:"
            yield role, ["", title, *differing, *texts.get((role, host, json.dumps(given)), [])]


def _differing(before: list[str], now: list[str]) -> list[str]:
    return [line.rstrip() for line in difflib.ndiff(before, now) if line[0] in "+-"]


def _on_host(site: Site, role: str, host: str, given: Mapping[str, Any]) -> list[str]:
    managed = site.managed(role, host, given)
    lines = [f"{name}  {json.dumps(told(one), sort_keys=True, default=str)}" for name, one in sorted(managed.items())]
    asked = sorted(_asked(one) for one in site.promises(role, host, given) if one.status != "skipped")
    return [*lines, *(line for promise in asked for line in promise)]


def _asked(one: Prepared) -> list[str]:
    asked, *below = asks(one.question)
    return [f"{kind(one.severity)}:{one.id}  {asked}", *below]


def asks(question: Mapping[str, Any] | None) -> list[str]:
    """What a promise asks for and what has to be the answer: a line, and long texts of it below."""
    below: list[str] = []
    said = {name: value for name, value in (question or {}).items() if name not in ("id", "secret")}
    return [json.dumps(_short(said, below), sort_keys=True) if said else "known in a run only", *below]


def _short(value: Any, below: list[str], program: bool = False) -> Any:
    """A value without long texts, and with alternatives of a pattern in one order: some are of a set."""
    if isinstance(value, str):
        value = re.sub(r"\(\?:([^()]+)\)", lambda found: f"(?:{'|'.join(sorted(found[1].split('|')))})", value)
        if len(value) <= LONG:
            return value
        if program:
            return f"{value[:LONG]}... {hashlib.sha256(value.encode()).hexdigest()[:12]}"
        below += [f"    {line}" for line in value.splitlines()]
        return "..."
    if isinstance(value, Mapping):
        return {str(name): _short(one, below, name == "argv") for name, one in value.items()}
    return [_short(one, below, program) for one in value] if isinstance(value, (list, tuple)) else value


def _texts() -> dict[Where, list[str]]:
    """By role, host and values: how the texts differ from those without the values."""
    usual, with_values = _by_place(REAL), _by_place(OTHERWISE)
    found: dict[Where, list[str]] = {}
    for (role, host, given), texts in with_values.items():
        before = {
            where: ones
            for (of, on, _), all_ in usual.items()
            if (of, on) == (role, host)
            for where, ones in all_.items()
        }
        lines = found.setdefault((role, host, given), [])
        for where, ones in texts.items():
            old = [each.text for each in before.get(where, []) if not each.fault]
            for one in ones:
                if one.fault and old:
                    lines += [f"==> {place(one)}", "known in a run only"]
                elif not one.fault and one.text not in old:
                    lines += [f"==> {place(one)}", *_differing((old or [""])[0].splitlines(), one.text.splitlines())]
        lines += [f"==> {place(ones[0])}  is not written" for where, ones in before.items() if where not in texts]
    return found


def _by_place(site: str) -> dict[Where, dict[Where, list[Rendered]]]:
    found: dict[Where, dict[Where, list[Rendered]]] = {}
    for one in rendered(PROJECT, sites=(site,)) if site == OTHERWISE else rendered(PROJECT):
        if one.site == site:
            texts = found.setdefault((one.path.split("/")[1], one.host, one.given), {})
            texts.setdefault((one.path, one.host, one.destination), []).append(one)
    return found
