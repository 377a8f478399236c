"""Images on the server: published whole, listed by their age, pruned, and never one that is still needed."""

from __future__ import annotations

import importlib
import json
import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.provision.images import MANIFEST, public_key
from tests.unit.roles.provision_server import reimages
from tests.unit.roles.provision_server.refusals import Problem, problem
from tests.unit.roles.provision_server.sealed import WHEN, flip, image, provision_images


class Shelf:
    """The folder of published images on the server, as the program sees it."""

    def __init__(self, folder: Path, key: Path) -> None:
        self.folder, self.key = folder / "www", key
        self.folder.mkdir()
        (folder / "armed").mkdir()
        (folder / "records").mkdir()
        self.place: Any = SimpleNamespace(
            state=str(folder), images=str(self.folder), key=str(public_key(key)), keep=2,
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
    with pytest.raises(Problem, match=r"compute-1-ppc64le: notes is not part of an image; it has manifest\.json, "):
        provision_images.publish(shelf.place, str(folder))
    (folder / "notes").unlink()
    root = (folder / "rootfs.tar.xz").rename(tmp_path / "elsewhere")
    root.chmod(0o600)
    (folder / "rootfs.tar.xz").symlink_to(root)
    with pytest.raises(Problem, match=r"compute-1-ppc64le: rootfs\.tar\.xz is not a regular file"):
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


def test_the_command_says_what_it_removed(shelf: Shelf) -> None:
    """hal-provision prune, by the program's own words."""
    for version in "123":
        shelf.publish(version, int(version))
    program: Any = importlib.import_module("provision_cli")
    assert program.run(shelf.place, program._parser().parse_args(["prune"])) == "compute-1-ppc64le: removed"
    assert shelf.there() == ["compute-2-ppc64le", "compute-3-ppc64le"]


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
