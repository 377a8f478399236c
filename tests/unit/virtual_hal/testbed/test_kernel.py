"""A node has the kernel of its model: the name with the architecture, modules that modinfo reads, one boot entry."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from testbed import kernel

KERNEL, RELEASE = "4.18.0-80.7.2.el7", "4.18.0-80.7.2.el7.ppc64le"
IMAGE = Path(kernel.__file__).parent.parent / "image/files"


def unpack(root: Path, arch: str = "ppc64le") -> None:
    """Write what a node gets below a folder."""
    for path, (mode, content) in kernel.files(KERNEL, arch).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(mode)


@pytest.mark.skipif(shutil.which("modinfo") is None, reason="no modinfo here; apt install kmod")
@pytest.mark.parametrize("arch", ["ppc64le", "x86_64"])
def test_modinfo_says_for_which_kernel_a_module_is(tmp_path: Path, arch: str) -> None:
    unpack(tmp_path, arch)
    modules = sorted((tmp_path / f"usr/lib/modules/{KERNEL}.{arch}").rglob("*.ko.xz"))
    assert len(modules) == len(kernel.MODULES)
    done = subprocess.run(["modinfo", "-F", "vermagic", *modules], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} == {f"{KERNEL}.{arch}"}


def test_modules_need_only_modules_that_are_there() -> None:
    assert {name for needed in kernel.MODULES.values() for name in needed} <= set(kernel.MODULES)


def uname(tmp_path: Path, *options: str) -> str:
    """What the stand-in prints on a node of this kernel."""
    unpack(tmp_path)
    script = (IMAGE / "usr/libexec/hal-node/uname").read_text()
    real = shutil.which("uname") or ""
    script = script.replace("/usr/libexec/hal-node/uname.real", real).replace(
        "/etc/hal-node", f"{tmp_path}/etc/hal-node"
    )
    return subprocess.run(["sh", "-c", script, "uname", *options], capture_output=True, text=True, check=True).stdout


def test_uname_tells_the_models_kernel_and_else_what_the_real_one_says(tmp_path: Path) -> None:
    def real(*options: str) -> str:
        return subprocess.run(["uname", *options], capture_output=True, text=True, check=True).stdout

    assert uname(tmp_path, "-r") == RELEASE + "\n"
    assert uname(tmp_path, "-sr") == f"Linux {RELEASE}\n"
    assert uname(tmp_path, "-m") == real("-m")
    assert uname(tmp_path) == real()
    assert uname(tmp_path, "-a") == real("-a").replace(real("-r").strip(), RELEASE, 1)
    assert "Stand-in" in uname(tmp_path, "--help")


def grubby(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = (IMAGE / "usr/sbin/grubby").read_text().replace("=/boot/", f"={root}/boot/")
    return subprocess.run(["sh", "-c", script, "grubby", *options], capture_output=True, text=True, check=False)


def test_grubby_reads_and_sets_the_default_entry(tmp_path: Path) -> None:
    unpack(tmp_path)
    assert grubby(tmp_path, "--default-kernel").stdout == f"/boot/vmlinuz-{RELEASE}\n"
    old = "4.14.0-115.el7a.ppc64le"
    with (tmp_path / "boot/grub2/grub.cfg").open("a") as config:
        config.write(kernel.grub([old]))
    assert grubby(tmp_path, f"--set-default=/boot/vmlinuz-{old}").returncode == 0
    assert grubby(tmp_path, "--default-kernel").stdout == f"/boot/vmlinuz-{old}\n"
    assert grubby(tmp_path, "--default-title").stdout == f"CentOS Linux ({old}) 7 (Core)\n"
    (tmp_path / "boot/grub2/grubenv").write_text("saved_entry=0\n")
    assert grubby(tmp_path, "--default-kernel").stdout == f"/boot/vmlinuz-{RELEASE}\n"
    assert grubby(tmp_path, "--set-default=/boot/vmlinuz-5").stderr == "grubby: no entry for /boot/vmlinuz-5\n"
    assert grubby(tmp_path, "--remove-kernel=x").returncode == 1
