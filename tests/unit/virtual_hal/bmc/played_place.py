"""A place where firmware and installer run nothing: it answers as programs would, and keeps what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bmc.machine import Machine
from bmc.place import DISK, Done, InterruptedBootError, Place
from bmc.spec import Boot

MAC, ADDRESS, SERVER = "02:48:41:4c:02:01", "10.1.0.105", "10.1.0.11"
CONF = f"http://{SERVER}:8480/boot/hal05"


def lease(**options: str) -> dict[str, Any]:
    """Return an answer of DHCP as the client prints it; options as option_67="..."."""
    found = {name.removeprefix("option_"): text for name, text in options.items()}
    known = {
        "mac": MAC,
        "address": ADDRESS,
        "server": SERVER,
        "siaddr": SERVER,
        "file": None,
        "netmask": "255.255.255.0",
    }
    return {**known, "options": found}


@dataclass
class Played:
    """What there is to be found: answers of DHCP by architecture and user class, files by URL, disks, kernels."""

    leases: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    devices: set[str] = field(default_factory=set)
    boots: bool = True  # whether the disk has a boot entry
    in_boot: list[str] = field(default_factory=list)  # what is in /boot of the disk
    failing: dict[str, Done] = field(default_factory=dict)  # by a part of the command
    steps: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)  # by the path they were written to
    asked: list[str] = field(default_factory=list)
    image_has: list[str] = field(default_factory=lambda: ["vmlinuz-4.18.0-80.7.2.el7.ppc64le"])
    interrupted_at: str = "\0"
    saved: str = ""
    mounted: bool = False
    starts: int = 0

    @contextmanager
    def __call__(self, machine: Machine, boot: Boot) -> Iterator[Place]:
        """Be the place of a machine's firmware."""
        self.steps.append("made")
        try:
            yield self
        finally:
            self.steps.append("removed")

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float = 60.0) -> Done:
        """Answer as the program would."""
        text = " ".join(argv)
        if self.interrupted_at in text:
            raise InterruptedBootError
        for part, done in self.failing.items():
            if part in text:
                return done
        if argv[0] == "curl":
            return self._curl(argv)
        if argv[:2] == ["test", "-b"]:
            return Done(0 if argv[2] in self.devices else 1, b"", "")
        if "dhcp_client" in text:
            self.starts += 1
            assert self.starts < 10, "boots without end"
            words = argv[2].split()
            found = self.leases.get((words[-2], words[-1].strip("'")))
            return Done(0, json.dumps(found).encode(), "")
        return self._shell(text, argv, stdin)

    def _curl(self, argv: Sequence[str]) -> Done:
        url = argv[-1]
        self.asked.append(url)
        if url not in self.files:
            return Done(22, b"", "curl: (22) The requested URL returned error: 404\n")
        if "--output" in argv:
            self.saved = url
            return Done(0, b"", "")
        return Done(0, self.files[url], "")

    def _shell(self, text: str, argv: Sequence[str], stdin: bytes) -> Done:
        out = b""
        if "test -s" in text:
            return Done(0 if self.boots else 1, b"", "")
        if "mknod" in text or "cat >/run/installer/bin/uname" in text:
            self.devices = {f"/dev/disk/by-id/{part.split()[0]}" for part in text.split("/dev/disk/by-id/")[1:]}
        elif "-mindepth 1 -delete" in text:
            self.steps.append("erased")
            self.boots, self.in_boot = False, []
        elif "sha256sum" in text:
            import hashlib

            out = hashlib.sha256(self.files[self.saved]).hexdigest().encode() + b"  disk.img\n"
        elif "disk.img" in text and "-xf" in text:
            self.steps.append("unpacked")
            self.in_boot = list(self.image_has)
        elif "--one-file-system" in text:
            self.steps.append("base")
        elif "rpm --install" in text:
            self.steps.append("kernel")
            self.in_boot = ["vmlinuz-4.18.0-80.7.2.el7.ppc64le"]
        elif "dnf" in text:
            self.steps.append("packages " + " ".join(argv[4:]))
        elif f'cd "{DISK}/boot"' in text:
            out = "\n".join(self.in_boot).encode()
        elif "grub.cfg" in text:
            self.boots = True
        elif "mount --rbind" in text:
            self.mounted = True
        elif "umount" in text:
            self.mounted = False
        elif "chmod 700" in text:
            self.scripts[argv[-1]] = stdin.decode()
        elif "exec 9>&1" in text:
            self.steps.append(f"ran {argv[-1]} log {argv[4]}")
        elif "original-ks.cfg" in text:
            self.steps.append("kept the kickstart file")
        elif "grubby" in text:
            out = f"/boot/{self.in_boot[0]}\n".encode()
        return Done(0, out, "")
