"""What is committed holds on every machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, files, rule, text_lines

REGISTRY = re.compile(
    r"(?<![\w@-])(?:[\w-]+\.)*(?:docker\.io|quay\.io|ghcr\.io|gcr\.io|pypi\.org|pythonhosted\.org|registry\.[\w-]+\.(?:com|org|io|net)"
    r"|(?:artifactory|nexus|pypi|mirror|proxy)[\w-]*\.(?:internal|local|corp|lan))\b"
)
DEVELOPER = re.compile(
    # /home/apps is the reference site's folder of software.
    r"/Users/\w+|[A-Z]:\\\\?Users\\|/\.pyenv/|/(?:home(?!/apps/)|root)/[\w./-]*(?:site-packages|\.venv|venv|worktrees?)\b"
)
MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: |$)")


@rule
def names_no_registry(root: Path) -> Iterator[Finding]:
    """Where packages and images come from is the machine's own configuration."""
    for path in files(root):
        for number, line in text_lines(path):
            if hit := REGISTRY.search(line):
                yield Finding(path, number, f"{hit.group()} is a registry; leave it to the machine or a variable")


@rule
def names_no_developer_machine(root: Path) -> Iterator[Finding]:
    """No path of the machine it was written on."""
    here = [str(root), sys.prefix] if not sys.prefix.startswith("/usr") else [str(root)]
    for path in files(root):
        for number, line in text_lines(path):
            hit = DEVELOPER.search(line)
            found = next((place for place in here if place in line), hit.group() if hit else "")
            if found:
                yield Finding(path, number, f"{found} is a path of one machine; write it relative to the project")


@rule
def holds_no_merge_marker(root: Path) -> Iterator[Finding]:
    """Both sides of a merge have been read."""
    for path in files(root):
        for number, line in text_lines(path):
            if MARKER.match(line):
                yield Finding(path, number, "a merge marker; resolve the conflict")
