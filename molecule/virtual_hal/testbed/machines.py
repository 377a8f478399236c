"""Nodes as virtual machines: for what a container cannot have, block devices and a kernel of its own.

Each is a container as well, which holds QEMU: so its networks, its addresses and its removal are those of all nodes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from testbed import debian
from testbed.cache import cache_dir, content_hash, locked
from testbed.errors import VirtualNodesError
from testbed.run import LAB, PODMAN, as_root, capture, logged, need, say

RECIPE = LAB / "machine"
ARCH = "x86_64"
KVM = Path("/dev/kvm")
CONSOLE = "/vm/console.log"
EMULATED = "/vm/emulated"
READY_SECONDS = 900  # without KVM each instruction is emulated, and other nodes start beside it


class Machines(BaseModel):
    """Which nodes of a plan are virtual machines, and how large they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str = ""
    nodes: frozenset[str] = frozenset()
    memory_mb: int = 768
    disk_mb: int = 512


def reference(node_image: str) -> str:
    """Return the name of the image that holds QEMU, a kernel and, as root disk, the node image."""
    return f"localhost/hal-machine:{ARCH}-{content_hash([RECIPE], node_image, debian.SUITE)}"


def build(node_image: str) -> str:
    """Make sure the image exists and return its name; quiet when it does."""
    name = reference(node_image)
    with locked("machine"):
        if subprocess.run([PODMAN, "image", "exists", name], check=False).returncode != 0:
            _build(name, node_image)
    return name


def _build(name: str, node_image: str) -> None:
    work = cache_dir() / "machine"
    work.mkdir(parents=True, exist_ok=True)
    log = cache_dir() / "log" / "machine.log"
    log.unlink(missing_ok=True)
    say(f"image of virtual machines: building {name} (log: {log})")
    started = time.monotonic()
    tar, node = work / "machine.tar", work / "node.tar"
    apt_options = work / "apt.conf"
    apt_options.write_text("\n".join(debian.host_options()) + "\n")
    apt = debian.Apt(work / "lists", ARCH)
    apt.update(log)
    lines = ((RECIPE / "packages.txt").read_text()).splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    command = [
        need("mmdebstrap", "mmdebstrap"),
        "--mode=root",
        "--variant=minbase",
        f"--architectures={debian.DEBIAN_ARCH[ARCH]}",
        f"--include={','.join(packages)}",
        f"--aptopt={apt_options}",
        f"--dpkgopt={LAB / 'image' / 'dpkg.cfg'}",
        "--skip=cleanup/apt,cleanup/mmdebstrap",
        # Before the kernel is installed, which makes an initramfs with all drivers otherwise.
        '--essential-hook=install -D -m 0644 "$HERE/initramfs.conf" "$1/etc/initramfs-tools/conf.d/hal"',
        '--customize-hook="$HOOK" "$1"',
        debian.SUITE,
        str(tar),
        *apt.lines,
    ]
    container = capture([PODMAN, "create", "--label=hal.virtual=image", node_image]).strip()
    try:
        logged([PODMAN, "export", "--output", node, container], log, "reading the node image")
        environment = {"HERE": str(RECIPE), "HOOK": str(RECIPE / "customize"), "NODE": str(node)}
        logged(as_root(command, environment), log, "building the image of virtual machines")
        settings = [f"--change={line}" for line in ('CMD ["/vm/run"]', "LABEL hal.virtual=image")]
        logged([PODMAN, "import", *settings, tar, name], log, "importing the image of virtual machines")
    finally:
        capture([PODMAN, "rm", "--force", container])
        capture(as_root(["rm", "-f", str(tar), str(node)]))
    say(f"image of virtual machines: built in {time.monotonic() - started:.0f} s")


def options(machines: Machines, disks: Mapping[str, str]) -> list[str]:
    """Return the options of `podman create` that make a container a machine with these disks (world-wide names)."""
    for name, wwn in disks.items():
        if not wwn.startswith("0x"):
            raise VirtualNodesError(
                f"disk {name}: {wwn} is not a name of a SCSI disk (0x...), as virtual machines have"
            )
    devices = ["/dev/net/tun", *([str(KVM)] if KVM.exists() else [])]
    return [
        "--cap-add=NET_ADMIN",
        *(f"--device={path}" for path in devices),
        f"--env=MEMORY_MB={machines.memory_mb}",
        f"--env=DISK_MB={machines.disk_mb}",
        f"--env=DISKS={' '.join(f'{name}={wwn}' for name, wwn in disks.items())}",
    ]


def wait(container: str, ssh: Sequence[str]) -> None:
    """Return when the machine lets `ssh` in and systemd has reached its target; say so when it is emulated."""
    started = time.monotonic()
    done = subprocess.CompletedProcess[str]([], 1, "", "")
    while time.monotonic() < started + READY_SECONDS:
        done = subprocess.run(
            [*ssh, "/usr/bin/systemctl", "is-system-running", "--wait"], capture_output=True, text=True, check=False
        )
        if done.returncode != 255:  # ssh's own, as long as nobody answers
            break
        time.sleep(0.5)
    if done.stdout.strip() != "running":
        said = done.stdout.strip() or done.stderr.strip()
        raise VirtualNodesError(
            f"{container}: not running after {time.monotonic() - started:.0f} s: {said!r}; "
            f"see: {PODMAN} logs {container}; {PODMAN} exec {container} tail {CONSOLE}"
        )
    emulated = subprocess.run([PODMAN, "exec", container, "cat", EMULATED], capture_output=True, text=True, check=False)
    if emulated.returncode == 0:
        say(f"{container}: {emulated.stdout.strip()}: it is emulated, and many times slower")


def disk(container: str, words: Sequence[str]) -> int:
    """Pull a disk out of a machine that runs, or put one in; return the exit status."""
    return subprocess.run([PODMAN, "exec", container, "/vm/disk", *words], check=False).returncode
