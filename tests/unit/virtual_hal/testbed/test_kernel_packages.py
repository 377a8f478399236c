"""Kernels as packages, and the node image as one file: what an image of the virtual HAL is built from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testbed import image, kernel, kernel_packages, repository
from testbed.errors import VirtualNodesError

RELEASE = "4.18.0-80.7.2.el7"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package repository that is there; its signing key is not what this is about."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "build", lambda arch: tmp_path / "packages")
    monkeypatch.setattr(repository, "sign", lambda *_: None)
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


def query(package: Path, *words: str) -> list[str]:
    done = subprocess.run(["rpm", "-qp", "--nosignature", *words, package], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_kernel_is_a_package_with_the_files_that_nodes_have_of_it(folder: Path) -> None:
    made = kernel_packages.publish(RELEASE, "ppc64le")
    (package,) = made.glob("*.rpm")
    assert query(package) == [f"kernel-{RELEASE}.x86_64"]
    assert query(package, "--list") == sorted(f"/{path}" for path in kernel.files(RELEASE, "ppc64le"))
    assert (made / "repodata/repomd.xml").is_file()
    before = package.stat().st_mtime_ns
    kernel_packages.publish(RELEASE, "ppc64le")  # nothing is made twice
    assert package.stat().st_mtime_ns == before
    kernel_packages.publish("3.10.0-1062.el7", "x86_64")
    names = sorted(query(one)[0] for one in made.glob("*.rpm"))
    assert names == ["kernel-3.10.0-1062.el7.x86_64", f"kernel-{RELEASE}.x86_64"]
    primary = next((made / "repodata").glob("*primary.xml.*"))
    listed = subprocess.run(["zcat", "-f", primary], capture_output=True, text=True, check=True).stdout
    assert listed.count("<package ") == 2


@pytest.mark.parametrize(("release", "machine"), [("4.18.0", "ppc64le"), ("../x-1", "ppc64le"), (RELEASE, "arm64")])
def test_what_is_no_kernel_is_refused(folder: Path, release: str, machine: str) -> None:
    with pytest.raises(VirtualNodesError, match="no kernel is known as"):
        kernel_packages.publish(release, machine)
    assert list(folder.iterdir()) == []


def test_the_node_image_is_exported_once_and_older_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(image, "build", lambda arch, variant: f"localhost/hal-node:{arch}-0123")
    exported: list[str] = []

    def export(name: str, target: Path, log: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        exported.append(name)

    monkeypatch.setattr(image, "_export", export)
    (tmp_path / "image").mkdir()
    names = [
        "root-hal-node-x86_64-0000.tar.gz",
        "root-hal-node-x86_64-python2-0000.tar.gz",
        "root-hal-node-ppc64le-0000.tar.gz",
    ]
    for name in names:
        (tmp_path / "image" / name).touch()
    made = tmp_path / "image/root-hal-node-x86_64-0123.tar.gz"
    assert [image.export(), image.export()] == [made, made]
    assert exported == ["localhost/hal-node:x86_64-0123"]
    assert sorted(path.name for path in (tmp_path / "image").iterdir()) == sorted([*names[1:], made.name])
