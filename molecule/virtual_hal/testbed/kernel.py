"""What a node has of the kernel that the model declares for it: its name, modules, boot entry and initramfs.

All containers run the kernel of this machine; what cannot be had of another one is in docs/centos7.md, guard 6.
"""

from __future__ import annotations

import lzma
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.run import capture, need

# e_machine of ELF, and what follows the release in a module's vermagic.
MACHINES = {"ppc64le": (21, "SMP mod_unload modversions mprofile-kernel"), "x86_64": (62, "SMP mod_unload modversions")}
# A few modules of the kernel package, and what they need, as `modules.dep` has them.
MODULES = {
    "kernel/drivers/infiniband/core/ib_core.ko.xz": (),
    "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko.xz": (
        "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.xz",
        "kernel/drivers/infiniband/core/ib_core.ko.xz",
    ),
    "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.xz": (),
    "kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz": (),
    "kernel/fs/xfs/xfs.ko.xz": (),
}

NAME = "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"
SPEC = """\
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
Name: kernel
Version: {version}
Release: {release}
Summary: The Linux kernel (stand-in of the virtual HAL for {arch}: nothing boots from it)
License: as the files of the testbed
AutoReqProv: no
{provides}%description
What the testbed leaves on a node of the kernel that the model declares.
%install
cp -a {root}/. %{{buildroot}}/
%files
{files}
"""


def release(kernel: str, arch: str) -> str:
    """Return what `uname -r` prints for a kernel of the model: on Enterprise Linux the architecture belongs to it."""
    return f"{kernel}.{arch}"


def files(kernel: str, arch: str) -> dict[str, tuple[int, bytes]]:
    """Return mode and content, by path, of what an installed kernel package and its boot entry leave on a node."""
    name = release(kernel, arch)
    folder = f"usr/lib/modules/{name}"
    made: dict[str, tuple[int, bytes]] = {
        "etc/hal-node/kernel": (0o644, f"{name}\n".encode()),
        f"boot/vmlinuz-{name}": (0o755, b"stand-in of the virtual HAL: nothing boots from here\n"),
        f"boot/initramfs-{name}.img": (0o600, f"initramfs of {name} (stand-in of the virtual HAL)\n".encode()),
        "boot/grub2/grub.cfg": (0o600, grub([name]).encode()),
        "boot/grub2/grubenv": (0o644, grub_environment(name).encode()),
        f"{folder}/modules.dep": (
            0o644,
            "".join(f"{a}: {' '.join(b)}".rstrip() + "\n" for a, b in MODULES.items()).encode(),
        ),
        f"{folder}/modules.order": (0o644, "".join(f"{path.removesuffix('.xz')}\n" for path in MODULES).encode()),
        f"{folder}/modules.builtin": (0o644, b"kernel/fs/proc/proc.ko\nkernel/lib/zlib_inflate/zlib_inflate.ko\n"),
    }
    for path in MODULES:
        made[f"{folder}/{path}"] = (
            0o644,
            lzma.compress(module(kernel, arch, path), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32),
        )
    return made


def title(name: str) -> str:
    """Return the title of a kernel's boot entry, as new-kernel-pkg of CentOS 7 writes it."""
    return f"CentOS Linux ({name}) 7 (Core)"


def grub(names: Sequence[str], append: str = "crashkernel=auto rd.lvm.lv=centos/root") -> str:
    """Return a grub.cfg with an entry for each release. Petitboot and grubby read the same lines as GRUB itself."""
    lines = ["load_env", 'set default="${saved_entry}"']
    for name in names:
        lines += [
            f"menuentry '{title(name)}' --class centos --class gnu-linux --class gnu --class os --unrestricted {{",
            f"\tlinux /vmlinuz-{name} root=/dev/mapper/centos-root ro {append}".rstrip(),
            f"\tinitrd /initramfs-{name}.img",
            "}",
        ]
    return "\n".join([*lines, ""])


def grub_environment(name: str) -> str:
    """Return the file that says which entry is the default one."""
    return f"# GRUB Environment Block\nsaved_entry={title(name)}\n"


def package(kernel: str, arch: str) -> bytes:
    """Return an RPM, kernel-VERSION-RELEASE, with what `files` has of the kernel itself and not of its boot entry."""
    owned = ("boot/vmlinuz", "boot/init", "usr/")
    made = {path: file for path, file in files(kernel, arch).items() if path.startswith(owned)}
    with tempfile.TemporaryDirectory(prefix="hal-kernel-") as folder:
        return rpm(Path(folder), kernel, arch, made).read_bytes()


def rpm(
    work: Path,
    kernel: str,
    arch: str,
    made: Mapping[str, tuple[int, bytes]],
    *,
    target: str = "noarch",
    provides: Sequence[str] = (),
) -> Path:
    """Make a package of these files in a folder, and return its path.

    ``arch``: of the kernel; ``target``: of the machines that the package is for. Not signed.
    """
    version, _, build = kernel.rpartition("-")
    for path, (mode, content) in made.items():
        file = work / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    lines = [f'%attr({mode:04o}, root, root) "/{path}"' for path, (mode, _) in sorted(made.items())]
    words = {"version": version, "release": build, "arch": arch, "root": work / "root", "files": "\n".join(lines)}
    more = "".join(f"Provides: {provided}\n" for provided in provides)
    (work / "kernel.spec").write_text(SPEC.format(provides=more, **words))
    settings = {"_topdir": work, "_rpmdir": work / "out", "_build_name_fmt": NAME}
    defined = [word for name, value in settings.items() for word in ("--define", f"{name} {value}")]
    command = [need("rpmbuild", "rpm"), "-bb", "--quiet", f"--target={target}", *defined]
    capture([*command, work / "kernel.spec"])
    (built,) = (work / "out").glob("*.rpm")
    return built


def module(kernel: str, arch: str, path: str) -> bytes:
    """Return a kernel module as far as modinfo reads it: an object file whose .modinfo says for which kernel it is."""
    machine, flags = MACHINES[arch]
    name = path.rpartition("/")[2].partition(".")[0]
    info = {"license": "GPL", "name": name, "intree": "Y", "vermagic": f"{release(kernel, arch)} {flags} "}
    return _object_file(machine, {".modinfo": _strings(info)})


def _strings(info: Mapping[str, str]) -> bytes:
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in info.items())


def _object_file(machine: int, sections: Mapping[str, bytes]) -> bytes:
    """Return a relocatable ELF file, 64 bits, little endian, with these sections."""
    named = {"": b"", **sections, ".shstrtab": b""}
    names = b"".join(name.encode() + b"\0" for name in named)
    named[".shstrtab"] = names
    header, entry = 64, 64
    body, table, name_at = b"", b"", 0
    for name, content in named.items():
        kind = {"": 0, ".shstrtab": 3}.get(name, 1)  # null, string table, program data
        offset = header + len(body) if name else 0
        table += struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, offset, len(content), 0, 0, 1 if name else 0, 0)
        body += content
        name_at += len(name.encode()) + 1
    start = header + len(body)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    counts = (0, header, 0, 0, entry, len(named), len(named) - 1)
    return identity + struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, start, *counts) + body + table
