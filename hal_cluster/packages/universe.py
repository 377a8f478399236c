"""Packages of repositories as libsolv sees them, the resolver that dnf uses: selection, closure, conflicts."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import solv

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.repodata import Metadata

# How `yum install` understands a name: of a package, with version or architecture, or something that one provides.
BY_NAME = (
    solv.Selection.SELECTION_NAME
    | solv.Selection.SELECTION_CANON
    | solv.Selection.SELECTION_DOTARCH
    | solv.Selection.SELECTION_GLOB
)
BY_PROVIDES = solv.Selection.SELECTION_PROVIDES | solv.Selection.SELECTION_FILELIST
GIVEN = "given"


@dataclass(frozen=True, order=True)
class Found:
    """A package in a repository's metadata."""

    repository: str
    name: str
    version: str
    arch: str
    file: str
    size: int
    sha256: str
    header_end: int


@dataclass(frozen=True)
class Solution:
    """What an installation needs, all included, or why it cannot be."""

    packages: frozenset[Found]
    problems: tuple[str, ...]


class Universe:
    """All packages that nodes of one architecture can see."""

    def __init__(self, arch: str, given: Iterable[str] = ()) -> None:
        """`given`: capabilities that nodes have without a package of these repositories."""
        self._pool = solv.Pool()
        self._pool.setarch(arch)
        self._ready = False
        self._found: dict[int, Found] = {}
        installed = self._pool.add_repo(GIVEN).add_solvable()
        installed.name, installed.evr, installed.arch = GIVEN, "0-0", "noarch"
        for capability in given:
            installed.add_deparray(solv.SOLVABLE_PROVIDES, self._pool.Dep(capability))

    def add(self, repository: str, metadata: Metadata) -> None:
        """Take a repository's packages in."""
        repo = self._pool.add_repo(repository)
        for kind, language, flags in (("primary", None, 0), ("filelists", "FL", solv.Repo.REPO_EXTEND_SOLVABLES)):
            stream = solv.xfopen(str(metadata.files[kind]))
            if not stream or not repo.add_rpmmd(stream, language, flags):
                raise HalPackagesError(f"{metadata.place}: {kind} cannot be read: {self._pool.errstr}")
        for solvable in repo.solvables:
            self._found[solvable.id] = _found(repository, solvable, metadata.place)
        self._ready = False

    @property
    def packages(self) -> Collection[Found]:
        """Every package."""
        return self._found.values()

    def install(self, names: Sequence[str], usable: Collection[Found]) -> Solution:
        """Solve the installation of names, on an empty system, with `usable` packages only."""
        self._prepare(usable)
        jobs = []
        problems = []
        for name in names:
            selected = self._select(name)
            if selected.isempty():
                problems.append(f"nothing provides {name}")
            jobs += selected.jobs(solv.Job.SOLVER_INSTALL)
        solver = self._pool.Solver()
        for problem in solver.solve(jobs):
            problems += sorted({str(rule.info().problemstr()) for rule in problem.findallproblemrules()})
        if problems:
            return Solution(frozenset(), tuple(dict.fromkeys(problems)))
        chosen = {solvable.id for solvable in solver.transaction().newsolvables()}
        return Solution(frozenset(self._found[number] for number in chosen if number in self._found), ())

    def providers(self, name: str, among: Collection[Found]) -> list[Found]:
        """Return the packages that a declared name may mean."""
        self._prepare(among)
        ids = {solvable.id for solvable in self._select(name).solvables()}
        return sorted(self._found[number] for number in ids if number in self._found)

    def _select(self, name: str) -> Any:
        selected = self._pool.select(name, BY_NAME)
        return self._pool.select(name, BY_PROVIDES) if selected.isempty() else selected

    def _prepare(self, usable: Collection[Found]) -> None:
        if not self._ready:
            self._pool.addfileprovides()
            self._pool.createwhatprovides()
            self._ready = True
        wanted = set(usable)
        outside = {number for number, package in self._found.items() if package not in wanted}
        self._pool.set_considered_list([solvable.id for solvable in self._pool.solvables if solvable.id not in outside])


def without(packages: Iterable[Found], excluded: dict[str, Sequence[str]]) -> list[Found]:
    """Return packages but for those that a repository's `exclude` hides from nodes (shell patterns on names)."""
    return [
        package
        for package in packages
        if not any(fnmatch.fnmatchcase(package.name, pattern) for pattern in excluded.get(package.repository, ()))
    ]


def _found(repository: str, solvable: Any, place: str) -> Found:
    checksum = solvable.lookup_checksum(solv.SOLVABLE_CHECKSUM)
    if checksum is None or checksum.typestr() != "sha256":
        kind = "no" if checksum is None else f"a {checksum.typestr()}"
        raise HalPackagesError(f"{place}: {solvable}: has {kind} checksum; a lock needs sha256")
    version = str(solvable.evr)
    return Found(
        repository=repository,
        name=str(solvable.name),
        version=version if ":" in version else f"0:{version}",
        arch=str(solvable.arch),
        file=str(solvable.lookup_location()[0]).removeprefix("./"),
        size=int(solvable.lookup_num(solv.SOLVABLE_DOWNLOADSIZE)),
        sha256=str(checksum.hex()),
        header_end=int(solvable.lookup_num(solv.SOLVABLE_HEADEREND)),
    )
