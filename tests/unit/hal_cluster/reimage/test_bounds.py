"""What the server or a node says that is too much: Trouble in one line, and nothing of it is on the controller."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hal_cluster.provision.images import public_key
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.nodes import Ssh
from hal_cluster.reimage.remote import MOST_SAID, Done, done_of
from hal_cluster.reimage.server import Records, published
from hal_inventory.bounded import MOST_ANSWER
from tests.unit.hal_cluster.audit.bombs import INFLATED, archived, nested, refused, within
from tests.unit.hal_cluster.reimage.asking import Server
from tests.unit.hal_cluster.reimage.conftest import Publish

FOLDER = "ac922-1-ppc64le"
UNREADABLE = "images in /images on the provisioning server cannot be read"


def test_what_a_command_prints_is_read_to_a_length(tmp_path: Path) -> None:
    assert MOST_SAID >= MOST_ANSWER
    assert done_of("hal05", 3, b"out \xff", "err") == Done(3, "out \N{REPLACEMENT CHARACTER}", "err")
    assert done_of("hal05", 0, b"a" * MOST_SAID, b"").status == 0
    for out, err in ((b"a" * (MOST_SAID + 1), b""), ("", "a" * (MOST_SAID + 1))):
        said = refused(lambda out=out, err=err: done_of("hal05", 0, out, err), Trouble)  # type: ignore[misc]
        assert said == "hal05: it printed more than 32 MiB: not read"


@pytest.mark.parametrize("levels", [51, 900, 1_000_000])
def test_records_that_are_nested_too_deeply_are_no_answer(server: Server, levels: int) -> None:
    server.says[("hal-reimage",)] = Done(0, nested(levels).decode())
    said = refused(lambda: Records(server).read("hal05"), Trouble)
    assert said == "hal-reimage read on the provisioning server printed no answer that can be read"


def archive(**members: tarfile.TarInfo) -> str:
    """A tar as the server sends it, of members without content."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as tar:
        for member in members.values():
            tar.addfile(member, io.BytesIO(b"{}" * (member.size // 2)))
    return base64.b64encode(into.getvalue()).decode()


def said_by(server: Server, text: str, *names: str) -> Server:
    """A server that has these images, and sends this."""
    server.says[("hal-provision", "images")] = Done(0, json.dumps({"images": names or [FOLDER]}))
    server.says[("/bin/sh",)] = Done(0, text)
    return server


def holes() -> str:
    """A file of INFLATED bytes that are nowhere: a tar of some hundred bytes."""
    block = bytearray(512)
    parts = {0: f"{FOLDER}/manifest.json", 100: "0000644\0", 108: "0000000\0", 116: "0000000\0", 124: f"{0:011o}\0"}
    parts |= {136: f"{0:011o}\0", 156: "S", 257: "ustar  \0", 386: f"{INFLATED:011o}\0", 398: f"{0:011o}\0"}
    for at, part in {**parts, 483: f"{INFLATED:011o}\0", 148: " " * 8}.items():
        block[at : at + len(part)] = part.encode()
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return base64.b64encode(bytes(block) + bytes(1024)).decode()


def test_images_that_are_packed_or_have_holes_are_not_unpacked(server: Server, image_key: Path, tmp_path: Path) -> None:
    key = public_key(image_key)
    bomb = base64.b64encode(archived(f"{FOLDER}/manifest.json")).decode()
    assert refused(lambda: published(said_by(server, bomb), "/images", key), Trouble) == UNREADABLE
    text = holes()
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text))) as tar:
        (member,) = tar.getmembers()
        assert (member.issparse(), member.size) == (True, INFLATED)
    with within():
        assert published(said_by(server, text), "/images", key) == []


@pytest.mark.parametrize("name", ["../{}", "/tmp/{}", "..", ".", "", "a/b", "a\0b"])
def test_the_name_of_an_image_leads_nowhere(
    server: Server, image_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = name.format(FOLDER)
    member = tarfile.TarInfo(f"{name}/manifest.json".replace("\0", ""))
    member.size = 2
    before = sorted(tmp_path.rglob("*"))
    assert published(said_by(server, archive(one=member), name), "/images", public_key(image_key)) == []
    assert sorted(tmp_path.rglob("*")) == before
    assert not [words for words in server.asked if words[0] == "/bin/sh"]


def test_a_link_or_a_folder_in_place_of_a_manifest_is_none(server: Server, image_key: Path) -> None:
    link, folder = tarfile.TarInfo(f"{FOLDER}/manifest.json"), tarfile.TarInfo(f"{FOLDER}/manifest.json.sig")
    link.type, link.linkname, folder.type = tarfile.SYMTYPE, "/etc/shadow", tarfile.DIRTYPE
    text = archive(link=link, folder=folder)
    assert published(said_by(server, text), "/images", public_key(image_key)) == []


def test_images_of_an_honest_server_are_read(server: Server, publish: Publish, image_key: Path, tmp_path: Path) -> None:
    publish("1")
    found = published(server, str(tmp_path / "images"), public_key(image_key))
    assert [one.folder for one in found] == [FOLDER]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (lambda: Done(0, "8f7c\n"), "8f7c"),
        (lambda: Done(0, "x" * 5000), "x" * 100),
        (lambda: done_of("hal05", 0, b"x" * (MOST_SAID + 1), b""), ""),
        (lambda: Done(1, "8f7c\n"), ""),
    ],
    ids=["honest", "long", "bomb", "failed"],
)
def test_of_a_boot_s_own_text_no_more_is_kept_than_it_has(said: Callable[[], Done], kept: str) -> None:
    assert Ssh({}, lambda node: lambda argv, stdin=b"": said(), "cat").boot_id("hal05") == kept
