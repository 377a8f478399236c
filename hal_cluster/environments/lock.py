"""The lock file of an environment: every package with its checksum. `hal-environments lock` writes it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.environments import specs as heads
from hal_cluster.environments.document import Document
from hal_cluster.environments.specs import FORMAT, Specs

FIELDS = (*heads.FIELDS, "packages")
HEX = re.compile(r"[0-9a-f]{64}")
ENDINGS = (".tar.bz2", ".conda")
HEADER = "# Written by `hal-environments lock {name}` from {name}.yml. Read the difference before you commit it.\n"


@dataclass(frozen=True)
class Package:
    """One locked package; all of it is text but the numbers."""

    name: str
    version: str
    build: str
    number: int
    channel: str
    """Alias of the channel that it comes from."""
    subdir: str
    file: str
    size: int
    """Bytes of the archive."""
    sha256: str
    license: str
    depends: tuple[str, ...]
    noarch: str
    """python, generic, or nothing."""

    @property
    def label(self) -> str:
        """The package as conda writes it."""
        return f"{self.name} {self.version} {self.build}"


@dataclass(frozen=True)
class Lock:
    """A lock file: what was asked for, and the answer, by name."""

    asked: Specs
    packages: Mapping[str, Package]


TEXTS = ("version", "build", "channel", "subdir", "file", "sha256")
OPTIONAL: dict[str, Any] = {"number": 0, "license": "", "depends": [], "noarch": ""}


def load(path: Path) -> Lock:
    """Read a lock file; raise FileError with every finding: file, line, package, what would be right."""
    document = Document(path)
    for field in document.content:
        if field not in FIELDS:
            document.finding(f"{field}: unknown field; there are {', '.join(FIELDS)}", field)
    asked = heads.head(document)
    listed = document.content.get("packages")
    if not isinstance(listed, dict) or not listed:
        document.finding(f"packages: none; run hal-environments lock {name_of(path)}", "packages")
        listed = {}
    packages = {}
    for name, body in listed.items():
        package = _package(document, asked, str(name), body)
        if package is not None:
            packages[package.name] = package
    document.refuse()
    return Lock(asked, packages)


def load_once(path: Path) -> Lock:
    """`load`, and not again while the file is the same."""
    stat = path.stat() if path.exists() else None
    return _load_once(path, stat.st_mtime_ns if stat else 0, stat.st_size if stat else 0)


@lru_cache(maxsize=64)
def _load_once(path: Path, _time: int, _size: int) -> Lock:
    return load(path)


def name_of(path: Path) -> str:
    """Return the name of an environment: its lock file's without the ending."""
    return path.name.removesuffix(".lock.yml")


def _package(document: Document, asked: Specs, name: str, body: Any) -> Package | None:
    before = len(document.findings)

    def add(text: str, field: str) -> None:
        document.finding(f"{name}: {text}", "packages", name, field)

    if not isinstance(body, dict):
        add("not a mapping of version, build, ...", "")
        return None
    again = f"hal-environments lock {name_of(document.path)} writes it"
    for field in body:
        if field not in (*TEXTS, *OPTIONAL, "size"):
            add(f"{field}: unknown field", field)
    for field in TEXTS:
        value = body.get(field)
        if value is None or value == "":
            what = "64 hex digits, as the channel has them; " if field == "sha256" else ""
            add(f"no {field}: {what}{again}", field)
        elif not isinstance(value, str):
            add(f"{field} is the number {value}; put it in quotes", field)
    sha256, size = body.get("sha256"), body.get("size")
    if isinstance(sha256, str) and sha256 and not HEX.fullmatch(sha256):
        add(f"sha256 is {sha256}; write 64 hex digits in small letters; {again}", "sha256")
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        add(f"size is {size}; write the archive's bytes; {again}", "size")
    depends = body.get("depends", [])
    if not isinstance(depends, list) or not all(isinstance(words, str) for words in depends):
        add("depends: write a list of texts", "depends")
    if body.get("noarch", "") not in ("", "python", "generic"):
        add(f"noarch is {body['noarch']}; write python or generic, or leave it out", "noarch")
    if len(document.findings) > before:
        return None
    fields = {**OPTIONAL, **body}
    if fields["channel"] not in asked.channels:
        add(f"channel {fields['channel']} is none of {', '.join(asked.channels)}", "channel")
    if fields["subdir"] not in (asked.platform, "noarch"):
        add(f"subdir {fields['subdir']} is neither {asked.platform} nor noarch", "subdir")
    wanted = [f"{name}-{fields['version']}-{fields['build']}{ending}" for ending in ENDINGS]
    if fields["file"] not in wanted:
        add(f"file is {fields['file']}; version and build make it {wanted[0]}", "file")
    if len(document.findings) > before:
        return None
    return Package(name, **{**fields, "depends": tuple(fields["depends"])})


def dump(lock: Lock, name: str) -> str:
    """Return the file's text: sorted, one field a line, so that a difference can be read."""
    head = {
        "format": FORMAT,
        "platform": lock.asked.platform,
        "virtual": dict(sorted(lock.asked.virtual.items())),
        "channels": dict(lock.asked.channels),
        "specs": list(lock.asked.specs),
    }
    packages = {}
    for package in sorted(lock.packages.values(), key=lambda package: package.name):
        fields: dict[str, Any] = {
            "version": package.version, "build": package.build, "number": package.number, "channel": package.channel,
            "subdir": package.subdir, "file": package.file, "size": package.size, "sha256": package.sha256,
            "license": package.license, "depends": sorted(package.depends), "noarch": package.noarch,
        }  # fmt: skip
        packages[package.name] = {key: value for key, value in fields.items() if OPTIONAL.get(key) != value}
    text = yaml.safe_dump({**head, "packages": packages}, sort_keys=False, allow_unicode=True, width=120)
    return HEADER.format(name=name) + text


def digest(lock: Lock, *more: Any) -> str:
    """Return 12 hex digits that change when what is installed does: platform, packages, and what else shapes it."""
    packages = sorted(
        (package.name, package.version, package.build, package.subdir, package.sha256)
        for package in lock.packages.values()
    )
    return hashlib.sha256(json.dumps([lock.asked.platform, packages, *more], sort_keys=True).encode()).hexdigest()[:12]


def difference(old: Lock, new: Lock) -> Iterable[str]:
    """Yield what changes from one lock file to another, a line a package."""
    for name in sorted({*old.packages, *new.packages}):
        before, after = old.packages.get(name), new.packages.get(name)
        if before is None and after is not None:
            yield f"+ {after.label} ({after.channel})"
        elif after is None and before is not None:
            yield f"- {before.label} ({before.channel})"
        elif before is not None and after is not None and before != after:
            if before.label != after.label:
                channel = f" ({after.channel}, was {before.channel})" if before.channel != after.channel else ""
                yield f"~ {name} {before.version} {before.build} -> {after.version} {after.build}{channel}"
            elif before.sha256 != after.sha256:
                yield f"! {after.label}: same version and build, another archive: sha256 {after.sha256}"
            else:
                yield f"~ {after.label}: channel, size or dependencies are written otherwise"
