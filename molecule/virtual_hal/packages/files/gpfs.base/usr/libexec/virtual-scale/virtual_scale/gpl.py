"""mmbuildgpl: kernel modules as far as modinfo reads them, and the package gpfs.gplbin of them."""

from __future__ import annotations

import platform
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from virtual_scale import daemon, place
from virtual_scale.options import Options
from virtual_scale.say import Failed, out

VERSION, RELEASE = "5.0.4", "1"
LINE = "-" * 56
# e_machine of ELF, and what follows the release in vermagic.
MACHINES = {"ppc64le": (21, "SMP mod_unload modversions mprofile-kernel"), "x86_64": (62, "SMP mod_unload modversions")}


def module(kernel: str, name: str) -> bytes:
    """Return an ELF file that modinfo reads: 64 bits, little endian, one section of strings, no code."""
    machine, flags = MACHINES.get(kernel.rpartition(".")[2], MACHINES["x86_64"])
    info = {"license": "GPL", "name": name, "vermagic": f"{kernel} {flags} "}
    strings = b"".join(f"{key}={value}".encode() + b"\0" for key, value in info.items())
    names = b"\0.modinfo\0.shstrtab\0"
    sections = ((0, 0, 0, 0), (1, 1, 64, len(strings)), (10, 3, 64 + len(strings), len(names)))
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, where, size, 0, 0, 1, 0) for at, kind, where, size in sections
    )
    body = strings + names
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 3, 2)
    return identity + header + body + table


def mmbuildgpl(words: Sequence[str]) -> int:
    """Make the modules for the kernel that runs; with --build-package their package, too."""
    options = Options("mmbuildgpl", words, flags=("--quiet", "--build-package", "-v"))
    kernel = daemon.kernel()

    def say(text: str) -> None:
        if not options.given("--quiet"):
            out(text)

    _banner(say, f"Building GPL ({VERSION}.{RELEASE}) module begins at")
    say(f"Verifying Kernel Header...\n  kernel version = {kernel}")
    extra = place.MODULES / kernel / "extra"
    if not extra.parent.is_dir():
        say(f"  Cannot find a valid kernel header file: {extra.parent} does not exist.")
        _banner(say, "Building GPL module failed at")
        raise Failed("mmbuildgpl: Command failed. Examine previous error messages to determine cause.")
    say("make World ...\nmake InstallImages ...")
    extra.mkdir(exist_ok=True)
    for name in daemon.KERNEL_MODULES:
        (extra / name).write_bytes(module(kernel, name.removesuffix(".ko")))
    if options.given("--build-package"):
        say("make rpm ...")
        say(f"Wrote: {package(kernel, extra)}")
    _banner(say, "Building GPL module completed successfully at")
    return 0


def _banner(say: Callable[[str], None], text: str) -> None:
    say(f"{LINE}\nmmbuildgpl: {text} {time.strftime('%a %b %e %H:%M:%S %Z %Y')}.\n{LINE}")


def package(kernel: str, extra: Path) -> Path:
    """Return the package of the modules, made below /root/rpmbuild."""
    name, arch = f"gpfs.gplbin-{kernel}", platform.machine()
    folder = place.ROOT / "root/rpmbuild"
    installed = Path("/lib/modules") / kernel / "extra"
    lines = [
        "%global debug_package %{nil}",
        "%global __os_install_post %{nil}",
        "%global _build_id_links none",
        f"Name: {name}",
        f"Version: {VERSION}",
        f"Release: {RELEASE}",
        f"Summary: GPFS Portability Layer binary built for {kernel} (stand-in of the virtual HAL, no code)",
        "License: none",
        "AutoReqProv: no",
        "%description",
        "Stand-in of the virtual HAL: the kernel modules have a name and no code.",
        "%install",
        f"mkdir -p %{{buildroot}}{installed}",
        *(f"cp {extra / module} %{{buildroot}}{installed}/" for module in daemon.KERNEL_MODULES),
        "%files",
        *(f"{installed}/{module}" for module in daemon.KERNEL_MODULES),
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".spec") as spec:
        spec.write("\n".join(lines) + "\n")
        spec.flush()
        words = ["rpmbuild", "-bb", "--quiet", f"--target={arch}", f"--define=_topdir {folder}", spec.name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"mmbuildgpl: {done.stderr.strip()}")
    return folder / f"RPMS/{arch}/{name}-{VERSION}-{RELEASE}.{arch}.rpm"
