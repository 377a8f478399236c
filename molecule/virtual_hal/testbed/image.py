"""The node image: Debian 12 under CentOS 7.7's names, built once for each content of its recipe."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from testbed import debian, old_programs
from testbed.cache import cache_dir, content_hash, locked
from testbed.errors import VirtualNodesError
from testbed.run import LAB, PODMAN, as_root, capture, logged, need, say

RECIPE = LAB / "image"
IMAGE_SETTINGS = ('CMD ["/sbin/init"]', "STOPSIGNAL SIGRTMIN+3", "LABEL hal.virtual=image")
VARIANTS = ("normal", "python2")
ARCHES = tuple(debian.DEBIAN_ARCH)


def reference(arch: str = "x86_64", variant: str = "normal") -> str:
    """Return the image's name; HAL_NODE_IMAGE, when set, names another image instead of ours."""
    chosen = os.environ.get("HAL_NODE_IMAGE")
    if chosen:
        return chosen
    if arch not in ARCHES:
        raise VirtualNodesError(f"no node image for architecture {arch!r}: one of {', '.join(ARCHES)}")
    if variant not in VARIANTS:
        raise VirtualNodesError(f"no node image variant {variant!r}: one of {', '.join(VARIANTS)}")
    suffix = "" if variant == "normal" else f"-{variant}"
    return f"localhost/hal-node:{arch}{suffix}-{content_hash(_recipe(arch, variant), arch, variant, debian.SUITE)}"


def _recipe(arch: str, variant: str) -> list[Path]:
    """Return the files that this image is made from: the common ones, and those of its architecture and variant."""
    parts = [RECIPE / name for name in ("packages.txt", "dpkg.cfg", "customize", "base-rpms", "base-rpms.txt", "files")]
    parts += [old_programs.TABLE, old_programs.CHECK, Path(old_programs.__file__)]
    if variant == "python2":
        parts += [RECIPE / "python2", RECIPE / "python2.txt"]
    return [*parts, *(path for path in [RECIPE / arch] if path.is_dir())]


def exists(name: str) -> bool:
    """Tell whether podman has the image."""
    return subprocess.run([PODMAN, "image", "exists", name], check=False).returncode == 0


def package_list(name: str) -> list[str]:
    """Return the packages of a list file of the recipe."""
    lines = (line.partition("#")[0].strip() for line in (RECIPE / name).read_text().splitlines())
    return [line for line in lines if line]


def build(arch: str = "x86_64", variant: str = "normal") -> str:
    """Make sure the image exists and return its name; quiet when it does."""
    name = reference(arch, variant)
    if exists(name):
        return name
    with locked(f"image-{arch}-{variant}"):
        if exists(name):
            return name
        if os.environ.get("HAL_NODE_IMAGE"):
            log = cache_dir() / "log" / "image-pull.log"
            say(f"node image: pulling {name} (log: {log})")
            logged([PODMAN, "pull", name], log, f"pulling {name}")
            return name
        _build(name, arch, variant)
    return name


def export(arch: str = "x86_64", variant: str = "normal") -> Path:
    """Return the image's root file system as a .tar.gz, which is made when it is not there; older ones go.

    What an image that virtual nodes install begins with: no package has their userland.
    """
    name = build(arch, variant)
    folder = cache_dir() / "image"
    target = folder / f"root-{re.sub('[^A-Za-z0-9._-]', '-', name.rpartition('/')[2])}.tar.gz"
    if target.is_file():
        return target
    with locked(f"export-{arch}-{variant}"):
        if not target.is_file():
            _export(name, target, cache_dir() / "log" / f"image-export-{arch}-{variant}.log")
            for old in folder.glob(f"root-hal-node-{arch}-*.tar.gz" if variant == "normal" else f"root-*-{variant}-*"):
                if old != target and (variant != "normal" or not any(f"-{other}-" in old.name for other in VARIANTS)):
                    old.unlink()
    return target


def _export(name: str, target: Path, log: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    plain = target.with_suffix(".new")
    container = capture([PODMAN, "create", "--network=none", name]).split()[-1]
    try:
        logged([PODMAN, "export", f"--output={plain}", container], log, "exporting the node image")
    finally:
        capture([PODMAN, "rm", "--force", "--time=0", container])
    try:
        logged(["gzip", "-n", "-1", "--force", plain], log, "packing the node image")
        plain.with_name(f"{plain.name}.gz").rename(target)
    finally:
        plain.unlink(missing_ok=True)


def _build(name: str, arch: str, variant: str) -> None:
    log = cache_dir() / "log" / f"image-{arch}-{variant}.log"
    log.unlink(missing_ok=True)
    say(f"node image: building {name} (log: {log})")
    started = time.monotonic()
    mmdebstrap = need("mmdebstrap", "mmdebstrap")
    need("rpmbuild", "rpm")
    work = cache_dir() / "image"
    work.mkdir(parents=True, exist_ok=True)
    tar = work / f"{name.rpartition(':')[2]}.tar"
    scripts = work / f"old-programs-{arch}-{variant}"
    old_programs.write(scripts)
    environment = {"ARCH": arch, "HERE": str(RECIPE), "HOOK": str(RECIPE / "customize"), "OLD_PROGRAMS": str(scripts)}
    if arch != "x86_64":
        _check_emulation(arch)
    hooks = []
    if variant == "python2":
        environment["PYTHON2"] = str(_python2_debs(arch, log))
        environment["PYTHON2_HOOK"] = str(RECIPE / "python2")
        hooks.append('--customize-hook="$PYTHON2_HOOK" "$1"')
    hooks.append('--customize-hook="$HOOK" "$1"')
    options = work / "apt.conf"
    options.write_text("\n".join(debian.host_options()) + "\n")
    apt = debian.Apt(work / f"lists-{arch}", arch)
    apt.update(log)
    command = [
        mmdebstrap,
        "--mode=root",
        "--variant=minbase",
        f"--architectures={debian.DEBIAN_ARCH[arch]}",
        f"--include={','.join(package_list('packages.txt'))}",
        f"--aptopt={options}",
        f"--dpkgopt={RECIPE / 'dpkg.cfg'}",
        # our hook has removed what these steps would clean up
        "--skip=cleanup/apt,cleanup/mmdebstrap",
        *hooks,
        debian.SUITE,
        str(tar),
        *apt.lines,
    ]
    try:
        logged(as_root(command, environment), log, f"building the node image for {arch}")
        settings = [f"--change={line}" for line in IMAGE_SETTINGS]
        logged([PODMAN, "import", *settings, tar, name], log, "importing the node image")
    finally:
        capture(as_root(["rm", "-f", str(tar)]))
    say(f"node image: built in {time.monotonic() - started:.0f} s")


def _check_emulation(arch: str) -> None:
    """Raise VirtualNodesError unless the kernel runs programs of this architecture."""
    checker = need("arch-test", "arch-test qemu-user-static binfmt-support")
    if not Path("/proc/sys/fs/binfmt_misc/status").exists():
        subprocess.run(as_root(["mount", "-t", "binfmt_misc", "binfmt_misc", "/proc/sys/fs/binfmt_misc"]), check=False)
        subprocess.run(as_root(["update-binfmts", "--enable"]), check=False)
    if subprocess.run([checker, debian.DEBIAN_ARCH[arch]], capture_output=True, check=False).returncode != 0:
        raise VirtualNodesError(f"this machine cannot run {arch} programs: apt install qemu-user-static binfmt-support")


def _python2_debs(arch: str, log: Path) -> Path:
    """Return a folder with the .deb files of Python 2.7, from the last Debian that had it."""
    folder = cache_dir() / "image" / f"python2-{arch}"
    apt = debian.Apt(folder, arch, suite="bullseye")
    apt.update(log)
    apt.download(package_list("python2.txt"), log)
    return apt.debs
