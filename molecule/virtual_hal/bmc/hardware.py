"""What an emulated BMC switches on and off: nothing but its own memory, or the container of a virtual node."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from testbed.bmcs import LAST_SHUTDOWN
from testbed.errors import VirtualNodesError
from testbed.run import PODMAN

from bmc.ends import Ends
from bmc.state import Target

if TYPE_CHECKING:
    from bmc.machine import Machine

GRACE_SECONDS = 60  # a node's systemd may take this long to stop; then it is killed, as podman does
LOOK_SECONDS = 0.2
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
# What firmware does when the network is in its boot order: (machine, override) -> whether the system on the disk starts
# now; if not, it has said why on the console. It runs in the serving process, may take minutes, and ends early when
# `machine.interrupted` is set.
NetworkBoot = Callable[["Machine", Target], bool]


class Hardware(Protocol):
    """The machine behind a BMC."""

    def on(self, machine: Machine, target: Target) -> None:
        """Switch it on; the firmware starts from ``target``, or in its own order for "none"."""

    def off(self, machine: Machine, *, gracefully: bool) -> None:
        """Switch it off."""

    def is_on(self, machine: Machine) -> bool:
        """Return whether it is on."""

    def follow(self, machine: Machine) -> None:
        """Call `machine.ended` when its system, which runs, has ended."""

    def reboots(self, machine: Machine) -> bool:
        """Return whether its system, which has ended, asked to be started again. To be asked once."""


class NoHardware:
    """Nothing but the state file: what was switched on is on."""

    def on(self, machine: Machine, target: Target) -> None:
        """Stay in the firmware where that was asked for; a network that nobody serves is the firmware's menu too."""
        if target in ("setup", "network"):
            stay_in_firmware(machine, target)

    def off(self, machine: Machine, *, gracefully: bool) -> None:
        """Nothing is to be done."""

    def is_on(self, machine: Machine) -> bool:
        """Return what the state file says."""
        return machine.kept.read().power

    def follow(self, machine: Machine) -> None:
        """There is no system that could end."""

    def reboots(self, machine: Machine) -> bool:
        """There is no system that could ask."""
        return False


class VirtualNode:
    """The containers of an instance. A container that ends by itself is a machine that was shut down."""

    def __init__(self, instance: str, network: int | None = None, network_boot: NetworkBoot | None = None) -> None:
        """Take the open file of the network namespace that podman has to run in: netavark configures its caller's."""
        self.instance = instance
        self.network = network
        self.network_boot = network_boot
        self.ends: Ends | None = None  # the serving process has it
        self._starting = threading.Lock()
        self._followed: dict[str, int] = {}

    def on(self, machine: Machine, target: Target) -> None:
        """Start from the network or the disk, or stay in the firmware."""
        if target == "setup":
            stay_in_firmware(machine, target)
        elif target == "disk":
            self.start(machine)
        elif self.network_boot is not None:
            _in_firmware(machine, True)  # petitboot runs: the machine is on, its container is not
            if self.network_boot(machine, target):
                self.start(machine)
                _in_firmware(machine, False)
        elif target == "network":
            stay_in_firmware(machine, target)
        else:
            self.start(machine)

    def start(self, machine: Machine) -> None:
        """Start the node's container: the system on its disk boots."""
        self.begin(["start", self.container(machine)])
        self.follow(machine)

    def begin(self, words: Sequence[str]) -> None:
        """Run a command of podman that gives a container its networks."""
        # netavark switches routing on, which nothing here needs. One at a time, or one sees what another left for a
        # moment.
        back = f'[ "$was" = 1 ] || echo 0 >{FORWARDING}'
        script = f'was=$(cat {FORWARDING}); "$0" "$@" >/dev/null; status=$?; {back}; exit $status'
        with self._starting:
            self._run(["sh", "-c", script, str(PODMAN), *words])

    def podman(self, *words: str) -> str:
        """Return what a command of podman prints; raise VirtualNodesError with its last words when it fails."""
        return self._run([str(PODMAN), *words])

    def off(self, machine: Machine, *, gracefully: bool) -> None:
        """Stop the node's container: systemd is asked, or it is killed. Who asked need not wait to have it forced."""
        if not gracefully:
            self._run([str(PODMAN), "stop", "--time=0", self.container(machine)])
            return
        stopped = threading.Event()
        watching = threading.Thread(target=self._kill_when_forced, args=(machine, stopped), daemon=True)
        watching.start()
        try:
            self._run([str(PODMAN), "stop", f"--time={GRACE_SECONDS}", self.container(machine)])
        finally:
            stopped.set()
            watching.join()

    def _kill_when_forced(self, machine: Machine, stopped: threading.Event) -> None:
        while not stopped.wait(LOOK_SECONDS):
            if machine.interrupted.is_set():
                with suppress(VirtualNodesError):  # it may have ended just now
                    self._run([str(PODMAN), "kill", self.container(machine)])
                return

    def is_on(self, machine: Machine) -> bool:
        """Return whether the container runs, or the firmware waits in its menu."""
        if machine.kept.read().in_firmware:
            return True
        return bool(self._listed(machine)["State"] == "running")

    def follow(self, machine: Machine) -> None:
        """Watch the first process of the node's container, where this process serves its BMC."""
        if self.ends is None:
            return
        name = machine.spec.name
        if (pid := self._pid(machine)) and self._followed.get(name) != pid:
            self._followed[name] = pid
            self.ends.follow(pid, lambda: self._ended(machine, pid))

    def _ended(self, machine: Machine, pid: int) -> None:
        with suppress(RuntimeError):  # nobody serves any more
            machine.ended(lambda: self._gone(machine, pid))

    def _gone(self, machine: Machine, pid: int) -> bool:
        """Return whether nothing runs in place of a process that has ended, once podman knows of that."""
        end = time.monotonic() + GRACE_SECONDS
        while (now := self._pid(machine)) == pid and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        self.follow(machine)  # somebody may have started it by another way
        return now == 0

    def _pid(self, machine: Machine) -> int:
        """Return the first process of the node's container, 0 when it does not run."""
        return int(self._listed(machine)["Pid"])

    def _listed(self, machine: Machine) -> Mapping[str, Any]:
        """Return what podman lists of the node's container; raise VirtualNodesError when there is none.

        `podman inspect` would look through the host's /dev, and fails when somebody closes a terminal meanwhile
        (podman 4.3 and others; its pull request 20250).
        """
        name = self.container(machine)
        listed = json.loads(self.podman("ps", "--all", "--format=json", f"--filter=name=^{name}$") or "[]") or []
        if not listed:
            raise VirtualNodesError(f"podman: there is no container {name}")
        return dict(listed[0])

    def reboots(self, machine: Machine) -> bool:
        """Return whether the node's systemd ended to reboot: a hook of its shutdown has left a word on the disk."""
        word = f"{self.container(machine)}:/{LAST_SHUTDOWN}"
        try:
            archive = self.podman("cp", word, "-")
        except VirtualNodesError:
            return False  # it left no word: it was killed
        with tarfile.open(fileobj=io.BytesIO(archive.encode())) as tar:
            file = tar.extractfile(tar.next() or tarfile.TarInfo())
            said = file.read().decode().strip() if file else ""
        with tempfile.NamedTemporaryFile("w") as nothing:
            self.podman("cp", nothing.name, word)
        return said == "reboot"

    def container(self, machine: Machine) -> str:
        """Return the name of the node's container."""
        return f"{self.instance}-{machine.spec.name}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return a command as it is run: in this machine's own network namespace."""
        enter = [] if self.network is None else ["nsenter", f"--net=/proc/self/fd/{self.network}", "--"]
        return [*enter, *argv]

    @property
    def files(self) -> tuple[int, ...]:
        """The open files that such a command has to inherit."""
        return () if self.network is None else (self.network,)

    def _run(self, argv: Sequence[str]) -> str:
        done = subprocess.run(
            self.command(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=self.files,
        )
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise VirtualNodesError(f"podman {argv[-1]} ({done.returncode}): {words[-1] if words else 'no output'}")
        return done.stdout


def stay_in_firmware(machine: Machine, target: Target) -> None:
    """Leave the machine on, with nothing started."""
    why = "setup was asked for" if target == "setup" else "nothing on the network to start"
    _in_firmware(machine, True)
    machine.write_console(f"[firmware] menu: {why}\n")


def _in_firmware(machine: Machine, waits: bool) -> None:
    with machine.kept.change() as state:
        state.in_firmware = waits
