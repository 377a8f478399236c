"""Make a lock: pick the version of every declared name and of all that it needs, from real repository metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from hal_cluster.packages.declared import Nodes, Repository, Site
from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.packages.lock import Lock, Package, Tree
from hal_cluster.packages.metadata import AtHand
from hal_cluster.packages.repodata import Metadata
from hal_cluster.packages.signatures import keys_of
from hal_cluster.packages.universe import Found, Universe, without


def repositories_of(site: Site) -> dict[tuple[str, str], Repository]:
    """Return every repository of a site by id and architecture; one address each."""
    repositories: dict[tuple[str, str], Repository] = {}
    for nodes in site.nodes:
        for repository in nodes.repositories:
            known = repositories.setdefault((repository.id, nodes.arch), repository)
            if known.url != repository.url or known.signed_by != repository.signed_by:
                raise HalPackagesError(
                    f"repository {repository.id} ({nodes.arch}) is {known.url} on some nodes and {repository.url} on "
                    f"{nodes.nodeset}, or its keys differ; a mirror has one"
                )
    return repositories


def lock(site: Site, metadata: AtHand, given: Sequence[str]) -> Lock:
    """Return the lock of a site; HalPackagesError says every name that cannot be installed, and why."""
    repositories = repositories_of(site)
    if metadata.missing:
        raise HalPackagesError("\n".join(f"{name}/{arch}: {why}" for (name, arch), why in metadata.missing.items()))
    chosen: dict[tuple[str, str], dict[str, Found]] = defaultdict(dict)
    also: dict[Found, set[str]] = defaultdict(set)
    faults: list[str] = []
    for arch in sorted({nodes.arch for nodes in site.nodes}):
        universe = metadata.universe(arch, tuple(given))
        for nodes in site.nodes:
            if nodes.arch == arch:
                faults += _choose(nodes, universe, given, chosen, also)
    if faults:
        raise HalPackagesError("\n".join(dict.fromkeys(faults)))
    trees: dict[str, dict[str, Tree]] = defaultdict(dict)
    for (name, arch), repository in repositories.items():
        at_hand = metadata.known[name, arch]
        packages = _signed(chosen[name, arch], also, repository, arch, at_hand)
        trees[name][arch] = Tree(
            url=repository.url, signed_by=dict(repository.signed_by), metadata=at_hand.sha256, packages=packages
        )
    return Lock.model_validate({"format": 1, "given": tuple(sorted(given)), "repositories": trees})


def _choose(
    nodes: Nodes,
    universe: Universe,
    given: Sequence[str],
    chosen: dict[tuple[str, str], dict[str, Found]],
    also: dict[Found, set[str]],
) -> list[str]:
    """Add what some nodes need to `chosen`; return why they cannot be installed."""
    seen = {repository.id for repository in nodes.repositories}
    visible = without(
        [package for package in universe.packages if package.repository in seen],
        {repository.id: repository.exclude for repository in nodes.repositories},
    )
    solution = universe.install(list(nodes.names), visible)
    if solution.problems:
        return [f"{nodes.nodeset} ({nodes.arch}): {problem}{_origins(problem, nodes)}" for problem in solution.problems]
    faults = []
    for package in sorted(solution.packages):
        tree = chosen[package.repository, nodes.arch]
        other = tree.setdefault(package.name, package)
        if other != package:
            faults.append(
                f"{nodes.nodeset} ({nodes.arch}): needs {package.name} {package.version} {package.arch}, other nodes "
                f"{other.version} {other.arch}; a lock has one of a name in a repository"
            )
    for name in nodes.names:
        for package in universe.providers(name, solution.packages):
            if package.name != name:
                also[package].add(name)
    return faults


def _origins(problem: str, nodes: Nodes) -> str:
    """Return where the names in a resolver's sentence are declared."""
    words = set(problem.split())
    origins = sorted({str(origin) for name in words & set(nodes.names) for origin in nodes.names[name]})
    return f" (declared in {', '.join(origins)})" if origins else ""


def _signed(
    packages: Mapping[str, Found],
    also: Mapping[Found, set[str]],
    repository: Repository,
    arch: str,
    at_hand: Metadata,
) -> dict[str, Package]:
    """Return the entries of a tree, with who signed each; every package has to be signed by a key of the repository."""
    ordered = sorted(packages.values())
    signers = keys_of(at_hand.place, [(package.file, package.header_end) for package in ordered])
    allowed = {fingerprint[-16:]: name for name, fingerprint in repository.signed_by}
    entries, faults = {}, []
    for package, key in zip(ordered, signers, strict=True):
        if key is None or key not in allowed:
            who = "nobody" if key is None else f"key {key}"
            known = ", ".join(f"{name} {short}" for short, name in allowed.items()) or "no key is declared"
            faults.append(f"{repository.id}/{arch}: {package.file} is signed by {who}; signed_by: {known}")
            continue
        entries[package.name] = Package(
            version=package.version,
            arch=package.arch,
            file=package.file,
            size=package.size,
            sha256=package.sha256,
            key=key,
            also=tuple(sorted(also.get(package, ()))),
        )
    if faults:
        raise HalPackagesError("\n".join(faults))
    return entries
