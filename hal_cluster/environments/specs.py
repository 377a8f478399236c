"""What an environment is solved from: NAME.yml beside its lock file. An administrator writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.environments.document import Document

FORMAT = 1
# conda's name of a machine: conda's documentation, "Channels", subdirectories.
PLATFORMS = {"ppc64le": "linux-ppc64le", "x86_64": "linux-64"}
FIELDS = ("format", "platform", "virtual", "channels", "specs")
ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
VIRTUAL = re.compile(r"__[a-z0-9_]+")


@dataclass(frozen=True)
class Specs:
    """What is asked for, and what it is solved against."""

    platform: str
    virtual: Mapping[str, str]
    """Virtual packages that the nodes have, such as {"__glibc": "2.17"}, with their versions."""
    channels: Mapping[str, str]
    """Addresses by alias. Of a package, only the first channel that has it is looked at."""
    specs: tuple[str, ...]


def load(path: Path) -> Specs:
    """Read a file of specs; raise FileError with every finding."""
    document = Document(path)
    for field in document.content:
        if field not in FIELDS:
            document.finding(f"{field}: unknown field; there are {', '.join(FIELDS)}", field)
    specs = head(document)
    document.refuse()
    return specs


def head(document: Document) -> Specs:
    """Read what specs and lock files have in common; findings go to the document."""
    content = document.content
    if content.get("format") != FORMAT:
        document.finding(f"format is {content.get('format')!r}, this version reads {FORMAT}", "format")
    platform = content.get("platform")
    if platform not in PLATFORMS.values():
        document.finding(f"platform is {platform!r}; write one of {', '.join(PLATFORMS.values())}", "platform")
    virtual = _texts(document, "virtual", required=False)
    for name in virtual:
        if not VIRTUAL.fullmatch(name):
            document.finding(
                f"virtual: {name} is not a virtual package; they begin with two underscores", "virtual", name
            )
    channels = _texts(document, "channels")
    for name, url in channels.items():
        if not ALIAS.fullmatch(name):
            document.finding(
                f"channels: {name} is not an alias; write small letters, digits, - and _", "channels", name
            )
        elif not url.startswith(("http://", "https://", "file:///")):
            document.finding(
                f"channels: {name} is {url}; write https://..., http://... or file:///...", "channels", name
            )
        elif "@" in url.split("/")[2]:
            document.finding(f"channels: {name} has a name or password in it, which is for no file", "channels", name)
    specs = content.get("specs")
    if not isinstance(specs, list) or not specs or not all(isinstance(spec, str) and spec.strip() for spec in specs):
        document.finding("specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]", "specs")
        specs = []
    return Specs(str(platform), virtual, channels, tuple(specs))


def _texts(document: Document, field: str, *, required: bool = True) -> dict[str, str]:
    """Return a mapping of texts; a number among them is a finding, because YAML reads 1.10 as 1.1."""
    mapping: Any = document.content.get(field)
    if not mapping and not required:
        return {}
    if not isinstance(mapping, dict) or not mapping:
        document.finding(f"{field}: write a mapping", field)
        return {}
    for name, value in mapping.items():
        if not isinstance(value, str):
            document.finding(f"{field}: {name} is {value!r}; write a text, a number in quotes", field, name)
    return {str(name): str(value) for name, value in mapping.items() if isinstance(value, str)}
