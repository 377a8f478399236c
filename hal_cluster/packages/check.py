"""Hold a lock against what the site declares, against repository metadata, and against the files themselves.

What cannot be checked is said, not passed: a Report with anything under ``not_checked`` is not clean.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hal_cluster.packages.declared import Nodes, Site
from hal_cluster.packages.lock import LockFile, Package, Tree
from hal_cluster.packages.metadata import AtHand
from hal_cluster.packages.resolve import repositories_of
from hal_cluster.packages.universe import Found
from hal_inventory.errors import Finding


@dataclass
class Report:
    """Faults, and what could not be looked at."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def add(self, file: LockFile, message: str, *path: str) -> None:
        """Note a fault of a field of the lock."""
        self.findings.append(Finding(file.name, file.line(*path), ".".join(path), message))

    def extend(self, other: Report) -> None:
        """Take over what another check found."""
        self.findings += other.findings
        self.not_checked += other.not_checked


def against_declared(file: LockFile, site: Site) -> Report:
    """Every declared name is locked for its nodes, in a repository that they use; addresses and keys agree."""
    report = Report()
    for nodes in site.nodes:
        usable = [
            tree for repository in nodes.repositories if (tree := file.lock.tree(repository.id, nodes.arch)) is not None
        ]
        for name, origins in nodes.names.items():
            if name in file.lock.given or any(_has(tree, name) for tree in usable):
                continue
            for origin in origins:
                report.findings.append(Finding(origin.file, origin.line, name, _missing(file, nodes, name)))
    for (repository, arch), declared in sorted(repositories_of(site).items()):
        tree = file.lock.tree(repository, arch)
        if tree is None:
            message = f"{arch} is not there; {declared.url} is declared for nodes of it"
            report.add(file, message, "repositories", repository, arch)
            continue
        if tree.url != declared.url:
            report.add(file, f"is {tree.url}, declared is {declared.url}", "repositories", repository, arch, "url")
        locked, wanted = dict(tree.signed_by), dict(declared.signed_by)
        if not all(wanted.values()):
            unknown = ", ".join(name for name, fingerprint in wanted.items() if not fingerprint)
            report.not_checked.append(f"{repository}/{arch}: the fingerprint of key {unknown} is not declared yet")
            locked, wanted = ({name: keys[name] for name in keys if wanted.get(name)} for keys in (locked, wanted))
        if locked != wanted:
            message = f"the keys are {_keys(locked)}, declared are {_keys(wanted)}"
            report.add(file, message, "repositories", repository, arch, "signed_by")
    for repository, arch, tree in file.lock.trees():
        if tree.unverified:
            names = ", ".join(tree.unverified)
            report.not_checked.append(f"{repository}/{arch}: release, checksum and signature of {names} (unverified)")
    return report


def _keys(keys: dict[str, str]) -> str:
    return ", ".join(f"{name} {fingerprint}" for name, fingerprint in sorted(keys.items())) or "none"


def _has(tree: Tree, name: str) -> bool:
    return name in tree.unverified or any(_means(name, key, package) for key, package in tree.packages.items())


def _means(name: str, key: str, package: Package) -> bool:
    """Tell whether a declared name means a package, as yum reads it: name, with version, release or architecture."""
    if name == key or name in package.also:
        return True
    version, _, release = package.version.partition(":")[2].partition("-")
    forms = [f"{key}.{package.arch}", f"{key}-{version}", f"{key}-{version}-{release}"]
    return any(fnmatch.fnmatchcase(form, name) for form in (key, *forms, f"{forms[-1]}.{package.arch}"))


def _missing(file: LockFile, nodes: Nodes, name: str) -> str:
    elsewhere = [f"{repository}/{arch}" for repository, arch, tree in file.lock.trees() if _has(tree, name)]
    where = f"{file.name} has it only for {', '.join(elsewhere)}" if elsewhere else f"{file.name} does not have it"
    advice = "run hal-packages lock, or name it there under unverified"
    return f"no package of that name for {nodes.nodeset} ({nodes.arch}): {where}; {advice}"


def against_metadata(file: LockFile, site: Site, metadata: AtHand) -> Report:
    """Locked packages are in their repositories as they were read, and are all that nodes need, without conflict."""
    report = Report()
    for (repository, arch), reason in sorted(metadata.missing.items()):
        report.not_checked.append(f"{repository}/{arch}: releases, checksums, closure and conflicts: {reason}")
    for arch in sorted({nodes.arch for nodes in site.nodes}):
        universe = metadata.universe(arch, file.lock.given)
        offered = {(offer.repository, offer.file): offer for offer in universe.packages}
        locked: set[Found] = set()
        for repository, of, tree in file.lock.trees():
            if of != arch or (repository, arch) not in metadata.known:
                continue
            for name, package in tree.packages.items():
                offer = offered.get((repository, package.file))
                where = ("repositories", repository, arch, "packages", name)
                locked |= {offer} if offer else set()
                for part, message in _differences(package, name, offer):
                    report.add(file, message, *where, *([part] if part else []))
        for nodes in site.nodes:
            if nodes.arch == arch:
                _closure(report, file, nodes, metadata, locked)
    return report


def _differences(package: Package, name: str, offer: Found | None) -> Iterator[tuple[str, str]]:
    if offer is None:
        yield "file", f"{package.file} is not in the repository"
        return
    for part in ("version", "arch", "size", "sha256"):
        if getattr(package, part) != getattr(offer, part):
            yield part, f"is {getattr(package, part)}, the repository has {getattr(offer, part)}"
    if offer.name != name:
        yield "", f"{package.file} is the package {offer.name}"


def _closure(report: Report, file: LockFile, nodes: Nodes, metadata: AtHand, locked: set[Found]) -> None:
    """Solve the installation of some nodes with nothing but what is locked."""
    ids = {repository.id for repository in nodes.repositories}
    if any((repository, nodes.arch) not in metadata.known for repository in ids):
        return  # said above, by repository
    trees = [tree for repository in ids if (tree := file.lock.tree(repository, nodes.arch)) is not None]
    waiting = {name for tree in trees for name in tree.unverified}
    names = [name for name in nodes.names if name not in waiting]
    if len(names) < len(nodes.names):
        report.not_checked.append(f"closure and conflicts of {nodes.nodeset} without what is unverified")
    usable = {package for package in locked if package.repository in ids}
    universe = metadata.universe(nodes.arch, file.lock.given)
    for problem in universe.install(names, usable).problems:
        # libsolv's word for a package that it may not take.
        text = problem.replace(" is disabled", " is not locked")
        report.findings.append(Finding(file.name, 0, f"{nodes.nodeset} ({nodes.arch})", text))


def against_files(file: LockFile, folder: Path) -> Report:
    """Each locked package is below a folder (<repository>/<arch>/.../<file>) with its size and checksum."""
    report = Report()
    for repository, arch, tree in file.lock.trees():
        names = {path.name: path for path in (folder / repository / arch).rglob("*.rpm")}
        for name, package in tree.packages.items():
            where = ("repositories", repository, arch, "packages", name)
            path = names.get(PurePosixPath(package.file).name)
            if path is None:
                report.add(file, f"no such file below {folder / repository / arch}", *where, "file")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
                report.add(file, f"{path} has another checksum", *where, "sha256")
    return report
