"""The metadata that a run works with: one universe for each architecture, and which repositories are not at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.repodata import Metadata, obtain
from hal_cluster.packages.universe import Universe


@dataclass
class AtHand:
    """Metadata by (repository, architecture), and why some of it is missing."""

    known: dict[tuple[str, str], Metadata] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)

    def universe(self, arch: str, given: tuple[str, ...]) -> Universe:
        """Return the packages of an architecture."""
        universe = Universe(arch, given)
        for (repository, of), metadata in sorted(self.known.items()):
            if of == arch:
                universe.add(repository, metadata)
        return universe


def gather(
    wanted: Mapping[tuple[str, str], str], places: Mapping[str, str], folder: Path, only_given: bool = False
) -> AtHand:
    """Read the metadata of `wanted`, (repository, architecture) -> address; what cannot be read is `missing`.

    `places` says where else a repository is, by "id/architecture" or "id"; `only_given`: ask no address but these.
    """
    result = AtHand()
    for (repository, arch), url in sorted(wanted.items()):
        place = places.get(f"{repository}/{arch}", places.get(repository))
        if place is None and only_given:
            result.missing[repository, arch] = "its metadata was not given (--from)"
            continue
        kept = folder / f"{repository}-{arch}"
        kept.mkdir(parents=True, exist_ok=True)
        try:
            result.known[repository, arch] = obtain(place or url, kept)
        except HalPackagesError as error:
            result.missing[repository, arch] = str(error)
    for name in places:
        if not any(name in (repository, f"{repository}/{arch}") for repository, arch in wanted):
            known = ", ".join(f"{repository}/{arch}" for repository, arch in sorted(wanted))
            raise HalPackagesError(f"--from {name}: no such repository; there are {known}")
    return result
