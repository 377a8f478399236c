"""The firmware of a virtual node: from "power on" to the system that starts, by the network that is really there.

POWER machines boot petitboot (bmc.petitboot decides). x86_64 machines do PXE: DHCP as BIOS does, the boot file by TFTP,
then iPXE's DHCP and its script by HTTP. What the boot file has in it is not run: bmc.ipxe stands for it.

What is printed is on the BMC's console. A machine that starts nothing stays on, in its menu.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from testbed.errors import VirtualNodesError

from bmc import anaconda, ipxe, petitboot
from bmc.anaconda import Next
from bmc.dhcp_client import BIOS, OPAL
from bmc.network import Network
from bmc.petitboot import BOOT_FILE, Disk, Kernel, Lease
from bmc.place import DISK, InterruptedBootError, Place
from bmc.spec import Boot
from bmc.state import Target

if TYPE_CHECKING:
    from bmc.machine import Machine

POWER = "ppc64le"
Places = Callable[["Machine", Boot], AbstractContextManager[Place]]
KERNEL_FILE, INITRD_FILE, LOADER_FILE = "/run/kernel", "/run/initrd", "/run/loader"
# A disk from which something can be booted: petitboot and GRUB read the same file.
BOOTS = f"test -s {DISK}/boot/grub2/grub.cfg"


class Firmware:
    """Boots machines over the network: the hook of VirtualNode."""

    def __init__(self, places: Places) -> None:
        """``places`` gives what firmware runs in."""
        self._places = places

    def boot(self, machine: Machine, target: Target) -> bool:
        """Return whether the system on the disk starts now; False: the machine stays in firmware or installer."""
        if machine.spec.boot is None:
            machine.write_console("[firmware] no port of this machine is on a network that boots\n")
            return target != "network"
        try:
            with self._places(machine, machine.spec.boot) as place:
                return _Run(machine, machine.spec.boot, place).until_started(target)
        except InterruptedBootError:
            machine.write_console("[firmware] interrupted\n")
            return False

    __call__ = boot


class _Run:
    """One time that a machine is on, before its system starts."""

    def __init__(self, machine: Machine, boot: Boot, place: Place) -> None:
        self.machine, self.of, self.place = machine, boot, place
        self.network = Network(place, machine.spec.macs["management"])

    def until_started(self, target: Target) -> bool:
        """Boot; an installer that ends with a restart goes through the firmware again."""
        while True:
            try:
                next_ = self._once(target)
            except (VirtualNodesError, OSError, ValueError) as error:
                self.say(f"[firmware] stopped: {error}")
                return False
            if next_ is not Next.RESTART:
                return next_ is Next.DISK
            target = self.machine.restart()
            if target == "setup":
                return False

    def say(self, line: str) -> None:
        """Print a line on the console."""
        self.machine.write_console(line + "\n")

    def _once(self, target: Target) -> Next:
        self.network.clear()
        disk = self.place.run(["sh", "-c", BOOTS]).status == 0
        if target == "disk":
            return self._disk(disk)
        return self._petitboot(target, disk) if self.of.arch == POWER else self._pxe(disk)

    def _disk(self, disk: bool) -> Next:
        if disk:
            return Next.DISK
        self.say("[firmware] the disk has nothing that boots")
        return Next.STAY

    # petitboot

    def _petitboot(self, target: Target, disk: bool) -> Next:
        self.say("Petitboot")
        lease = self.network.ask(OPAL)
        override = "network" if target == "network" else None
        outcome = petitboot.boot(lease, self.network.fetch, override=override, disk=disk)
        lines = list(outcome.console)
        if lease is None:
            lines.insert(1, "[network] no answer of DHCP")
        for line in lines:
            self.say(line)
        decision = outcome.decision
        if isinstance(decision, Kernel):
            for url, path in ((decision.url, KERNEL_FILE), (decision.initrd, INITRD_FILE)):
                if url is not None and (why := self.network.save(url, path)):
                    self.say(f"Failed to load {url}: {why}")
                    return Next.STAY
            self.say("Performing kexec load")
            self.say("Performing kexec reboot")
            return self._kernel(decision.append)
        return self._disk(disk) if isinstance(decision, Disk) else Next.STAY

    # PXE

    def _pxe(self, disk: bool) -> Next:
        self.say("PXE: DHCP...")
        lease = self.network.ask(BIOS)
        if (why := self._loader(lease)) is not None:
            self.say(f"PXE: {why}")
            return self._disk(disk)
        self.say("iPXE: Configuring (net0)...")
        lease = self.network.ask(BIOS, "iPXE")
        url = _file(lease)
        if lease is None or not url or not petitboot.is_url(url):
            self.say("iPXE: nothing to boot")
            return self._disk(disk)
        self.say(f"{url}...")
        script = self.network.fetch(url)
        if script is None:
            self.say(f"iPXE: {url} cannot be fetched")
            return self._disk(disk)
        mac = self.machine.spec.macs["management"]
        settings = {f"{name}/mac": mac for name in ("netX", "net0")}
        settings |= {f"{name}/mac:hexhyp": mac.replace(":", "-") for name in ("netX", "net0")}
        ended = ipxe.run(
            script.decode("utf-8", "replace"), settings, self._saved, lambda line: self.say(f"iPXE: {line}")
        )
        if isinstance(ended, ipxe.Booted):
            return self._kernel(ended.append)
        self.say(f"iPXE: {ended.why}")
        return self._disk(disk)

    def _loader(self, lease: Lease | None) -> str | None:
        """Fetch the boot file as the network card does; return why there is none."""
        if lease is None:
            return "no answer of DHCP"
        server = lease.options.get(petitboot.TFTP_SERVER) or lease.siaddr or lease.server
        file = _file(lease)
        if not file or not server:
            return "no boot file name received"
        self.say(f"PXE: {file} from {server}")
        if why := self.network.save(f"tftp://{server}/{file.lstrip('/')}", LOADER_FILE):
            return f"{file}: {why}"
        return None

    def _saved(self, url: str) -> str | None:
        return self.network.save(url, KERNEL_FILE)

    # What was loaded

    def _kernel(self, append: str) -> Next:
        return anaconda.start(self.machine, self.of, self.place, self.network, append)


def _file(lease: Lease | None) -> str | None:
    return None if lease is None else lease.options.get(BOOT_FILE) or lease.file
