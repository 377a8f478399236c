"""Where firmware and installer of a virtual node run: programs in a container that has the node's port and its disk.

The node's own container is stopped meanwhile. Its root, the disk, is at `DISK` of a container of the node's image,
which is on the management network with the node's MAC and address, and is removed when the system starts or the boot
ends.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from testbed.errors import VirtualNodesError
from testbed.run import PODMAN

from bmc.spec import Boot

if TYPE_CHECKING:
    from bmc.hardware import VirtualNode
    from bmc.machine import Machine

DISK = "/mnt/sysimage"
"""The node's disk; Anaconda has it there too."""
PROGRAMS = "/srv/firmware"
INTERFACE = "eth0"
LABEL = "hal.virtual"
LOOK_SECONDS = 0.2
CAPABILITIES = "MKNOD,NET_ADMIN,NET_RAW,SYS_ADMIN"  # SYS_ADMIN: %post has /dev and /proc of the installer


class InterruptedBootError(Exception):
    """Somebody switched the machine off, or nobody serves its BMC any more."""


class TooSlowError(VirtualNodesError):
    """A program took longer than it may."""


@dataclass(frozen=True)
class Done:
    """How a program ended: its status, what it printed, and what it said on standard error."""

    status: int
    out: bytes
    errors: str

    @property
    def last_words(self) -> str:
        """The last line of its errors, else of what it printed."""
        lines = (self.errors.strip() or self.out.decode(errors="replace").strip()).splitlines()
        return lines[-1] if lines else "no output"


class Place(Protocol):
    """Runs programs as firmware and installer do."""

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:
        """Run a program; raise TooSlowError after ``seconds``, and InterruptedBootError when the machine is to end."""


class Container:
    """A container of the node's image, as long as firmware and installer run."""

    def __init__(self, node: VirtualNode, machine: Machine) -> None:
        """Know the node; nothing is made yet."""
        self._node = node
        self._machine = machine
        self.name = f"{node.container(machine)}-firmware"

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:
        """Run a program in the container."""
        command = self._node.command([str(PODMAN), "exec", "--interactive", self.name, *argv])
        # What it reads is a file: `communicate` that is called again forgets what it had not yet sent.
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=self._node.files
            )
        end = time.monotonic() + seconds
        try:
            while True:
                try:
                    out, errors = process.communicate(timeout=LOOK_SECONDS)
                    return Done(process.returncode, out, errors.decode(errors="replace"))
                except subprocess.TimeoutExpired:
                    pass
                if self._machine.interrupted.is_set():
                    raise InterruptedBootError
                if time.monotonic() > end:
                    raise TooSlowError(f"{argv[0]} took longer than {seconds:g} s")
        finally:
            if process.poll() is None:
                process.kill()  # podman's own; what it ran ends with the container, and may hold the pipes until then
                process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def make(self, boot: Boot) -> None:
        """Make and start it, with the node's disk in it; raise VirtualNodesError when that cannot be."""
        self.remove()
        disk = self._node.podman("mount", self._node.container(self._machine)).strip()
        spec = self._machine.spec
        plug = f"ip={boot.address},mac={spec.macs['management']},interface_name={INTERFACE}"
        self._node.begin(
            [
                "run",
                "--detach",
                "--rm",
                f"--name={self.name}",
                "--hostname=installer",
                "--no-hosts",
                "--systemd=false",
                "--stop-signal=SIGKILL",
                f"--label={LABEL}={self._node.instance}",
                f"--label=hal.node={spec.name}-firmware",
                f"--cap-add={CAPABILITIES}",
                "--security-opt=apparmor=unconfined",
                f"--network={boot.network}:{plug}",
                f"--volume={disk}:{DISK}",
                f"--volume={Path(__file__).parent}:{PROGRAMS}/bmc:ro",
                "--tmpfs=/run:mode=755",
                boot.image,
                "sleep",
                "infinity",
            ]
        )

    def remove(self) -> None:
        """Remove it, and let go of the disk; where nothing of it is there, that is right."""
        self._node.podman("rm", "--force", "--ignore", "--time=0", self.name)
        with suppress(VirtualNodesError):  # it was not mounted, or is gone with its node
            self._node.podman("umount", self._node.container(self._machine))


@contextmanager
def container(node: VirtualNode, machine: Machine, boot: Boot) -> Iterator[Place]:
    """Give the place of a node's firmware; it is removed when the block ends."""
    made = Container(node, machine)
    try:
        made.make(boot)
        yield made
    finally:
        made.remove()
