"""Two small repositories of real packages, and a site that installs from them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

from testing.small_packages import Key, Workshop, index  # noqa: E402  found through the lines above

from hal_cluster.packages.declared import Nodes, Origin, Repository, Site  # noqa: E402
from hal_cluster.packages.lock import Lock, LockFile, dump, load  # noqa: E402
from hal_cluster.packages.metadata import AtHand, gather  # noqa: E402
from hal_cluster.packages.resolve import lock, repositories_of  # noqa: E402

LIBRARY_BYTES = 200_000


@dataclass(frozen=True)
class World:
    """Folders of the repositories `base` and `extra`, and the keys that signed them."""

    folder: Path
    key: Key
    stranger: Key
    workshop: Workshop

    @property
    def places(self) -> dict[str, str]:
        """For --from."""
        return {name: str(self.folder / name) for name in ("base", "extra")}

    def repository(self, name: str, *exclude: str) -> Repository:
        """As a node has it."""
        return Repository(name, f"http://archive.example/{name}", (("site", self.key.fingerprint),), exclude)

    def site(self, *names: str, arch: str = "x86_64", repositories: tuple[str, ...] = ("base",)) -> Site:
        """Two nodes that install names."""
        origins = {name: (Origin("roles/tool/tasks/install.yml", 2, "tool"),) for name in names}
        used = tuple(self.repository(name) for name in repositories)
        return Site((Nodes(arch, used, origins, ["hal01", "hal02"]),), None)

    def metadata(self, site: Site, folder: Path) -> AtHand:
        """Read from the folders."""
        wanted = {key: one.url for key, one in repositories_of(site).items()}
        names = {name for name, _ in wanted}
        return gather(wanted, {name: place for name, place in self.places.items() if name in names}, folder)

    def lock(self, site: Site, folder: Path) -> Lock:
        """What `hal-packages lock` makes."""
        return lock(site, self.metadata(site, folder), ["/bin/sh"])

    def lock_file(self, made: Lock, folder: Path) -> LockFile:
        """The same, written and read again."""
        path = folder / "packages.lock.yml"
        path.write_text(dump(made))
        return load(path)


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """Made once; about ten seconds on a slow machine."""
    with tempfile.TemporaryDirectory(prefix="hal-world-", dir="/tmp") as work:
        workshop = Workshop(Path(work) / "w")
        world = World(Path(work), workshop.key("site"), workshop.key("stranger"), workshop)
        base, extra = world.folder / "base", world.folder / "extra"
        libs = "Provides: tool-api = 2"
        workshop.package("tool", base, world.key, "Requires: tool-libs", arch="x86_64", version="1.2")
        workshop.package("tool-libs", base, world.key, libs, arch="x86_64", filler_bytes=LIBRARY_BYTES)
        workshop.package("rival", base, world.key, "Conflicts: tool", arch="x86_64")
        workshop.package("orphan", base, world.key, "Requires: nowhere", arch="x86_64")
        workshop.package("strange", base, world.stranger, arch="x86_64")
        workshop.package("unsigned", base, None, arch="x86_64")
        workshop.package("tool", extra, world.key, arch="x86_64", version="9.0")
        for folder in (base, extra):
            index(folder)
        yield world
        workshop.close()
