"""What the emulated Anaconda does of a %pre that wipes other disks: its own commands, in a folder instead of a node."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from bmc import wiping
from bmc.firmware import Firmware
from bmc.machine import Machine
from bmc.place import Done

from tests.unit.virtual_hal.bmc.test_firmware import machine_of
from tests.unit.virtual_hal.bmc.test_installer import Disarmed, site, written

SYSTEM, BAY = "0x50248414c0550001", "0x50248414c0550002"


class Kept(Disarmed):
    """A place that keeps the command by which the installer makes disks and programs."""

    made = ""

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:
        """Answer as any place."""
        if "mknod" in " ".join(argv):
            self.made = argv[2]
        return super().run(list(argv), stdin=stdin, seconds=seconds)


class Installer:
    """A folder in the place of the installer's system. A disk is a file; nothing is ever written to one."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        self.folder, self.kept = folder, Kept(site(written()).leases, site(written()).files)
        Firmware(self.kept).boot(machine, "network")
        (folder / "dev").mkdir()
        # Behind the installer's own, so that a real one never runs, whatever is wrong with the installer.
        real = dict.fromkeys((*wiping.PROGRAMS, "mdadm", "dmsetup"), "exit 99")
        for name, words in {"mknod": 'echo content >"$1"', **real}.items():
            (folder / name).write_text(f"#!/bin/sh\n{words}\n")
            (folder / name).chmod(0o755)
        made = self.sh(self.here(self.kept.made).replace(f"{folder}/proc/self/fd/9", "/proc/self/fd/9"))
        assert made.returncode == 0, made.stderr

    def here(self, text: str) -> str:
        """Return a command that does in the folder what it does in the system."""
        for root in ("/dev/", "/run/"):
            text = text.replace(root, f"{self.folder}{root}")
        return text.replace(f"{self.folder}/dev/zero", "/dev/zero").replace("[ -b ", "[ -f ")

    def sh(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a command; what goes to the console is what it prints."""
        environment = {"PATH": f"{self.folder}/run/installer/bin:{self.folder}:/usr/bin:/bin"}
        return subprocess.run(
            ["sh", "-c", f"exec 9>&1; {text}"], capture_output=True, text=True, check=False, env=environment
        )

    def pre(self, *wipe: str) -> subprocess.CompletedProcess[str]:
        """Run %pre of the node's kickstart file; the server lets it begin, and has the image."""
        signed = written().split("--checksum=")[1].split()[0]
        for name, words in {"curl": "exit 0", "sha256sum": f"echo {signed}"}.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{words}\n")
            (self.folder / name).chmod(0o755)
        text = written(wipe=wipe).split("%pre", 1)[1].split("\n", 1)[1].split("%end")[0]
        return self.sh(self.here(text))

    def untouched(self) -> bool:
        """Whether all disks are as they were."""
        return {path.read_text() for path in (self.folder / "dev").glob("virtual-disk*")} == {"content\n"}


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    """The installer of an AC922 with a disk bay01."""
    (tmp_path / "system").mkdir()
    return Installer(tmp_path / "system", machine_of(tmp_path))


def test_a_disk_that_is_wiped_is_said_on_the_console_and_nothing_is_written_to_any(installer: Installer) -> None:
    done = installer.pre(BAY)
    assert (done.returncode, done.stdout) == (0, f"anaconda (emulation): disk bay01 ({BAY}) is wiped\n"), done.stderr
    assert installer.untouched()


def test_without_a_wipe_nothing_is_said(installer: Installer) -> None:
    done = installer.pre()
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "wipefs --all --force /dev/virtual-disk1",  # the system disk: names are numbered in their order
        "wipefs --all --force /dev/sda",
        "wipefs --all /dev/virtual-disk0",
        "wipefs --all --force",
        "dd if=/dev/zero of=/dev/virtual-disk1 bs=512 count=1",
        "dd if=/dev/sda of=/dev/virtual-disk0 bs=512 count=1",
        "blockdev --rereadpt /dev/virtual-disk0",
        "blockdev --getsz /dev/sda",
    ],
)
def test_whatever_else_is_asked_is_refused_loudly(installer: Installer, command: str) -> None:
    done = installer.sh(installer.here(command))
    assert (done.returncode, done.stdout) == (1, "")
    assert " (emulation): " in done.stderr
    assert installer.untouched()
