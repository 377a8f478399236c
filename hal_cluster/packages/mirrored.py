"""What of a lock the mirror needs, as plain data for the module that makes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.lock import LockFile


def mirrored(file: LockFile, keys: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return digest, trees, keys, unverified names, and the checksum of the mirror's own list of packages.

    `keys` are repositories_keys; HalPackagesError says which of the locked keys is not among them.
    """
    lock = file.lock
    used: dict[str, dict[str, str]] = {}
    for repository, arch, tree in lock.trees():
        for name, fingerprint in tree.signed_by.items():
            declared = keys.get(name, {})
            known = str(declared.get("fingerprint", "")).replace(" ", "").upper()
            if known != fingerprint:
                line = file.line("repositories", repository, arch, "signed_by", name)
                what = known or "no fingerprint" if declared else "no key of that name"
                raise HalPackagesError(
                    f"{file.name}:{line}: key {name} is {fingerprint}, repositories_keys has {what}; "
                    "run hal-packages lock when a key was replaced"
                )
            used[name] = {"id": name, "source": str(declared["source"]), "fingerprint": fingerprint}
    trees = [
        {
            "repository": repository,
            "arch": arch,
            "url": tree.url,
            "packages": [
                package.model_dump(include={"file", "size", "sha256", "key"})
                for _, package in sorted(tree.packages.items())
            ],
        }
        for repository, arch, tree in lock.trees()
    ]
    sums = sorted(
        f"{package.sha256}  {repository}/{arch}/Packages/{PurePosixPath(package.file).name}\n"
        for repository, arch, tree in lock.trees()
        for package in tree.packages.values()
    )
    return {
        "digest": lock.digest(),
        "trees": trees,
        "keys": [used[name] for name in sorted(used)],
        "unverified": lock.unverified(),
        "sums_sha256": hashlib.sha256("".join(sums).encode()).hexdigest(),
    }
