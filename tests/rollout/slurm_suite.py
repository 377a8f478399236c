"""Slurm's own test suite, of Debian's source package, and the Expect that it is written in; its verdicts."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from testbed.cache import cache_dir, content_hash, made_once
from testbed.debian import Apt
from testbed.errors import VirtualNodesError
from testbed.run import logged

LIST = Path(__file__).with_name("slurm_suite.yml")
PACKAGE = "slurm-wlm"
SOURCE = "slurm-wlm_22.05.8.orig.tar.gz"
SHA256 = "8c8f6a26a5d51e6c63773f2e02653eb724540ee8b360125c8d7732314ce737d6"
EXPECT = ("expect", "tcl-expect", "libtcl8.6")
PART = "testsuite/"  # of the source
VERDICT = re.compile(r"^(SUCCESS|FAILURE|SKIPPED) +: (test\S+)$", re.MULTILINE)
IDLE = """\
until found=$(sinfo --noheader --partition=gpu --format=%t) && test -n "$found" && ! echo "$found" | grep -qvx idle
do sleep 1; done"""
"""Most tests begin by asking for idle nodes, and skip; what the one before has left may still be ending."""
SETTINGS = """\
set slurm_dir "/usr"
set testsuite_colorize false
# A job begins at once, on nodes that may be slow.
set max_job_delay 300
"""


@dataclass(frozen=True)
class Listed:
    """A test of the suite that is run here."""

    name: str
    about: str
    fails: Sequence[str] = ()  # what it says when it fails as expected
    root: bool = False

    @property
    def verdict(self) -> str:
        """What it has to come to."""
        return "FAILURE" if self.fails else "SUCCESS"


def listed() -> list[Listed]:
    """The tests that are run, in order."""
    declared: Mapping[str, Mapping[str, Any]] = yaml.safe_load(LIST.read_text())
    return [Listed(name, **entry) for name, entry in declared.items()]


def verdict(output: str, name: str) -> str:
    """What a test says that it came to; empty when it says nothing: it may end with status 0 all the same."""
    said = VERDICT.findall(output)
    return said[0][0] if [one[1] for one in said] == [f"test{name}"] else ""


def fetch() -> Path:
    """The folder with `suite`, to be run, and `root`, what Expect installs; made once. VirtualNodesError."""
    return made_once(cache_dir() / "clients" / f"slurm-{content_hash([Path(__file__)])}", "clients-slurm", _make)


def _make(folder: Path) -> None:
    log = cache_dir() / "log" / "clients-slurm.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    apt = Apt(cache_dir() / "clients" / "debian", os.uname().machine)
    apt.lines += [line.replace("deb ", "deb-src ", 1) for line in apt.lines]
    apt.update(log)
    source = ["apt-get", *apt.options, "-q", "source", "--download-only", PACKAGE]
    logged(["env", f"--chdir={apt.debs}", *source], log, f"downloading the source of {PACKAGE}")
    archive = apt.debs / SOURCE
    if not archive.is_file():
        raise VirtualNodesError(f"Debian's {PACKAGE} has no {SOURCE} any more: name its new one and the hash; {log}")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise VirtualNodesError(f"{archive} is not the file that was looked at: its SHA-256 is {found}")
    _unpack(archive, folder / "suite")
    for deb in apt.download(EXPECT, log).values():
        logged(["dpkg-deb", "--extract", deb, folder / "root"], log, f"unpacking {deb.name}")


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as source:
        for member in source:
            _top, _slash, name = member.name.partition("/")
            if name.startswith(PART) and member.isfile():
                path = folder / name.removeprefix(PART)
                path.parent.mkdir(parents=True, exist_ok=True)
                content = source.extractfile(member)
                assert content
                path.write_bytes(content.read())
                path.chmod(member.mode & 0o777)
    (folder / "expect" / "globals.local").write_text(SETTINGS)
