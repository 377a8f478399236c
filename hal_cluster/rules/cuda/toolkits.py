"""Whether CUDA toolkits go with the driver, the processor, the distribution and the GPUs of a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hal_cluster.rules.cuda.findings import (
    Finding,
    models_by_generation,
    problems,
    refused,
    remark,
    remarks,
    unknown_architecture,
    unknown_model,
)
from hal_cluster.rules.cuda.versions import Version, VersionError, driver_version, order, shown, toolkit_release
from hal_inventory.printable import printable

if TYPE_CHECKING:
    from hal_cluster.rules.cuda.table import Table, Toolkit, Update


@dataclass(frozen=True)
class Wanted:
    """A toolkit that a site declares: the row, and the update that gets installed."""

    toolkit: Toolkit
    update: Update

    @property
    def release(self) -> str:
        """Its release, 10.2."""
        return self.toolkit.release


@dataclass(frozen=True)
class Node:
    """What a toolkit has to go with. Without a driver (a login node) only the package has to exist."""

    driver: str | None
    arch: str
    distribution: str
    gpu_models: tuple[str, ...]
    compat: frozenset[str]


def cuda_problems(
    toolkits: Sequence[object],
    driver: object,
    arch: str,
    distribution: str,
    gpu_models: Sequence[str] = (),
    compat: Sequence[object] = (),
) -> list[str]:
    """Return a sentence for each reason why these toolkits cannot be on such a node.

    `toolkits`: releases (10.2) or exact versions (10.2.89), as texts. `driver`: a version, as 440.33.01; None where the
    node has no GPU. `arch`: ppc64le or x86_64. `distribution`: the folder of NVIDIA's repository, as rhel7.
    `gpu_models`: as the driver shows them. `compat`: releases that run by cuda-compat. A sentence has where that was
    read and what would be right. A release that the table does not have, and what is not a version, are sentences, too;
    TableError for a table that cannot be used.
    """
    from hal_cluster.rules.cuda.table import load

    return problems(cuda_findings(toolkits, driver, arch, distribution, gpu_models, compat, load()))


def cuda_remarks(
    toolkits: Sequence[object],
    driver: object,
    arch: str,
    distribution: str,
    gpu_models: Sequence[str] = (),
    compat: Sequence[object] = (),
) -> list[str]:
    """Return a sentence for each limit, and for each thing about these toolkits on such a node that no source says.

    A limit is, for instance, a driver that is older than the toolkit's own. What comes in, and what is raised: as
    `cuda_problems` has it.
    """
    from hal_cluster.rules.cuda.table import load

    return remarks(cuda_findings(toolkits, driver, arch, distribution, gpu_models, compat, load()))


def minimum_driver(toolkits: Sequence[object]) -> str | None:
    """Return the least driver that runs all of these toolkits, if need be with limits; None when none is known.

    `toolkits`: releases (10.2) or exact versions (10.2.89), as texts. Limits are those of minor version compatibility.
    One that the table does not have is left out.
    """
    from hal_cluster.rules.cuda.table import load

    table = load()
    wanted, _ = _declared(toolkits, table)
    least = [driver for driver in (_least(toolkit, table) for toolkit in wanted) if driver is not None]
    return max(least, key=driver_version, default=None)


def cuda_findings(
    toolkits: Sequence[object],
    driver: object,
    arch: str,
    distribution: str,
    gpu_models: Sequence[str],
    compat: Sequence[object],
    table: Table,
) -> list[Finding]:
    """Return everything that can be said of toolkits on a node. ``driver`` None: the node has no GPU."""
    wanted, findings = _declared(toolkits, table)
    findings += _compat_names(compat, wanted)
    version: Version | None = None
    if driver is not None:
        try:
            version = driver_version(driver)
        except VersionError as error:
            findings.append(refused(f"nvidia_driver_version: {error}"))
    if table.architecture(arch) is None:
        return [*findings, refused(unknown_architecture(arch, table))]
    node = Node(
        str(driver) if version else None,
        arch,
        distribution,
        tuple(printable(str(model)) for model in gpu_models),
        frozenset(map(str, compat)),
    )
    if table.repository(distribution, arch) is None and wanted:
        findings.append(remark(f"which toolkits NVIDIA has for {shown(distribution)} on {arch} is not in the table"))
    for toolkit in wanted:
        findings += [
            *_available(toolkit, node, table),
            *_on_gpus(toolkit, node, table),
            *_on_driver(toolkit, node, table),
        ]
    if version:
        unknown = models_by_generation(node.gpu_models, table)[1]
        findings += [unknown_model(model, "these toolkits make programs for it") for model in unknown]
    return findings


def _declared(toolkits: Sequence[object], table: Table) -> tuple[list[Wanted], list[Finding]]:
    wanted: dict[str, Wanted] = {}
    findings: list[Finding] = []
    for entry in toolkits:
        try:
            release, exact = toolkit_release(entry)
        except VersionError as error:
            findings.append(refused(f"cuda_toolkits: {error}"))
            continue
        row = table.toolkit(release)
        if row is None:
            findings.append(refused(f"cuda_toolkits: CUDA {release} is not in the table{_alike(release, table)}"))
            continue
        update = row.update(exact)
        if update is None:
            there = ", ".join(known.version for known in row.updates)
            findings.append(refused(f"cuda_toolkits: CUDA {exact} is not in the table, which has {there}"))
        elif release in wanted:
            findings.append(
                refused(f"cuda_toolkits names CUDA {release} twice; both would be /usr/local/cuda-{release}: name one")
            )
        else:
            wanted[release] = Wanted(row, update)
    return list(wanted.values()), findings


def _alike(release: str, table: Table) -> str:
    """Return what the table has instead, as the end of a sentence."""
    known = [row.release for row in table.toolkits]
    same = [other for other in known if order(other)[0] == order(release)[0]]
    return f"; take one of {', '.join(same)}" if same else f", which has {known[0]} to {known[-1]}"


def _compat_names(compat: Sequence[object], wanted: Sequence[Wanted]) -> Iterator[Finding]:
    there = [toolkit.release for toolkit in wanted]
    for name in compat:
        if str(name) not in there:
            listed = ", ".join(there) or "none"
            yield refused(
                f"cuda_compat: {shown(name)} is not a release that cuda_toolkits has ({listed}); name one of those"
            )


def _available(wanted: Wanted, node: Node, table: Table) -> Iterator[Finding]:
    release = wanted.release
    processor = table.architecture(node.arch)
    last = processor.last_toolkit if processor else None
    if last and order(release) > order(last.release):
        yield refused(
            f"CUDA {release} does not exist for {node.arch}: {last.release} is the last ({table.cited(last)});"
            f" take {last.release} or earlier in cuda_toolkits"
        )
        return
    repository = table.repository(node.distribution, node.arch)
    if repository and not order(repository.first) <= order(release) <= order(repository.last):
        yield refused(
            f"NVIDIA has no packages of CUDA {release} for {node.distribution} on {node.arch}, only of"
            f" {repository.first} to {repository.last} ({table.cited(repository)}); take one of these in cuda_toolkits"
        )


def _on_gpus(wanted: Wanted, node: Node, table: Table) -> Iterator[Finding]:
    for model, generation in models_by_generation(node.gpu_models, table)[0]:
        release, first, last = wanted.release, generation.first, generation.last_toolkit
        if last and order(release) > order(last.release):
            yield refused(
                f"CUDA {release} makes no programs for {model} ({generation.name}): {last.release} is the last that"
                f" does ({table.cited(last)}); take {last.release} or earlier in cuda_toolkits"
            )
        if first and order(release) < order(first.toolkit):
            yield refused(
                f"CUDA {release} makes no programs for {model} ({generation.name}): {first.toolkit} is the first that"
                f" does ({table.cited(first)}); take {first.toolkit} or later in cuda_toolkits"
            )


def _on_driver(wanted: Wanted, node: Node, table: Table) -> Iterator[Finding]:
    if node.driver is None:
        return
    version, needs = driver_version(node.driver), wanted.update.driver
    if needs and version >= driver_version(needs):
        if wanted.release in node.compat:
            yield remark(f"cuda_compat: CUDA {wanted.release} needs no cuda-compat on driver {node.driver}")
        return
    least = _least(wanted, table)
    family = table.family(wanted.release)
    if family and least and version >= driver_version(least):
        yield remark(_limits(wanted, node.driver, table.cited(family)))
    elif wanted.release in node.compat:
        yield from _forward(wanted, node, version, table)
    elif least:
        row = wanted.toolkit if least == needs or family is None else family
        yield refused(
            f"CUDA {wanted.release} needs driver {needs or least} or later ({table.cited(row)}); {node.driver} is"
            f" declared: set nvidia_driver_version{_instead(node, version, table)}"
        )


def _least(wanted: Wanted, table: Table) -> str | None:
    """Return the least driver that runs a toolkit: its own, or that of its major version if this is lower."""
    family = table.family(wanted.release)
    known = [driver for driver in (wanted.update.driver, family.driver if family else None) if driver]
    return min(known, key=driver_version, default=None)


def _limits(wanted: Wanted, driver: str, cited: str) -> str:
    own = f"comes with driver {wanted.update.driver}" if wanted.update.driver else "states no driver of its own"
    return (
        f"CUDA {wanted.release} {own}; on {driver} it runs by minor version compatibility ({cited}): code"
        " that the driver has to compile (PTX) and what only a later driver can do will not run"
    )


def _instead(node: Node, version: Version, table: Table) -> str:
    """Return the newest toolkit that goes with everything else of the node, as the end of a sentence."""
    for row in reversed(table.toolkits):
        toolkit = Wanted(row, row.updates[-1])
        if row.updates[-1].driver is None or version < driver_version(str(row.updates[-1].driver)):
            continue
        if not problems([*_available(toolkit, node, table), *_on_gpus(toolkit, node, table)]):
            return f", or leave cuda_toolkits at {row.release}"
    return ""


def _forward(wanted: Wanted, node: Node, version: Version, table: Table) -> Iterator[Finding]:
    """Say whether cuda-compat lets a toolkit run on a driver that is too old for it."""
    rule, release = table.forward_compatibility, wanted.release
    if order(release) < order(rule.first):
        yield refused(
            f"cuda_compat: there is no cuda-compat for CUDA {release}, only from {rule.first} on ({table.cited(rule)});"
            " set nvidia_driver_version"
        )
        return
    for model in dict.fromkeys(node.gpu_models):
        if any(re.search(expression, model, re.IGNORECASE) for expression in rule.not_for):
            yield refused(
                f"cuda_compat: cuda-compat is for data centre GPUs, not for {model} ({table.cited(rule)});"
                " set nvidia_driver_version"
            )
            return
    base = next((branch for branch in rule.branches if branch.branch == version[0]), None)
    if base is None:
        branches = ", ".join(str(branch.branch) for branch in rule.branches)
        yield remark(
            f"whether cuda-compat lets CUDA {release} run on driver {node.driver} is not known: the table has branches"
            f" {branches} ({table.cited(rule)}); try it on one node first"
        )
    elif version < driver_version(base.first):
        yield refused(
            f"cuda_compat: cuda-compat needs driver {base.first} or later of branch {base.branch}"
            f" ({table.cited(base)}); {node.driver} is declared: set nvidia_driver_version"
        )
    elif base.last and order(release) > order(base.last):
        yield refused(
            f"cuda_compat: on branch {base.branch} cuda-compat goes up to CUDA {base.last}, not {release}"
            f" ({table.cited(base)}); set nvidia_driver_version"
        )
