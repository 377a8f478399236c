"""Which version is the default, what becomes of one that is retired, and what nobody declared."""

from __future__ import annotations

import os

import pytest

from tests.unit.roles.datasets.conftest import Server, Site

pytestmark = pytest.mark.root  # who alone moves a folder that nobody may write

SMALL = {"train/a.bin": b"a" * 3000, "train/größe b.bin": b"b" * 2000, "labels.txt": b"1 2 3\n", "empty": b""}


def test_default_moves_to_the_version_that_is_declared(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "digits")
    site.declare(SMALL, source=server.url, default=False)
    site.declare(SMALL, source=server.url, version="2.0")
    assert "cannot be the default yet" in site.refused("default", "digits")
    site.done("stage", "digits/2.0")
    assert os.readlink(site.root / "digits/default") == "2.0"
    assert (site.root / "digits/1.0/empty").exists(), "the former version stays"
    site.declare(SMALL, source=server.url, version="2.0", default=False)
    site.declare(SMALL, source=server.url)
    site.done("default", "digits")
    assert os.readlink(site.root / "digits/default") == "1.0"


def test_a_published_version_that_is_staged_again_is_the_default_as_declared(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "digits")
    (site.root / "digits/default").unlink()
    assert "is published already" in site.done("stage", "digits")
    assert os.readlink(site.root / "digits/default") == "1.0"


def test_a_retired_version_is_moved_aside_and_erased_only_by_its_code(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    site.done("stage", "digits")
    assert "is not declared as retired" in site.refused("retire", "digits/1.0")
    site.declare(SMALL, source=server.url, retired="use 2.0", default=False)
    site.declare(SMALL, source=server.url, version="2.0")
    assert "publish the new default first" in site.refused("retire", "digits/1.0")
    site.done("stage", "digits/2.0")
    site.done("retire", "digits/1.0")
    assert not (site.root / "digits/1.0").exists()
    assert (site.root / "digits/1.0.retired.txt").read_text() == "digits/1.0 was retired: use 2.0\n"
    assert site.state()["state"] == "retired"
    assert "is retired: use 2.0" in site.refused("stage", "digits/1.0")

    assert "named in full" in site.refused("remove", "digits")
    assert "is published: retire it first" in site.refused("remove", "digits/2.0")
    said = site.call("remove", "digits/1.0")
    assert "4 files, 5.0 kB, would be erased" in said.stdout
    code = said.stderr.split("--confirm ")[1].strip()
    assert "nothing was erased" in site.refused("remove", "digits/1.0", "--confirm", "00000000")
    assert (site.hidden / "digits/1.0/retired/empty").exists()
    site.done("remove", "digits/1.0", "--confirm", code)
    assert site.state()["state"] == "not staged"

    # Declared again: it comes again.
    site.declare(SMALL, source=server.url, default=False)
    site.done("stage", "digits/1.0")
    assert not (site.root / "digits/1.0.retired.txt").exists()


def test_a_retired_version_that_is_declared_again_does_not_come_twice(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url, default=False)
    site.done("stage", "digits/1.0")
    site.declare(SMALL, source=server.url, retired="a mistake", default=False)
    site.done("retire", "digits/1.0")
    site.declare(SMALL, source=server.url)
    server.asked = []
    site.done("stage", "digits/1.0")
    assert server.asked == []


def test_what_is_not_declared_is_named(site: Site, server: Server) -> None:
    server.files = SMALL
    site.declare(SMALL, source=server.url)
    assert "imagenet is not declared in datasets_standard; declared: digits/1.0" in site.refused("stage", "imagenet")
    assert "declared: digits/1.0" in site.refused("stage", "digits/9")
    site.done("stage", "digits")
    (site.root / "digits" / "0.9").mkdir()
    (site.root / "mine").mkdir()
    assert '"digits/0.9",' in site.done("status")
    assert '"mine"' in site.done("status")
