"""Images: made and signed by the controller, checked there and on the server, published whole, pruned."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_provision.errors import ProvisionError
from hal_provision.images import MANIFEST, SIGNATURE, Manifest, check, make_key, public_key, seal, sign, signed, stamp
from tests.unit.provision import reimages

provision_images: Any = importlib.import_module("provision_images")
Problem: Any = importlib.import_module("provision_common").Problem
WHEN = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "image_key"
    assert make_key(path)
    return path


def image(into: Path, key: Path, version: str = "20261122", **changes: Any) -> Path:
    into.mkdir(exist_ok=True)
    root = into / "root.tar.xz"
    root.write_bytes(b"root of " + version.encode() * 1000)
    given: dict[str, Any] = {
        "name": "compute",
        "version": version,
        "arch": "ppc64le",
        "kernel": "4.18.0-80.7.2.el7",
        "packages": ["kernel-4.18.0-80.7.2.el7.ppc64le", "bash-4.2.46-33.el7.ppc64le"],
        "created": WHEN,
    }
    return seal(root, into, key, **(given | changes))


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


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


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
    from hal_provision import images

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


# ---------------------------------------------------------------- on the server


class Shelf:
    """The folder of published images on the server, as the program sees it."""

    def __init__(self, folder: Path, key: Path) -> None:
        self.folder, self.key = folder / "www", key
        self.folder.mkdir()
        (folder / "armed").mkdir()
        (folder / "records").mkdir()
        self.place: Any = SimpleNamespace(
            images=str(self.folder), key=str(public_key(key)), keep=2,
            names=lambda: ["hal05"], records=str(folder / "records"), path=lambda kind, name: str(folder / kind / name),
        )  # fmt: skip

    def publish(self, version: str, at: int, **changes: Any) -> Path:
        incoming = self.folder / ".incoming"
        created = {"created": WHEN + timedelta(days=at)}
        name: str = provision_images.publish(self.place, str(image(incoming, self.key, version, **created, **changes)))
        # A copy, a restore: what the file system says of its age is no one's word.
        os.utime(self.folder / name / MANIFEST, (10**9 - at, 10**9 - at))
        return self.folder / name

    def there(self) -> list[str]:
        return sorted(one for one in os.listdir(self.folder) if not one.startswith("."))


@pytest.fixture
def shelf(tmp_path: Path, key: Path) -> Shelf:
    return Shelf(tmp_path, key)


def test_publishing_shows_an_image_whole_and_never_changes_one(shelf: Shelf, key: Path) -> None:
    folder = shelf.publish("1", 1)
    assert shelf.there() == ["compute-1-ppc64le"]
    assert folder.stat().st_mode & 0o777 == 0o755
    again = image(shelf.folder / ".incoming", key, "1")
    with pytest.raises(Problem, match="compute-1-ppc64le is published; a changed image is a new version"):
        provision_images.publish(shelf.place, str(again))
    bad = image(shelf.folder / ".incoming", key, "2")
    flip(bad / "rootfs.tar.xz")
    with pytest.raises(Problem, match="is damaged"):
        provision_images.publish(shelf.place, str(bad))
    assert shelf.there() == ["compute-1-ppc64le"]
    assert provision_images.wrong(shelf.place) == {}
    flip(folder / "rootfs.tar.xz")
    assert list(provision_images.wrong(shelf.place)) == ["compute-1-ppc64le"]


def test_nothing_but_an_image_is_published(shelf: Shelf, key: Path, tmp_path: Path) -> None:
    folder = image(shelf.folder / ".incoming", key, "1")
    (folder / "notes").write_text("for nobody")
    with pytest.raises(Problem, match=r"compute-1-ppc64le: notes is no part of an image; it has manifest\.json, "):
        provision_images.publish(shelf.place, str(folder))
    (folder / "notes").unlink()
    root = (folder / "rootfs.tar.xz").rename(tmp_path / "elsewhere")
    root.chmod(0o600)
    (folder / "rootfs.tar.xz").symlink_to(root)
    with pytest.raises(Problem, match=r"compute-1-ppc64le: rootfs\.tar\.xz is no regular file"):
        provision_images.publish(shelf.place, str(folder))
    assert root.stat().st_mode & 0o777 == 0o600
    assert shelf.there() == []


def test_pruning_keeps_the_newest_of_each_kind(shelf: Shelf) -> None:
    for version in "1234":
        shelf.publish(version, int(version))
    shelf.publish("1", 1, arch="x86_64")
    assert provision_images.prune(shelf.place, 0) == ["compute-1-ppc64le", "compute-2-ppc64le"]
    assert shelf.there() == ["compute-1-x86_64", "compute-3-ppc64le", "compute-4-ppc64le"]
    assert provision_images.prune(shelf.place, 0) == []


def test_versions_may_be_in_any_order(shelf: Shelf) -> None:
    for version, at in (("9", 1), ("10", 2), ("8", 3)):
        shelf.publish(version, at)
    assert provision_images.published(shelf.place) == ["compute-9-ppc64le", "compute-10-ppc64le", "compute-8-ppc64le"]
    assert provision_images.prune(shelf.place, 0) == ["compute-9-ppc64le"]


def test_what_an_image_says_of_its_age_is_believed_when_it_is_signed(shelf: Shelf) -> None:
    for version in "123":
        shelf.publish(version, int(version))
    manifest = shelf.folder / "compute-1-ppc64le" / MANIFEST
    manifest.write_text(manifest.read_text().replace("2026-", "2099-"))
    assert provision_images.published(shelf.place)[0] == "compute-1-ppc64le"
    assert provision_images.prune(shelf.place, 0) == ["compute-1-ppc64le"]


def test_a_damaged_manifest_is_no_reason_to_keep_or_to_stop(shelf: Shelf) -> None:
    for version in "123":
        shelf.publish(version, int(version))
    (shelf.folder / "compute-1-ppc64le" / MANIFEST).write_text("{")
    assert provision_images.prune(shelf.place, 0) == ["compute-1-ppc64le"]


def test_without_the_key_every_image_is_refused_and_none_is_removed(shelf: Shelf, tmp_path: Path) -> None:
    for version in "123":
        shelf.publish(version, int(version))
    shelf.place.key = str(tmp_path / "withdrawn.pem")
    with pytest.raises(Problem, match=r"withdrawn\.pem is missing: nothing says which images are good"):
        provision_images.prune(shelf.place, 0)
    assert len(shelf.there()) == 3
    found = provision_images.wrong(shelf.place)
    assert found == {name: f"{name}: {shelf.place.key} is missing" for name in shelf.there()}


def test_pruning_never_takes_what_a_node_is_armed_with(shelf: Shelf, tmp_path: Path) -> None:
    for version in "1234":
        shelf.publish(version, int(version))
    order = {
        "what": "an image",
        "config": "",
        "files": {"kickstart.cfg": "liveimg --url=http://x/images/compute-1-ppc64le/rootfs.tar.xz"},
    }
    (tmp_path / "armed" / "hal05").write_text(json.dumps({**order, "expires": 100}))
    assert provision_images.prune(shelf.place, 99) == ["compute-2-ppc64le"]
    assert provision_images.prune(shelf.place, 100) == ["compute-1-ppc64le"]  # the order ran out


def test_pruning_never_takes_what_was_confirmed_for_a_reimage(shelf: Shelf, tmp_path: Path) -> None:
    for version in "1234":
        shelf.publish(version, int(version))
    path = tmp_path / "records/hal05.json"
    going = reimages.record()
    going["plan"]["image"]["folder"] = "compute-1-ppc64le"
    path.write_text(json.dumps(going))
    assert provision_images.prune(shelf.place, 0) == ["compute-2-ppc64le"]
    path.write_text("{")
    with pytest.raises(Problem, match=r"hal05\.json: is damaged"):
        provision_images.prune(shelf.place, 0)
    path.write_text(json.dumps({**going, "state": "failed", "reason": "x"}))  # it may be begun again
    assert provision_images.prune(shelf.place, 0) == []
    path.write_text(json.dumps({**going, "state": "done"}))
    assert provision_images.prune(shelf.place, 0) == ["compute-1-ppc64le"]


def test_pruning_keeps_the_last_good_one_however_many_damaged_are_newer(shelf: Shelf) -> None:
    for version in "1234":
        shelf.publish(version, int(version))
    for version in "34":
        flip(shelf.folder / f"compute-{version}-ppc64le" / "rootfs.tar.xz")
    assert provision_images.prune(shelf.place, 0) == ["compute-1-ppc64le"]
    assert "compute-2-ppc64le" in shelf.there()


def problem(function: Any, *words: Any) -> str:
    with pytest.raises(Problem) as refused:
        function(*words)
    return str(refused.value)


def test_what_is_shown_is_for_everybody_to_read(shelf: Shelf) -> None:
    folder = shelf.publish("1", 1)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert provision_images.check(f"{folder}/", shelf.place.key)["version"] == "1"
    (shelf.folder / "Other").mkdir()
    (shelf.folder / "empty-1-x86_64").mkdir()
    assert provision_images.published(shelf.place) == ["compute-1-ppc64le"]
    shelf.place.images += ".gone"
    said = f"{shelf.place.images}: cannot be read: No such file or directory"
    assert problem(provision_images.published, shelf.place) == said


def test_what_is_no_image_of_here_is_not_published(
    shelf: Shelf,
    key: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "Name").mkdir()
    assert problem(provision_images.publish, shelf.place, str(tmp_path / "Name")) == (
        "Name: no name for an image: small letters, digits, . _ -"
    )
    folder = image(shelf.folder / ".incoming", key, "1")
    shelf.place.images = "/proc"
    assert problem(provision_images.publish, shelf.place, str(folder)) == (
        f"{folder}: bring it into a folder of the file system of /proc, where a rename shows it at once"
    )
    assert folder.is_dir()
    monkeypatch.setenv("PATH", "/nowhere")
    assert problem(provision_images.signed, str(folder), shelf.place.key) == (
        "openssl cannot be run: No such file or directory"
    )


def test_a_manifest_that_is_signed_has_all_that_is_needed(
    tmp_path: Path,
    key: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = image(tmp_path / "i", key)
    data = provision_images.signed(str(folder), f"{key}.pem")
    for changed, said in (
        ({one: data[one] for one in data if one not in ("size", "file")}, "the manifest has no file, size"),
        ({**data, "arch": "x86_64"}, "the manifest is of compute-20261122-x86_64"),
        (
            {**data, "file": "x"},
            "the manifest names x; one of rootfs.tar.xz, rootfs.tar.gz, rootfs.tar, rootfs.squashfs is taken",
        ),
    ):
        monkeypatch.setattr(provision_images, "read_json", lambda path, changed=changed: changed)
        assert problem(provision_images.signed, str(folder), f"{key}.pem") == f"{folder.name}: {said}"
