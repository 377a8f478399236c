"""The disk of a virtual node while something is installed on it: erased, filled, made to boot.

What an installation leaves and a container has no use for (partitions, fstab, LVM, boot loader in the PReP partition)
is left out; what later steps ask for (kernels, their boot entries, RPM's database) is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed import kernel
from testbed.bmcs import SHUTDOWN_HOOK
from testbed.errors import VirtualNodesError

from bmc.place import DISK, Place

# A machine's hardware, which the testbed keeps as files on its disk (testbed/nodes.py): no installation changes it.
HARDWARE = (
    "var/lib/virtual-node/fabric",
    "var/lib/virtual-node/gpus.json",
    "var/lib/virtual-node/scale.json",
    "usr/libexec/virtual-node/virtual_gpu.py",
    "usr/sbin/virtual-gpu",
    # Of CentOS 7's systemd, which the image has not; the folder without what is in it.
    "etc/udev/rules.d",
    "usr/lib/udev/rules.d/40-redhat.rules",
    SHUTDOWN_HOOK,
)
# What the place has beside the image that it was made from.
NOT_OF_THE_IMAGE = (
    "dev",
    "proc",
    "run/*",
    "sys",
    "etc/hostname",
    "etc/hosts",
    "etc/resolv.conf",
    "mnt/*",
    "srv/firmware",
    "tmp/*",
    "root/.bash_history",
)
DISK_SECONDS = 900.0
BINDS = ("dev", "proc", "sys")


class Sysimage:
    """The disk, at `DISK` of a place. What fails raises VirtualNodesError with the program's last words."""

    def __init__(self, place: Place, hardware: Path) -> None:
        """``hardware``: where the machine's hardware is kept while its disk has none."""
        self._place = place
        self._hardware = hardware

    def do(self, what: str, script: str, *words: str, stdin: bytes = b"", seconds: float = DISK_SECONDS) -> bytes:
        """Run a shell script; return what it prints, or raise VirtualNodesError that begins with ``what``."""
        done = self._place.run(["sh", "-euc", script, "sh", *words], stdin=stdin, seconds=seconds)
        if done.status != 0:
            raise VirtualNodesError(f"{what}: {done.last_words}")
        return done.out

    def erase(self) -> None:
        """Take away all that is on the disk; the hardware's files are kept beside."""
        there = 'cd "$0"; for one; do [ ! -e "$one" ] || echo "$one"; done'
        kept = self._place.run(["sh", "-euc", there, DISK, *HARDWARE]).out.decode().split()
        if kept:
            new = self._hardware.with_suffix(".new")
            pack = 'tar -C "$@"'
            new.write_bytes(self.do("the machine's hardware", pack, DISK, "--no-recursion", "-cf", "-", *kept))
            new.replace(self._hardware)
        self.do("erasing the disk", 'find "$1" -xdev -mindepth 1 -delete', DISK)

    def unpack(self, path: str) -> None:
        """Unpack a root file system, a tar, with owners, ACLs and extended attributes."""
        options = '--numeric-owner --acls --selinux --xattrs --xattrs-include="*"'
        self.do("unpacking the image", f'tar -C "$1" {options} -xf "$2"', DISK, path)

    def base(self) -> None:
        """Lay down what a minimal installation is here: the image that the node's container was made from."""
        leave = " ".join(f"--exclude='./{path}'" for path in NOT_OF_THE_IMAGE)
        pack = f"tar -C / --one-file-system --anchored {leave} --numeric-owner --acls --xattrs -cf - ."
        self.do("the base system", f'set -o pipefail; {pack} | tar -C "$1" --numeric-owner --acls --xattrs -xf -', DISK)

    def packages(self, repositories: Mapping[str, str], names: Sequence[str], without: Sequence[str]) -> None:
        """Install packages from repositories by their URLs, and no others."""
        words = [f"--repofrompath={name},{url}" for name, url in repositories.items()]
        words += [f"--exclude={name}" for name in without]
        # Anaconda of 7 checks no signatures of packages either.
        options = "--assumeyes --quiet --nogpgcheck --noplugins --releasever=7 --setopt=reposdir=/run/no-repositories"
        script = f'unset http_proxy https_proxy; dnf {options} --installroot="{DISK}" "$@"'
        self.do("packages", script, *words, "install", *names)

    def kernel(self, version: str, arch: str) -> None:
        """Install the stand-in of a kernel's package."""
        path = "run/kernel.rpm"
        self.do("the kernel", f'mkdir -p "{DISK}/run"; cat >"{DISK}/{path}"', stdin=kernel.package(version, arch))
        install = f'chroot "{DISK}" rpm --install --force-debian --nosignature "/{path}"; rm "{DISK}/{path}"'
        self.do("the kernel", install)

    def boot_entries(self, append: str) -> list[str]:
        """Write a boot entry for each kernel that is there; return their releases. Raises when there is none."""
        listed = self.do("boot entries", f'cd "{DISK}/boot" 2>/dev/null && ls || true').decode().split()
        names = [name.removeprefix("vmlinuz-") for name in listed if name.startswith("vmlinuz-")]
        if not names:
            raise VirtualNodesError("boot loader: what was installed has no kernel in /boot")
        write = 'mkdir -p "$1"; umask 077; cat >"$1/$2"; chmod 600 "$1/$2"'
        for file, text in (("grub.cfg", kernel.grub(names, append)), ("grubenv", kernel.grub_environment(names[0]))):
            self.do("boot entries", write, f"{DISK}/boot/grub2", file, stdin=text.encode())
        return names

    def open(self) -> None:
        """Let programs run in it: devices and processes are the installer's, /run is in memory."""
        lines = [f'mkdir -p "{DISK}/{folder}"; mount --rbind "/{folder}" "{DISK}/{folder}"' for folder in BINDS]
        lines.append(f'mkdir -p "{DISK}/run"; mount -t tmpfs -o mode=755 tmpfs "{DISK}/run"')
        self.do("the new system", "; ".join(lines))

    def close(self) -> None:
        """Take that away again."""
        self.do(
            "the new system", "; ".join(f'umount --recursive --lazy "{DISK}/{folder}"' for folder in (*BINDS, "run"))
        )

    def finish(self) -> str:
        """Put the hardware back, and let the default entry's kernel be the one that runs; return its release."""
        if self._hardware.exists():
            self.do("the machine's hardware", f'tar -C "{DISK}" -xf -', stdin=self._hardware.read_bytes())
        path = self.do("boot entries", f'chroot "{DISK}" grubby --default-kernel').decode().strip()
        release = path.removeprefix("/boot/vmlinuz-")
        self.do(
            "the kernel",
            f'mkdir -p "{DISK}/etc/hal-node"; cat >"{DISK}/etc/hal-node/kernel"',
            stdin=f"{release}\n".encode(),
        )
        return release
