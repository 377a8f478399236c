"""An emulation of Anaconda of CentOS 7, as far as a kickstart file of ours makes it go. It is not Anaconda.

pykickstart reads the file as RHEL 7's Anaconda does. Real are the network, the files that are fetched, scripts, the
image that is unpacked and packages from repositories; a disk is a device node with its world-wide name and the
container's root. That other disks are wiped is said on the console (wiping.py), and is all that becomes of them.

The order of steps, and what is refused, is Anaconda's (github rhinstaller/anaconda, branch rhel7-branch, read 2026-11;
nothing here is its code): %pre, the whole file, disks that it names, the source, then the disk is erased, filled, made
to boot, %post. An image is fetched when the disk has been erased already, and compared then. A failure leaves the
machine on, in the installer, with a line on its screen: so do scripts, images and packages that fail. What it has no
such line for is an exception, which runs %onerror: here when the disk cannot be erased. Lines that say what a container
does not have (network, firewall, selinux, time zone, partitions' sizes) are read and left.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from pykickstart.constants import (  # type: ignore[import-untyped]
    KS_REBOOT,
    KS_SCRIPT_ONERROR,
    KS_SCRIPT_POST,
    KS_SCRIPT_PRE,
)
from pykickstart.errors import KickstartError  # type: ignore[import-untyped]
from pykickstart.parser import KickstartParser  # type: ignore[import-untyped]
from pykickstart.version import makeVersion  # type: ignore[import-untyped]
from testbed.errors import VirtualNodesError

from bmc import wiping
from bmc.network import IMAGE_SECONDS, Network
from bmc.place import DISK, Place
from bmc.spec import Boot
from bmc.sysimage import Sysimage

if TYPE_CHECKING:
    from bmc.machine import Machine

VERSION = "RHEL7"
PREP = "PPC PReP Boot"
SCRIPT_SECONDS = 1800.0
IMAGE_FILE = f"{DISK}/disk.img"  # where Anaconda saves an image, too
STAGE2 = "LiveOS/squashfs.img"
BIN = "/run/installer/bin"
REPORT = "/tmp/anaconda-tb-emulation"  # where python-meh writes an exception
SECTIONS = {KS_SCRIPT_PRE: "%pre", KS_SCRIPT_POST: "%post", KS_SCRIPT_ONERROR: "%onerror"}
# Groups of packages that the base system stands for: the stand-in repository has no groups.
BASE_GROUPS = ("core",)
# The words are: log, then the command. What is written to /dev/console is the program's standard output here; what a
# script prints goes to its log, and the end of that is shown when it fails.
SCRIPT = """
exec 9>&1
log=$1; shift
mkdir -p "$(dirname "$log")"
"$@" >"$log" 2>&1 </dev/null || { status=$?; tail -n 5 "$log"; exit $status; }
"""


class Next(Enum):
    """What comes after firmware or installer: the system on the disk, the firmware again, or nothing."""

    DISK = "disk"
    RESTART = "restart"
    STAY = "stay"


class StoppedError(VirtualNodesError):
    """The installer stops and waits for somebody; the message says why."""


def start(machine: Machine, boot: Boot, place: Place, network: Network, append: str) -> Next:
    """Run the installer that a kernel's words ask for; say on the console what it does."""
    words = dict(word.partition("=")[::2] for word in append.split())
    installer = _Installer(machine, boot, place, network)
    if not any(name.startswith("inst.") for name in words):
        installer.say("the kernel's words have no inst.*: this emulation knows no other system than the installer")
        return Next.STAY
    try:
        return installer.run(words)
    except (StoppedError, VirtualNodesError, OSError) as error:
        installer.say(f"{error}")
        installer.say("The installation has stopped. The machine stays as it is.")
        return Next.STAY


class _Installer:
    """One installation."""

    def __init__(self, machine: Machine, boot: Boot, place: Place, network: Network) -> None:
        self.machine, self.of, self.place, self.network = machine, boot, place, network
        self.disk = Sysimage(place, machine.kept.path.with_suffix(".hardware"))

    def say(self, line: str) -> None:
        """Print a line on the console."""
        self.machine.write_console(f"anaconda (emulation): {line}\n")

    def run(self, words: dict[str, str]) -> Next:
        """Do what the kernel's words say."""
        self._devices()
        if "inst.rescue" in words:
            self._stage2(words.get("inst.stage2") or words.get("inst.repo"))
            self.say("rescue mode: a shell waits on the console")
            return Next.STAY
        url = words.get("inst.ks", "")
        self.say(f"kickstart file: {url or 'none'}")
        text = self.network.fetch(url) if url else None
        if text is None:
            raise StoppedError(f"{url or 'inst.ks'}: cannot be fetched; the menu of a manual installation waits")
        for script in _scripts(_read(text, strict=False), KS_SCRIPT_PRE):
            self._script(script)
        asked = _read(text)
        self._stage2(words.get("inst.stage2") or words.get("inst.repo") or asked.url.url)
        self._check(asked)
        self._install(asked, text)
        if asked.reboot.action != KS_REBOOT:
            self.say("Installation complete. Press return to quit")  # nobody does
            return Next.STAY
        self.say("Installation complete: restart")
        return Next.RESTART

    # Before a disk is touched

    def _devices(self) -> None:
        """Let the machine's disks be there by their names, and let programs see the machine's architecture."""
        lines = [f"mkdir -p {BIN} /dev/disk/by-id", "ln -sfn /proc/self/fd/9 /dev/console"]
        others = {}
        for number, (name, wwn) in enumerate(sorted(self.of.disks.items())):
            if name == "system" and self.machine.faults().disk_missing:
                continue
            device = f"/dev/virtual-disk{number}"
            if wwn != self.of.disks.get("system"):
                others[device] = f"{name} ({wwn})"
            lines.append(f"[ -b {device} ] || mknod {device} b 8 {16 * number}")
            lines.append(f"ln -sfn ../../virtual-disk{number} /dev/disk/by-id/{_by_id(wwn)}")
        uname = f"""#!/bin/sh\ncase "$*" in -m|-p|-i) echo {self.of.arch} ;; *) exec /usr/bin/uname "$@" ;; esac\n"""
        programs = {"uname": uname, **dict.fromkeys(wiping.PROGRAMS, wiping.program(others))}
        for name, text in programs.items():
            lines.append(f"cat >{BIN}/{name} <<'HAL_END'\n{text}HAL_END\nchmod 755 {BIN}/{name}")
        self.disk.do("devices", "\n".join(lines))

    def _stage2(self, tree: str | None) -> None:
        """Fetch the installer's second stage, as dracut does; ours is only looked for."""
        if not tree:
            raise StoppedError("dracut: no inst.stage2 and no source that has one: /dev/root does not exist")
        url = f"{tree.rstrip('/')}/{STAGE2}"
        if why := self.network.missing(url):
            raise StoppedError(f"dracut: {url}: {why}")

    def _check(self, asked: Any) -> None:
        """Refuse what Anaconda refuses; raise StoppedError."""
        named = [("ignoredisk", disk) for disk in asked.ignoredisk.onlyuse]
        named += [("clearpart", disk) for disk in asked.clearpart.drives]
        named += [("bootloader", asked.bootloader.bootDrive)] if asked.bootloader.bootDrive else []
        named += [("partition", part.disk) for part in asked.partition.partitions if part.disk]
        for command, name in named:
            if self.place.run(["test", "-b", f"/dev/{name}"]).status != 0:
                raise StoppedError(f'Disk "{name}" given in {command} command does not exist.')
        points = [part.mountpoint for part in (*asked.partition.partitions, *asked.logvol.lvList)]
        if "/" not in points:
            raise StoppedError(
                "You have not defined a root partition (/), which is required for installation to continue."
            )
        if self.of.arch == "ppc64le" and not any(part.fstype == PREP for part in asked.partition.partitions):
            raise StoppedError("You must include at least one PReP Boot Partition as a bootloader target device.")
        system = f"disk/by-id/{_by_id(self.of.disks.get('system', 'none'))}"
        if others := sorted({name for _, name in named if name != system}):
            raise StoppedError(f"{', '.join(others)}: this emulation installs on {system} alone")
        if not named:
            raise StoppedError("no disk is named; this emulation chooses none")
        if asked.liveimg.seen:
            if why := self.network.missing(asked.liveimg.url):
                raise StoppedError(f"Failed to load image {asked.liveimg.url}: {why}")
        elif not asked.url.url:
            raise StoppedError("Error setting up base repository: no source is named")

    # From here on the disk is another one

    def _install(self, asked: Any, text: bytes) -> None:
        self.say(f"erasing {', '.join(asked.clearpart.drives) or 'the disk'}")
        try:
            self.disk.erase()
        except VirtualNodesError as error:
            self._exception(asked, error)
            raise
        if asked.liveimg.seen:
            self._image(asked.liveimg)
        else:
            self._packages(asked)
        names = self.disk.boot_entries(asked.bootloader.appendLine or "")
        self.say(f"boot entries: {', '.join(names)}")
        self.disk.open()
        try:
            for script in _scripts(asked, KS_SCRIPT_POST):
                self._script(script)
        finally:
            self.disk.close()
        keep = f'mkdir -p "{DISK}/root"; umask 077; cat >"{DISK}/root/original-ks.cfg"'  # as Anaconda 7 does
        self.disk.do("the kickstart file", keep, stdin=text)
        self.say(f"kernel {self.disk.finish()} will boot")

    def _image(self, image: Any) -> None:
        self.say(f"downloading {image.url}")
        if why := self.network.save(image.url, IMAGE_FILE, IMAGE_SECONDS):
            raise StoppedError(f"Failed to download image {image.url}: {why}")
        if image.checksum:
            checksum = self.disk.do("checksum", f'sha256sum "{IMAGE_FILE}"').decode().split()[0]
            if checksum != image.checksum.lower():
                raise StoppedError("The checksum does not match: the disk has been erased, and has nothing on it now")
            self.say("checksum is right")
        self.say("unpacking the image")
        self.disk.unpack(IMAGE_FILE)
        self.disk.do("the image's file", f'rm "{IMAGE_FILE}"')

    def _packages(self, asked: Any) -> None:
        repositories = {
            "anaconda": asked.url.url,
            **{repository.name: repository.baseurl for repository in asked.repo.repoList},
        }
        groups = [group.name for group in asked.packages.groupList if group.name not in BASE_GROUPS]
        names = [*asked.packages.packageList, *(f"@{name}" for name in groups)]
        self.say("base system: the node's image stands for @core")
        self.disk.base()
        self.disk.kernel(self.of.kernel, self.of.arch)
        wanted = [name for name in names if name != "kernel"]
        if wanted:
            self.say(f"packages: {' '.join(wanted)}")
            self.disk.packages(repositories, wanted, asked.packages.excludedList)

    def _exception(self, asked: Any, error: Exception) -> None:
        """Write the report of an exception, then run what the kickstart file has for it."""
        lines = ["anaconda (emulation) exception report", "Traceback (most recent call first):", f"Error: {error}"]
        try:
            self.disk.do("the report", f"cat >{REPORT}", stdin="\n".join([*lines, "", "Local variables"]).encode())
            for script in _scripts(asked, KS_SCRIPT_ONERROR):
                self._script(script)
        except VirtualNodesError as other:
            self.say(f"{other}")  # the first one is what is to be mended

    def _script(self, script: Any) -> None:
        """Run a script as Anaconda does; raise StoppedError when it failed and may not."""
        what = f"{SECTIONS[script.type]} at line {script.lineno}"
        self.say(what)
        root = DISK if script.type == KS_SCRIPT_POST and script.inChroot else ""
        file = f"{'/run' if root else '/tmp'}/ks-script-{script.lineno}"
        write = 'umask 077; cat >"$1"; chmod 700 "$1"'
        self.disk.do(what, write, root + file, stdin=script.script.encode())
        log = script.logfile or f"{file}.log"
        enter = ["chroot", root] if root else []
        path = f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        command = [*enter, "env", "-i", f"PATH={path}", "HOME=/root", "LANG=C.UTF-8", *script.interp.split(), file]
        done = self.place.run(["sh", "-c", SCRIPT, "sh", root + log, *command], seconds=SCRIPT_SECONDS)
        for line in done.out.decode(errors="replace").splitlines():
            self.machine.write_console(f"{line}\n")
        if done.status != 0 and script.errorOnFail:
            raise StoppedError(
                f"There was an error running the kickstart script at line {script.lineno}. This is a fatal error and "
                f"installation will be aborted. (status {done.status})"
            )
        if done.status != 0 and script.type != KS_SCRIPT_ONERROR:
            self.say(f"{what} ended with status {done.status}; the installation goes on")


def _read(text: bytes, *, strict: bool = True) -> Any:
    """Return a kickstart file as pykickstart reads it; StoppedError when Anaconda could not. Not strict: for %pre."""
    handler = makeVersion(VERSION)
    try:
        parser = KickstartParser(handler, errorsAreFatal=strict, missingIncludeIsFatal=strict)
        parser.readKickstartFromString(text.decode("utf-8"))
    except (KickstartError, UnicodeDecodeError) as error:
        raise StoppedError(f"The following problem occurred in the kickstart file: {error}") from None
    return handler


def _scripts(asked: Any, kind: int) -> Iterable[Any]:
    return [script for script in asked.scripts if script.type == kind]


def _by_id(wwn: str) -> str:
    """Return what udev calls the link of a disk."""
    return f"{'nvme' if wwn.startswith(('eui.', 'nvme.', 'uuid.')) else 'wwn'}-{wwn.lower()}"
