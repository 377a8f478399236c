"""Debian packages for another root or architecture, from the host's own sources and settings, without touching it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import VirtualNodesError
from testbed.run import capture, logged, say

SUITE = "bookworm"
# Suites that have neither updates nor security updates of their own.
ROLLING = ("sid", "unstable", "experimental")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBIAN_ARCH = {"x86_64": "amd64", "ppc64le": "ppc64el"}

# Settings of the host that say how its mirrors are reached; they hold for every root that is filled from them.
HOST_SETTINGS = (
    "Acquire::http",
    "Acquire::https",
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::Retries",
)


def default_mirrors() -> tuple[str, str]:
    """Return mmdebstrap's own mirrors of Debian and its security updates, for a host that has none (Ubuntu)."""
    program = shutil.which("mmdebstrap")
    if program is None:
        raise VirtualNodesError("mmdebstrap is missing: apt install mmdebstrap")
    text = Path(program).read_text(encoding="utf-8", errors="replace")
    mirrors = [re.search(rf"'(https?://[\w.]+/{name})'", text) for name in ("debian", "debian-security")]
    if not all(mirrors):
        raise VirtualNodesError(f"{program} names no mirror of Debian: add one to this host's apt sources")
    mirror, security = (match[1] for match in mirrors if match)
    return mirror, security


def sources(suite: str = SUITE) -> list[str]:
    """Return sources.list lines for a Debian suite, on the mirrors the host uses for Debian where it has any."""
    mirror, security = default_mirrors()
    if shutil.which("apt-get"):
        fields = "$(REPO_URI) $(LABEL) $(ORIGIN)"
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for line in listed.splitlines():
            uri, label, origin = line.split(" ", 2)
            if origin == "Debian" and label == "Debian":
                mirror = uri.rstrip("/")
            elif origin == "Debian" and label == "Debian-Security":
                security = uri.rstrip("/")
    if not KEYRING.exists():
        raise VirtualNodesError(f"{KEYRING} is missing: apt install debian-archive-keyring")
    signed = f"[signed-by={KEYRING}]"
    if suite in ROLLING:
        return [f"deb {signed} {mirror} {suite} main"]
    return [
        f"deb {signed} {mirror} {suite} main",
        f"deb {signed} {mirror} {suite}-updates main",
        f"deb {signed} {security} {suite}-security main",
    ]


def host_options() -> list[str]:
    """Return the host's settings for reaching mirrors, as lines of an apt configuration."""
    if not shutil.which("apt-config"):
        return []
    lines = capture(["apt-config", "dump"]).splitlines()
    return [line for line in lines if line.startswith(HOST_SETTINGS) and not line.endswith('"";')]


class Apt:
    """A private apt in a folder: own lists, own cache, own idea of what is installed; needs no root."""

    def __init__(self, folder: Path, arch: str, suite: str = SUITE) -> None:
        """Prepare the folder."""
        self.folder = folder
        self.arch = arch
        self.lines = sources(suite)
        self.debs = folder / "debs"
        for part in ("lists/partial", "cache/archives/partial", "debs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        status = folder / "status"
        status.write_text("")
        self.listing = folder / "sources.list"
        self.options = [
            f"-oDir::Etc::SourceList={self.listing}",
            "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State={folder}",
            "-oDir::Etc::Preferences=/dev/null",
            "-oDir::Etc::PreferencesParts=/dev/null",
            f"-oDir::State::lists={folder}/lists",
            f"-oDir::State::status={status}",
            f"-oDir::Cache={folder}/cache",
            f"-oAPT::Architecture={DEBIAN_ARCH[arch]}",
            f"-oAPT::Architectures::={DEBIAN_ARCH[arch]}",
            "-oAPT::Sandbox::User=root",
            "-oAPT::Install-Recommends=0",
            "-oAcquire::Languages=none",
            "-oAPT::Update::Post-Invoke-Success=",
            "-oAcquire::Retries=3",
        ]

    def update(self, log: Path) -> None:
        """Fetch the package lists; go without security updates where a mirror has none that are whole (then say so)."""
        command = ["apt-get", *self.options, "-q", "update", "--error-on=any"]
        what = "reading Debian's package lists"
        self.listing.write_text("\n".join(self.lines) + "\n")
        try:
            logged(command, log, what)
        except VirtualNodesError:
            self.lines = [line for line in self.lines if "-security " not in line]
            self.listing.write_text("\n".join(self.lines) + "\n")
            logged(command, log, what)
            say(f"note: the mirror's security updates for {DEBIAN_ARCH[self.arch]} cannot be read: left out")

    def download(self, packages: Iterable[str], log: Path) -> dict[str, Path]:
        """Fetch .deb files; return their paths by package name."""
        wanted = sorted(set(packages))
        command = ["env", f"--chdir={self.debs}", "apt-get", *self.options, "-q", "download", *wanted]
        logged(command, log, "downloading Debian packages")
        paths = {}
        for name in wanted:
            files = sorted(self.debs.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
            if not files:
                raise VirtualNodesError(f"apt downloaded no file for {name}; see {log}")
            paths[name] = files[-1]
        return paths
