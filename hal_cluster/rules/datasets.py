"""Datasets: what is declared, in full; and what is wrong with it, before any node is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REQUIRED = ("name", "version", "title", "owner", "licence", "source", "size_gb")
OPTIONAL: dict[str, Any] = {
    "manifest": "SHA256SUMS", "manifest_sha256": "", "checksums": "", "note": "", "default": False, "retired": "",
    "access": "all",
}  # fmt: skip
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
GROUP = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
SOURCE = re.compile(r"(?:(?:https?|rsync)://[^/\s]+(?:/\S*)?|/.*)")
HEX = re.compile(r"[0-9a-f]{64}")
LINE = re.compile(r"\\?[0-9a-fA-F]{64} [ *]\S.*")
TAKEN = ("default", "index.html", "README.txt")  # what else lies beside them

Set = Mapping[str, Any]


def table(declared: Sequence[Set]) -> list[dict[str, Any]]:
    """Return each version with all its fields, its label `id`, and its place `at` in the list.

    `declared`: entries of datasets_standard, without faults. A field that is left out has its value of OPTIONAL. `id`
    is NAME/VERSION.
    """
    return [
        {**OPTIONAL, **one, "id": f"{one['name']}/{one['version']}", "at": number}
        for number, one in enumerate(declared)
    ]


def problems(declared: Sequence[Any]) -> list[str]:
    """Return a line for each fault; none for a declaration that can be carried out.

    `declared`: datasets_standard as it is written. A line has the place in the list and what would be right.
    """
    found: list[str] = []
    for number, one in enumerate(declared):
        where = f"datasets_standard[{number}]"
        if not isinstance(one, Mapping):
            found.append(f"{where}: not a mapping; write name, version, ...")
            continue
        found += [f"{where}{_label(one)}: {words}" for words in _faults(one)]
    return found or list(_together(declared))


def _label(one: Set) -> str:
    return f" ({one['name']}/{one.get('version', '')})" if one.get("name") else ""


def _faults(one: Set) -> Iterator[str]:
    missing = [field for field in REQUIRED if one.get(field) in (None, "")]
    if missing:
        yield f"no {', '.join(missing)}"
    for field in one:
        if field not in (*REQUIRED, *OPTIONAL):
            yield f"{field} is no field; there are {', '.join((*REQUIRED, *OPTIONAL))}"
    if missing:
        return
    yield from _names(one)
    yield from _checksums(one)
    source = str(one["source"])
    if not SOURCE.fullmatch(source):
        yield f"source is {source}; write https://..., http://..., rsync://... or an absolute path"
    elif "://" in source and "@" in source.split("/")[2]:
        yield "source has a name or password in it, which users would read; use a source that needs none"
    if isinstance(one["size_gb"], bool) or not isinstance(one["size_gb"], (int, float)) or one["size_gb"] <= 0:
        yield f"size_gb is {one['size_gb']}; write a number above 0, in units of 10^9 bytes"
    if one.get("access", "all") not in ("all", "group"):
        yield f"access is {one['access']}; write all or group"
    elif one.get("access") == "group" and not GROUP.fullmatch(str(one["owner"])):
        yield f"access is group, so owner has to be the name of one, and {one['owner']} is none"
    if not isinstance(one.get("default", False), bool):
        yield f"default is {one['default']}; write true or false"
    if not isinstance(one.get("retired", ""), str):
        yield "retired is no text; write what users should use instead"
    elif one.get("retired") and one.get("default"):
        yield "is retired and the default; make another version the default"


def _names(one: Set) -> Iterator[str]:
    for field, form, words in (
        ("name", NAME, "small letters, digits, . _ -"),
        ("version", VERSION, "letters, digits, . _ -"),
    ):
        value = one[field]
        if not isinstance(value, str):
            yield f"{field} is the number {value}; put it in quotes, or 1.10 is 1.1"
        elif not form.fullmatch(value) or value in TAKEN or value.endswith(".retired.txt"):
            yield f'{field} is "{value}"; write {words}, a letter or digit first, and not {", ".join(TAKEN)}'


def _checksums(one: Set) -> Iterator[str]:
    digest, listed = one.get("manifest_sha256", ""), one.get("checksums", "")
    if bool(digest) == bool(listed):
        which = "both" if digest else "neither"
        yield f"{which} of manifest_sha256 and checksums; write one: the sha256 of the manifest, or the manifest itself"
    if digest and not (isinstance(digest, str) and HEX.fullmatch(digest)):
        yield f"manifest_sha256 is {digest}; write 64 digits 0-9a-f, in quotes"
    wrong = [line for line in str(listed).splitlines() if line.strip() and not LINE.fullmatch(line)]
    if wrong:
        yield f'checksums has the line "{wrong[0][:60]}"; write lines as sha256sum prints them'
    name = str(one.get("manifest", OPTIONAL["manifest"]))
    if name.startswith("/") or "://" in name or ".." in name.split("/") or not name.strip():
        yield f"manifest is {name}; write its name below the source"


def _together(declared: Sequence[Set]) -> Iterator[str]:
    for label, times in Counter((one["name"], one["version"]) for one in declared).items():
        if times > 1:
            yield f"{label[0]}/{label[1]} is declared {times} times"
    for name in dict.fromkeys(one["name"] for one in declared):
        current = [one for one in declared if one["name"] == name and not one.get("retired")]
        defaults = [one["version"] for one in current if one.get("default")]
        if len(defaults) > 1:
            yield f"{name} has the defaults {', '.join(defaults)}; one is right"
        elif current and not defaults:
            versions = ", ".join(one["version"] for one in current)
            yield f"{name} has no default; write `default: true` for one of {versions}"
