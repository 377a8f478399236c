"""The lock of real repositories: everything that is needed and nothing else, or a reason for each name."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.metadata import gather
from hal_cluster.packages.repodata import Metadata, obtain
from hal_cluster.packages.resolve import lock
from hal_cluster.packages.universe import Universe
from tests.unit.hal_cluster.packages.conftest import World


def test_the_closure_is_locked_with_checksums_and_keys(world: World, tmp_path: Path) -> None:
    tree = world.lock(world.site("tool"), tmp_path).repositories["base"]["x86_64"]
    assert sorted(tree.packages) == ["tool", "tool-libs"]
    tool = tree.packages["tool"]
    content = (world.folder / "base" / tool.file).read_bytes()
    assert (tool.version, tool.arch, tool.size) == ("0:1.2-1.el7", "x86_64", len(content))
    assert tool.sha256 == hashlib.sha256(content).hexdigest()
    assert tool.key == world.key.fingerprint[-16:]
    assert tree.unverified == ()


def test_a_name_that_is_provided_is_remembered(world: World, tmp_path: Path) -> None:
    tree = world.lock(world.site("tool-api"), tmp_path).repositories["base"]["x86_64"]
    assert tree.packages["tool-libs"].also == ("tool-api",)


def test_a_repository_that_hides_a_name_does_not_give_it(world: World, tmp_path: Path) -> None:
    """The newer tool of `extra` is excluded there, as EPEL's Slurm is."""
    site = world.site("tool", repositories=("base", "extra"))
    assert sorted(world.lock(site, tmp_path).repositories["extra"]["x86_64"].packages) == ["tool"]
    (nodes,) = site.nodes
    nodes.repositories = (world.repository("base"), world.repository("extra", "tool*"))
    made = world.lock(site, tmp_path).repositories
    assert made["base"]["x86_64"].packages["tool"].version == "0:1.2-1.el7"
    assert made["extra"]["x86_64"].packages == {}


@pytest.mark.parametrize(
    ("names", "arch", "words"),
    [
        (
            ["tool", "toool"],
            "x86_64",
            "hal[01-02] (x86_64): nothing provides toool (declared in roles/tool/tasks/install.yml:2)",
        ),
        (["orphan"], "x86_64", "nothing provides nowhere needed by orphan-1.0-1.el7.x86_64"),
        (
            ["tool", "rival"],
            "x86_64",
            "package rival-1.0-1.el7.x86_64 conflicts with tool provided by tool-1.2-1.el7.x86_64",
        ),
        (["tool"], "ppc64le", "hal[01-02] (ppc64le): nothing provides tool"),
        (["strange"], "x86_64", "strange-1.0-1.el7.x86_64.rpm is signed by key "),
        (["unsigned"], "x86_64", "unsigned-1.0-1.el7.x86_64.rpm is signed by nobody; signed_by: site "),
    ],
)
def test_what_cannot_be_locked_is_said(world: World, tmp_path: Path, names: list[str], arch: str, words: str) -> None:
    with pytest.raises(HalPackagesError) as raised:
        world.lock(world.site(*names, arch=arch), tmp_path)
    assert words in str(raised.value)


def test_a_repository_that_cannot_be_read_is_named(world: World, tmp_path: Path) -> None:
    site = world.site("tool")
    at_hand = gather({("base", "x86_64"): str(tmp_path / "nowhere")}, {}, tmp_path)
    with pytest.raises(HalPackagesError, match=r"base/x86_64: .*nowhere/repodata/repomd\.xml cannot be read"):
        lock(site, at_hand, [])


def test_a_place_for_a_repository_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HalPackagesError, match="--from bse: no such repository; there are base/x86_64"):
        gather({("base", "x86_64"): "http://x"}, {"bse": "/y"}, tmp_path)


def test_metadata_that_is_not_what_repomd_says_is_refused(world: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "repodata"
    copy.mkdir(parents=True)
    for path in (world.folder / "base" / "repodata").iterdir():
        content = path.read_bytes()
        (copy / path.name).write_bytes(content[:-1] if "primary.xml" in path.name else content)
    with pytest.raises(HalPackagesError, match=r"primary\.xml\S+: is not what repomd\.xml says"):
        obtain(str(tmp_path / "copy"), tmp_path)


@pytest.mark.parametrize(
    ("checksum", "words"),
    [
        ('<checksum type="sha" pkgid="YES">' + "0" * 40 + "</checksum>", "has a sha1 checksum"),
        ("", "has no checksum"),
    ],
)
def test_a_package_without_the_checksum_of_a_lock_is_refused(
    world: World, tmp_path: Path, checksum: str, words: str
) -> None:
    repodata = world.folder / "base" / "repodata"
    (primary,) = repodata.glob("*primary.xml*")
    (filelists,) = repodata.glob("*filelists.xml*")
    with gzip.open(primary, "rt") as stream:
        text = re.sub(r'<checksum type="sha256" pkgid="YES">\w+</checksum>', checksum, stream.read())
    old = tmp_path / "primary.xml"
    old.write_text(text)
    files = {"primary": old, "filelists": filelists}
    with pytest.raises(HalPackagesError) as raised:
        Universe("x86_64").add("base", Metadata("base/x86_64", "", files))
    assert re.fullmatch(rf"base/x86_64: \S+: {words}; a lock needs sha256", str(raised.value))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def served(world: World) -> Iterator[str]:
    """The folders of the world over HTTP."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(world.folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_repository_is_locked_over_http_as_from_its_folder(world: World, served: str, tmp_path: Path) -> None:
    """Only the heads of packages are fetched; rpm reads the signing key from them."""
    site = world.site("tool")
    remote = lock(site, gather({("base", "x86_64"): f"{served}/base"}, {}, tmp_path), ["/bin/sh"])
    assert remote == world.lock(site, tmp_path)
