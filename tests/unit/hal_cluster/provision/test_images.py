"""Images: made and signed by the controller, and checked there and on the server."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import MANIFEST, SIGNATURE, Manifest, check, make_key, public_key, sign, signed, stamp
from tests.unit.roles.provision_server.refusals import Problem
from tests.unit.roles.provision_server.sealed import WHEN, flip, image, provision_images


def test_the_private_key_is_the_owners_and_made_once(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    assert not make_key(key)
    assert key.read_bytes() == before
    assert b"PRIVATE" not in public_key(key).read_bytes()


def test_an_image_says_what_it_is(tmp_path: Path, key: Path) -> None:
    folder = image(tmp_path / "i", key)
    manifest = check(folder, public_key(key), arch="ppc64le", kernel="4.18.0-80.7.2.el7")
    assert folder.name == "compute-20261122-ppc64le"
    assert manifest.packages == ("bash-4.2.46-33.el7.ppc64le", "kernel-4.18.0-80.7.2.el7.ppc64le")
    assert manifest.created == "2026-11-22T10:00:00Z"
    assert sorted(os.listdir(folder)) == [MANIFEST, SIGNATURE, "rootfs.tar.xz"]
    assert provision_images.check(str(folder), str(public_key(key)))["sha256"] == manifest.sha256


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def other_version(folder: Path) -> None:
    data = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**data, "sha256": "00" * 32}))


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (lambda folder: flip(folder / "rootfs.tar.xz"), "rootfs.tar.xz is damaged: its sha256"),
    "truncated": (lambda folder: truncate(folder / "rootfs.tar.xz"), "bytes, and 8008 were signed"),
    "root away": (lambda folder: (folder / "rootfs.tar.xz").unlink(), "has 0 bytes, and 8008 were signed"),
    "manifest changed": (lambda folder: flip(folder / MANIFEST), "is not signed by this site's key"),
    "manifest of another": (other_version, "is not signed by this site's key"),
    "signature damaged": (lambda folder: flip(folder / SIGNATURE), "is not signed by this site's key"),
    "signature empty": (lambda folder: (folder / SIGNATURE).write_bytes(b""), "is not signed by this site's key"),
    "unsigned": (lambda folder: (folder / SIGNATURE).unlink(), "manifest.json.sig"),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "manifest.json"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_image_is_refused_in_one_line_by_both_who_check(tmp_path: Path, key: Path, fault: str) -> None:
    folder = image(tmp_path / "i", key)
    assert check(folder, public_key(key))  # it was right before
    plant, said = FAULTS[fault]
    plant(folder)
    for refused in (refusal_here(folder, public_key(key)), refusal_there(folder, public_key(key))):
        assert said in refused
        assert "\n" not in refused
        assert "compute-20261122-ppc64le" in refused


def refusal_here(folder: Path, key: Path, **more: Any) -> str:
    with pytest.raises(ProvisionError) as refused:
        check(folder, key, **more)
    return str(refused.value)


def refusal_there(folder: Path, key: Path, **more: Any) -> str:
    with pytest.raises(Problem) as refused:
        provision_images.check(str(folder), str(key), **more)
    return str(refused.value)


def test_an_image_of_another_key_or_machine_or_kernel_is_refused(tmp_path: Path, key: Path) -> None:
    make_key(tmp_path / "other")
    folder = image(tmp_path / "i", tmp_path / "other")
    for refused in (refusal_here(folder, public_key(key)), refusal_there(folder, public_key(key))):
        assert "compute-20261122-ppc64le: the manifest is not signed by this site's key" in refused
    mine = public_key(tmp_path / "other")
    for refused in (refusal_here(folder, mine, arch="x86_64"), refusal_there(folder, mine, arch="x86_64")):
        assert refused == "compute-20261122-ppc64le: is for ppc64le, and x86_64 is needed"
    assert "has kernel 4.18.0-80.7.2.el7, and 4.14.0" in refusal_here(folder, mine, kernel="4.14.0")


def test_an_old_image_under_a_new_name_is_refused(tmp_path: Path, key: Path) -> None:
    folder = image(tmp_path / "i", key)
    renamed = folder.rename(folder.with_name("compute-20270101-ppc64le"))
    for refused in (refusal_here(renamed, public_key(key)), refusal_there(renamed, public_key(key))):
        assert refused == "compute-20270101-ppc64le: the manifest is of compute-20261122-ppc64le"


def test_a_signed_thing_that_is_no_manifest_is_refused(tmp_path: Path, key: Path) -> None:
    from hal_cluster.provision import images

    folder = tmp_path / "compute-1-ppc64le"
    folder.mkdir()
    later = b'{"format": 2}'
    for content, said in ((b"[]", "no manifest"), (later, "has format 2; this toolkit reads 1"), (b"{", "no manifest")):
        (folder / MANIFEST).write_bytes(content)
        (folder / SIGNATURE).write_bytes(images._sign(key, content))
        with pytest.raises(ProvisionError, match=said):
            signed(folder, public_key(key))
        assert refusal_there(folder, public_key(key)).startswith(("compute-1-ppc64le", str(folder)))


def test_what_is_no_image_is_not_sealed(tmp_path: Path, key: Path) -> None:
    for changes, said in (
        ({"packages": []}, "no packages; an image without any is none"),
        ({"arch": "arm64"}, "the architecture ppc64le or x86_64"),
        ({"version": "../1"}, "write name and version in small letters"),
    ):
        with pytest.raises(ProvisionError, match=said):
            image(tmp_path / "i", key, **changes)
    image(tmp_path / "i", key)
    with pytest.raises(ProvisionError, match="is there already; a changed image is a new version"):
        image(tmp_path / "i", key)
    key_of_all = tmp_path / "k"
    make_key(key_of_all)
    key_of_all.chmod(0o644)
    with pytest.raises(ProvisionError, match="others may read it; chmod 600"):
        image(tmp_path / "j", key_of_all)
    assert not (tmp_path / "j" / "compute-20261122-ppc64le").exists()


def test_a_root_on_another_machine_is_signed_by_its_sum(tmp_path: Path, key: Path) -> None:
    content = b"the root" * 1000
    made = Manifest(
        name="ac922", version="20261122.101500", arch="ppc64le", kernel="4.18.0-80.7.2.el7", file="rootfs.tar.gz",
        size=len(content), sha256=hashlib.sha256(content).hexdigest(), packages=("bash-1-1.ppc64le",),
        created=stamp(WHEN), made_from={"commit": "abc"},
    )  # fmt: skip
    folder = sign(made, tmp_path, key)
    assert sorted(os.listdir(folder)) == [MANIFEST, SIGNATURE]
    (folder / "rootfs.tar.gz").write_bytes(content)
    assert check(folder, public_key(key)) == made
    assert provision_images.check(str(folder), str(public_key(key)))["made_from"] == {"commit": "abc"}
    (folder / "rootfs.tar.gz").write_bytes(content[::-1])
    assert "is damaged" in refusal_here(folder, public_key(key))
    with pytest.raises(ProvisionError, match="is there already; a changed image is a new version"):
        sign(made, tmp_path, key)
    for changes, said in (
        ({"sha256": "0"}, "are of no file"),
        ({"size": 0}, "are of no file"),
        ({"size": "8"}, "are of no file"),
        ({"file": "../x.tar.gz"}, "is none of rootfs"),
        ({"packages": ()}, "no packages; an image without any is none"),
        ({"version": "x"}, "write name and version in small letters"),
    ):
        with pytest.raises(ProvisionError, match=said):
            sign(replace(made, **changes), tmp_path / "other", key)
    assert not (tmp_path / "other").exists()
