"""A provisioning server in a folder, with a signed image and the site's authorities."""

from __future__ import annotations

import itertools
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import pytest

from hal_cluster.certificates.authority import Authority
from hal_cluster.provision.images import make_key, public_key, seal
from tests.unit.authority import make
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.hal_cluster.reimage.asking import Desk, Server
from tests.unit.roles.provision_server.test_store import settings_of

KERNEL = "4.18.0-80.7.2.el7"


@pytest.fixture(scope="session")
def image_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private key that signs images."""
    path = tmp_path_factory.mktemp("keys") / "image_key"
    assert make_key(path)
    return path


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authorities of a site as playbooks/authorities.yml leaves them."""
    folder = tmp_path_factory.mktemp("state") / "ca"
    make(folder)
    for name in ("host_ca", "user_ca"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(words, check=True)
    Authority(folder).build()
    return folder


class Publish(Protocol):
    """Publishes an image on the server."""

    def __call__(self, version: str, *, key: Path = ..., **changes: Any) -> Path:
        """Return its folder; ``changes`` are of what it says of itself."""


@pytest.fixture
def publish(tmp_path: Path, image_key: Path) -> Publish:
    """How images come to the server."""

    moments = itertools.count(1_795_370_400)

    def seal_one(version: str, *, key: Path = image_key, **changes: Any) -> Path:
        root = tmp_path / "root.tar.xz"
        root.write_bytes(b"root of " + version.encode() * 100)
        given = {"name": "ac922", "version": version, "arch": "ppc64le", "kernel": KERNEL} | changes
        given["created"] = datetime.fromtimestamp(next(moments), timezone.utc)
        (tmp_path / "images").mkdir(exist_ok=True)
        return seal(root, tmp_path / "images", key, packages=["bash-1-1.ppc64le"], **given)

    return seal_one


@pytest.fixture
def server(tmp_path: Path, image_key: Path) -> Server:
    """The server's programs, with no image and nobody's record."""
    settings = settings_of(tmp_path, [node(f"hal{at:02}", at) for at in range(1, 9)])
    (tmp_path / "image_key.pem").write_bytes(public_key(image_key).read_bytes())
    return Server(settings)


@pytest.fixture
def desk(tmp_path: Path, server: Server, publish: Publish, authority: Path, image_key: Path) -> Desk:
    """An administrator's desk, with one image on the server."""
    publish("20261122")
    return Desk(tmp_path, server, authority, public_key(image_key), *(f"hal{at:02}" for at in range(1, 9)))
