"""A kernel that is not the declared one is found and named, wherever it hides; yum and dnf keep the declared one."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed import kernel
from testinfra.host import Host
from testing.promises import Rollout

RELEASES = {"hal-mgmt2": "3.10.0-1062.el7.x86_64", "hal01": "4.18.0-80.7.2.el7.ppc64le"}
OLD = "4.14.0-115.el7a"
MODULES, INITRAMFS = "modules are built for the declared kernel", "initramfs has the settings of drivers"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def said(rollout: Rollout, wrong: str) -> str:
    """What is observed on hal01, where this promise of the role, and no other, does not hold."""
    results = rollout.promises("base", "hal01")
    assert [name for name, result in results.items() if result["status"] in ("fail", "unknown")] == [wrong]
    return str(results[wrong]["observed"])


def put(host: Host, content: bytes, path: str) -> None:
    """Write a file of bytes on a node."""
    text = base64.b64encode(content).decode()
    host.check_output(f"mkdir -p $(dirname {path}) && echo {text} | base64 --decode >{path}")


@pytest.mark.parametrize("name", RELEASES)
def test_a_node_has_the_kernel_of_its_model(node: Node, name: str) -> None:
    host, release = node(name), RELEASES[name]
    assert host.check_output("uname -r") == release
    path = f"/lib/modules/{release}/kernel/fs/xfs/xfs.ko.xz"
    assert host.check_output(f"modinfo -F vermagic {path}").split()[0] == release


def test_modules_that_are_built_for_another_kernel_are_found(node: Node, rollout: Rollout) -> None:
    host, folder = node("hal01"), f"/lib/modules/{RELEASES['hal01']}"
    put(host, kernel.module("4.18.0-80.7.2.el7", "ppc64le", "extra/good.ko"), f"{folder}/extra/good.ko")
    put(host, kernel.module(OLD, "ppc64le", "extra/nvidia.ko"), f"{folder}/extra/nvidia.ko")
    put(host, kernel.module(OLD, "ppc64le", "extra/mmfs26.ko"), f"/lib/modules/{OLD}.ppc64le/extra/mmfs26.ko")
    host.check_output(f"mkdir {folder}/weak-updates")
    host.check_output(
        f"ln -s /lib/modules/{OLD}.ppc64le/extra/mmfs26.ko /lib/modules/gone/lost.ko {folder}/weak-updates"
    )
    try:
        observed = said(rollout, MODULES)
        assert f"{folder}/extra/nvidia.ko is built for {OLD}.ppc64le" in observed
        assert f"{folder}/weak-updates/mmfs26.ko is built for {OLD}.ppc64le" in observed
        assert f"{folder}/weak-updates/lost.ko is built for a kernel that it does not name" in observed
        assert "good.ko" not in observed
        accepted = {"nvidia": "test", "mmfs26": "test", "lost": "test"}
        assert rollout.broken_promises("base", "hal01", base_kernel_modules_accepted=accepted) == []
    finally:
        host.check_output(f"rm -r {folder}/extra {folder}/weak-updates /lib/modules/{OLD}.ppc64le")


def test_an_initramfs_that_is_older_than_a_drivers_settings_is_found(node: Node, rollout: Rollout) -> None:
    host = node("hal01")
    host.check_output("mkdir -p /etc/modprobe.d && echo blacklist nouveau >/etc/modprobe.d/nouveau.conf")
    try:
        assert "/etc/modprobe.d/nouveau.conf changed at 2" in said(rollout, INITRAMFS)
        host.check_output("dracut --force")
        assert rollout.broken_promises("base", "hal01") == []
        host.check_output("sleep 0.05; rm /etc/modprobe.d/nouveau.conf")
        assert "/etc/modprobe.d changed at 2" in said(rollout, INITRAMFS)
    finally:
        host.check_output("rm -f /etc/modprobe.d/nouveau.conf; dracut --force")


def repository_of_kernels(folder: Path, *releases: str) -> bytes:
    """Return a tar of a repository with empty packages "kernel", one for each release."""
    for release in releases:
        spec = folder / "kernel.spec"
        spec.write_text(
            f"Name: kernel\nVersion: 4.18.0\nRelease: {release}\nSummary: none\nLicense: none\nBuildArch: noarch\n"
            "%description\nnone\n%files\n"
        )
        subprocess.run(
            ["rpmbuild", "-bb", "--quiet", f"--define=_topdir {folder}", f"--define=_rpmdir {folder}/kernels", spec],
            check=True,
            capture_output=True,
        )
    subprocess.run(["createrepo_c", "--quiet", folder / "kernels"], check=True)
    return subprocess.run(["tar", "-cz", "-C", folder, "kernels"], check=True, capture_output=True).stdout


def test_of_two_kernels_the_package_manager_installs_the_declared_one(node: Node) -> None:
    host = node("hal01")
    with tempfile.TemporaryDirectory(prefix="hal-kernels-", dir="/tmp") as folder:  # rpmbuild takes no blanks in a path
        put(host, repository_of_kernels(Path(folder), "80.7.2.el7", "193.el7"), "/srv/kernels.tar.gz")
    host.check_output("tar -xz -C /srv -f /srv/kernels.tar.gz")
    ask = "dnf --repofrompath=kernels,file:///srv/kernels --repo=kernels --nogpgcheck --assumeno"
    try:
        # Nothing is installed: dnf says what it would do, and ends as somebody who said no.
        assert "80.7.2.el7" in host.run(f"{ask} install kernel").stdout
        refused = host.run(f"{ask} install kernel-4.18.0-193.el7")
        assert "Unable to find a match: kernel-4.18.0-193.el7" in refused.stderr
        assert "193.el7" in host.run(f"{ask} --noplugins install kernel").stdout
    finally:
        host.check_output("rm -r /srv/kernels /srv/kernels.tar.gz")
