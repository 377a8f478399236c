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
        {**OPTIONAL, **dataset, "id": f"{dataset['name']}/{dataset['version']}", "at": number}
        for number, dataset in enumerate(declared)
    ]


def problems(declared: Sequence[Any]) -> list[str]:
    """Return a line for each fault; none for a declaration that can be carried out.

    `declared`: datasets_standard as it is written. A line has the place in the list and what would be right.
    """
    faults: list[str] = []
    for number, dataset in enumerate(declared):
        where = f"datasets_standard[{number}]"
        if not isinstance(dataset, Mapping):
            faults.append(f"{where}: not a mapping; write name, version, ...")
            continue
        faults += [f"{where}{_label(dataset)}: {words}" for words in _faults(dataset)]
    return faults or list(_together(declared))


def _label(dataset: Set) -> str:
    return f" ({dataset['name']}/{dataset.get('version', '')})" if dataset.get("name") else ""


def _faults(dataset: Set) -> Iterator[str]:
    missing = [field for field in REQUIRED if dataset.get(field) in (None, "")]
    if missing:
        yield f"no {', '.join(missing)}"
    for field in dataset:
        if field not in (*REQUIRED, *OPTIONAL):
            yield f"{field} is not a field; there are {', '.join((*REQUIRED, *OPTIONAL))}"
    if missing:
        return
    yield from _names(dataset)
    yield from _checksums(dataset)
    source = str(dataset["source"])
    if not SOURCE.fullmatch(source):
        yield f"source is {source}; write https://..., http://..., rsync://... or an absolute path"
    elif "://" in source and "@" in source.split("/")[2]:
        yield "source has a name or password in it, which users would read; use a source that needs none"
    if (
        isinstance(dataset["size_gb"], bool)
        or not isinstance(dataset["size_gb"], (int, float))
        or dataset["size_gb"] <= 0
    ):
        yield f"size_gb is {dataset['size_gb']}; write a number above 0, in units of 10^9 bytes"
    if dataset.get("access", "all") not in ("all", "group"):
        yield f"access is {dataset['access']}; write all or group"
    elif dataset.get("access") == "group" and not GROUP.fullmatch(str(dataset["owner"])):
        yield f"access is group, so owner has to be the name of one, and {dataset['owner']} is none"
    if not isinstance(dataset.get("default", False), bool):
        yield f"default is {dataset['default']}; write true or false"
    if not isinstance(dataset.get("retired", ""), str):
        yield "retired is not text; write what users should use instead"
    elif dataset.get("retired") and dataset.get("default"):
        yield "is retired and the default; make another version the default"


def _names(dataset: Set) -> Iterator[str]:
    for field, form, words in (
        ("name", NAME, "small letters, digits, . _ -"),
        ("version", VERSION, "letters, digits, . _ -"),
    ):
        value = dataset[field]
        if not isinstance(value, str):
            yield f"{field} is the number {value}; put it in quotes, or 1.10 is 1.1"
        elif not form.fullmatch(value) or value in TAKEN or value.endswith(".retired.txt"):
            yield f'{field} is "{value}"; write {words}, a letter or digit first, and not {", ".join(TAKEN)}'


def _checksums(dataset: Set) -> Iterator[str]:
    digest, listed = dataset.get("manifest_sha256", ""), dataset.get("checksums", "")
    if bool(digest) == bool(listed):
        which = "both" if digest else "neither"
        yield f"{which} of manifest_sha256 and checksums; write one: the sha256 of the manifest, or the manifest itself"
    if digest and not (isinstance(digest, str) and HEX.fullmatch(digest)):
        yield f"manifest_sha256 is {digest}; write 64 digits 0-9a-f, in quotes"
    wrong = [line for line in str(listed).splitlines() if line.strip() and not LINE.fullmatch(line)]
    if wrong:
        yield f'checksums has the line "{wrong[0][:60]}"; write lines as sha256sum prints them'
    name = str(dataset.get("manifest", OPTIONAL["manifest"]))
    if name.startswith("/") or "://" in name or ".." in name.split("/") or not name.strip():
        yield f"manifest is {name}; write its name below the source"


def _together(declared: Sequence[Set]) -> Iterator[str]:
    for label, times in Counter((dataset["name"], dataset["version"]) for dataset in declared).items():
        if times > 1:
            yield f"{label[0]}/{label[1]} is declared {times} times"
    for name in dict.fromkeys(dataset["name"] for dataset in declared):
        current = [dataset for dataset in declared if dataset["name"] == name and not dataset.get("retired")]
        defaults = [dataset["version"] for dataset in current if dataset.get("default")]
        if len(defaults) > 1:
            yield f"{name} has the defaults {', '.join(defaults)}; one is right"
        elif current and not defaults:
            versions = ", ".join(dataset["version"] for dataset in current)
            yield f"{name} has no default; write `default: true` for one of {versions}"
