"""Solve specs against channels with rattler, conda's algorithm.

Of a package only the first channel that has it is looked at ("strict"; conda's documentation, "Managing channels"):
a newer build in a channel behind it never replaces one that was made to fit.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hal_cluster.environments import channel
from hal_cluster.environments.errors import HalEnvironmentsError
from hal_cluster.environments.lock import Lock, Package
from hal_cluster.environments.specs import Specs

if TYPE_CHECKING:
    from rattler import MatchSpec, PackageRecord, RepoDataRecord


def lock(asked: Specs, places: Mapping[str, str], kept: Lock | None = None) -> Lock:
    """Return the solution. `places`: where channels are read, by alias, if elsewhere; `kept`: stays where it can.

    Raises HalEnvironmentsError: cannot be read, no solution, a package without checksum.
    """
    from rattler import (
        Channel,
        ChannelPriority,
        GenericVirtualPackage,
        MatchSpec,
        PackageName,
        SparseRepoData,
        Version,
        solve_with_sparse_repodata,
    )

    read_at = {alias: places.get(alias, url).rstrip("/") for alias, url in asked.channels.items()}

    async def run(indexes: Mapping[tuple[str, str], Path]) -> list[RepoDataRecord]:
        # With whole indexes: the gateway leaves out what a spec excludes, and then the next channel is taken.
        return await solve_with_sparse_repodata(
            specs=[MatchSpec(words) for words in asked.specs],
            sparse_repodata=[
                SparseRepoData(Channel(read_at[alias]), subdir, path) for (alias, subdir), path in indexes.items()
            ],
            virtual_packages=[GenericVirtualPackage(PackageName(n), Version(v), "0") for n, v in asked.virtual.items()],
            channel_priority=ChannelPriority.Strict,
            locked_packages=[record_of(package, read_at) for package in kept.packages.values()] if kept else None,
        )

    with tempfile.TemporaryDirectory(prefix="hal-environments-") as folder:
        indexes = {}
        for alias, url in read_at.items():
            for subdir in (asked.platform, "noarch"):
                indexes[alias, subdir] = Path(folder, f"{alias}-{subdir}.json")
                indexes[alias, subdir].write_bytes(channel.fetch(url, subdir))
        try:
            records = asyncio.run(run(indexes))
        except Exception as error:  # rattler's errors have no common root
            raise HalEnvironmentsError(f"cannot be solved: {error}") from None
    packages = {package.name: package for package in (_package(record, read_at) for record in records)}
    return Lock(asked, packages)


def unsatisfied(locked: Lock) -> list[tuple[str, str]]:
    """Return (package, what is wrong) for each dependency that nothing locked satisfies, and each spec."""
    from rattler import MatchSpec, PackageRecord

    records = {name: _record(package) for name, package in locked.packages.items()}
    for name, version in locked.asked.virtual.items():
        records[name] = PackageRecord(name=name, version=version, build="0", build_number=0, subdir="noarch")
    wrong: list[tuple[str, str]] = []
    for package in locked.packages.values():
        wrong += [(package.name, f"needs {words}") for words in _unmet(package.depends, records, MatchSpec)]
    wrong += [("", f"spec {words}") for words in _unmet(locked.asked.specs, records, MatchSpec)]
    return wrong


def _unmet(wanted: Iterable[str], records: Mapping[str, PackageRecord], make: type[MatchSpec]) -> Iterable[str]:
    for words in wanted:
        try:
            spec = make(words)
        except Exception as error:  # rattler's errors have no common root
            yield f"{words}, which is not a spec: {error}"
            continue
        name = str(spec.name.normalized if hasattr(spec.name, "normalized") else spec.name)
        record = records.get(name)
        if record is None:
            yield f"{words}: nothing is locked of that name"
        elif not spec.matches(record):
            yield f"{words}: locked is {record.version} {record.build}"


def _package(record: RepoDataRecord, read_at: Mapping[str, str]) -> Package:
    name = str(record.name.normalized)
    if record.sha256 is None or not record.size:
        raise HalEnvironmentsError(
            f"{name}: {record.url} has no sha256 or no size in its channel's index; ask its maker"
        )
    urls: Sequence[str] = [alias for alias, url in read_at.items() if str(record.url).startswith(url + "/")]
    if not urls:
        raise HalEnvironmentsError(f"{name}: {record.url} is below none of the declared channels")
    kind = record.noarch
    noarch = "python" if kind.python else "generic" if kind.generic else ""
    return Package(
        name, str(record.version), record.build, record.build_number, urls[0], record.subdir, record.file_name,
        int(record.size), record.sha256.hex(), record.license or "", tuple(sorted(record.depends)), noarch,
    )  # fmt: skip


def _record(package: Package) -> PackageRecord:
    from rattler import PackageRecord

    return PackageRecord(
        name=package.name, version=package.version, build=package.build, build_number=package.number,
        subdir=package.subdir, depends=list(package.depends), sha256=bytes.fromhex(package.sha256), size=package.size,
    )  # fmt: skip


def record_of(package: Package, read_at: Mapping[str, str]) -> RepoDataRecord:
    """Return a locked package as the solver takes what should stay; its channel may be gone from the specs."""
    from rattler import RepoDataRecord

    base = read_at.get(package.channel, next(iter(read_at.values())))
    url = f"{base}/{package.subdir}/{package.file}"
    if url.startswith("/"):
        url = "file://" + url
    return RepoDataRecord(package_record=_record(package), file_name=package.file, url=url, channel=base)
