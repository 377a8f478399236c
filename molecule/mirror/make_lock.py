"""Make a vendor's repository for both architectures, its conda channel, and the lock files of this scenario.

The containers are x86_64; the POWER tree is locked for a node that is not here, and only served.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT), str(PROJECT / "molecule" / "virtual_hal")]

import yaml  # noqa: E402  as the rest
from testbed import repository  # noqa: E402
from testing.small_packages import Key, Workshop, index  # noqa: E402  found through the line above

from hal_cluster.packages.declared import Nodes, Origin, Repository, Site, declared  # noqa: E402
from hal_cluster.packages.lock import Lock, dump  # noqa: E402
from hal_cluster.packages.metadata import gather  # noqa: E402
from hal_cluster.packages.resolve import lock, repositories_of  # noqa: E402

ARCHES = ("x86_64", "ppc64le")
LIBRARY_BYTES = 400_000
IMAGE_NAMES = PROJECT / "molecule/virtual_hal/image/base-rpms.txt"


def vendor(folder: Path) -> Key:
    """A tool that needs a library; beside them packages that must not get in: unsigned, and of a stranger's key."""
    with tempfile.TemporaryDirectory(prefix="hal-vendor-", dir="/tmp") as work:
        workshop = Workshop(Path(work) / "w")
        key, stranger = workshop.key("vendor"), workshop.key("stranger")
        for arch in ARCHES:
            here = folder / arch
            workshop.package("vendor-tool", here, key, "Requires: vendor-libs", arch=arch)
            workshop.package("vendor-libs", here, key, arch=arch, filler_bytes=LIBRARY_BYTES)
            index(here)
        workshop.package("vendor-unsigned", folder / "refused", None, arch="x86_64")
        workshop.package("vendor-strange", folder / "refused", stranger, arch="x86_64")
        shutil.copy(key.public, folder / "RPM-GPG-KEY-vendor")
        workshop.close()
    return key


def locked(sources: list[str], folder: Path, key: Key) -> Lock:
    """The lock of the scenario's nodes, and of a POWER node that installs the vendor's tool."""
    site = declared(sources)
    power = Nodes(
        arch="ppc64le",
        repositories=(Repository("vendor", "file:///srv/vendor/ppc64le", (("vendor", key.fingerprint),), ()),),
        names={"vendor-tool": (Origin("molecule/mirror/make_lock.py", 1, "mirror"),)},
        members=["hal02"],
    )
    whole = Site((*site.nodes, power), None)
    lines = IMAGE_NAMES.read_text().splitlines()
    given = ["/bin/sh", *(line.split()[0] for line in lines if line and not line.startswith("#"))]
    places = {"hal-packages": str(repository.location()), **{f"vendor/{arch}": str(folder / arch) for arch in ARCHES}}
    wanted = {name: one.url for name, one in repositories_of(whole).items()}
    with tempfile.TemporaryDirectory() as kept:
        return lock(whole, gather(wanted, places, Path(kept)), given)


def channel(folder: Path) -> dict[str, object]:
    """A channel with one package, whose content nobody reads here, and the lock of an environment of it."""
    content, file = b"a package of conda\n", "vendor-model-1.0-0.tar.bz2"
    (folder / "noarch").mkdir(parents=True)
    (folder / "noarch" / file).write_bytes(content)
    package = {
        "version": "1.0", "build": "0", "channel": "vendor", "subdir": "noarch", "file": file, "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(), "license": "none", "depends": [], "noarch": "python",
    }  # fmt: skip
    return {
        "format": 1,
        "platform": "linux-64",
        "channels": {"vendor": "file:///srv/vendor/channel"},
        "specs": ["vendor-model 1.0.*"],
        "packages": {"vendor-model": package},
    }


def main() -> None:
    """Fill the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    key = vendor(options.folder / "vendor")
    (options.folder / "vendor.fingerprint").write_text(key.fingerprint)
    made = locked(options.sources, options.folder / "vendor", key)
    (options.folder / "packages.lock.yml").write_text(dump(made))
    environment = channel(options.folder / "vendor" / "channel")
    (options.folder / "environment.lock.yml").write_text(yaml.safe_dump(environment))


if __name__ == "__main__":
    main()
