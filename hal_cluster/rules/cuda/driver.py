"""Whether a driver goes with the processor, the kernel and the GPUs of a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from hal_cluster.rules.cuda.versions import Version, VersionError, driver_version, shown

if TYPE_CHECKING:
    from hal_cluster.rules.cuda.table import Architecture, Table

_KERNEL = re.compile(r"\d+(\.\d+)+[\w.+~-]*", re.ASCII)


def driver_problems(driver: object, arch: str, kernel: str | None, gpu_models: Sequence[str]) -> list[str]:
    """Return a sentence for each reason why this driver cannot serve such a node.

    `driver`: a version, as 440.33.01. `arch`: ppc64le or x86_64. `kernel`: its release, as the model declares it.
    `gpu_models`: as the driver shows them. A sentence has where that was read and what would be right. What no source
    says is not a problem here: `driver_remarks` has it. What is not a version is a sentence, too; TableError for a
    table that cannot be used.
    """
    from hal_cluster.rules.cuda.table import load

    return problems(driver_findings(driver, arch, kernel, gpu_models, load()))


def driver_remarks(driver: object, arch: str, kernel: str | None, gpu_models: Sequence[str]) -> list[str]:
    """Return a sentence for each thing about this driver on such a node that no source says.

    One is a kernel that nobody is known to have built it on. What comes in, and what is raised: as `driver_problems`
    has it.
    """
    from hal_cluster.rules.cuda.table import load

    return remarks(driver_findings(driver, arch, kernel, gpu_models, load()))


def driver_findings(
    driver: object, arch: str, kernel: str | None, gpu_models: Sequence[str], table: Table
) -> list[Finding]:
    """Return everything that can be said of a driver on a node."""
    try:
        version = driver_version(driver)
    except VersionError as error:
        return [refused(f"nvidia_driver_version: {error}")]
    processor = table.architecture(arch)
    if processor is None:
        return [refused(unknown_architecture(arch, table))]
    return [
        *_on_processor(str(driver), version, processor, table),
        *_on_kernel(str(driver), arch, kernel, table),
        *_on_gpus(str(driver), version, gpu_models, table),
    ]


def _on_processor(driver: str, version: Version, processor: Architecture, table: Table) -> Iterator[Finding]:
    last = processor.last_branch
    if last and version[0] > last.branch:
        yield refused(
            f"driver {driver} does not exist for {processor.name}: branch {last.branch} is the last"
            f" ({table.cited(last)}); set nvidia_driver_version to one of {last.branch} or earlier"
        )
    elif version[0] > table.reaches.branch:
        yield remark(
            f"driver {driver} is later than the table, which reaches branch {table.reaches.branch}"
            f" ({table.reaches.compared}): what it supports is not known"
        )


def _on_kernel(driver: str, arch: str, kernel: str | None, table: Table) -> Iterator[Finding]:
    if not kernel:
        yield remark(f"the model declares no kernel: whether driver {driver} builds on it is not known")
        return
    bare = kernel.removesuffix(f".{arch}")
    if not _KERNEL.fullmatch(bare):
        yield refused(f"kernel: {shown(kernel)} is not a release of a kernel; write one such as 4.18.0-80.7.2.el7")
        return
    here = [row for row in table.kernels if row.arch == arch]
    same = [row for row in here if row.kernel == bare]
    if any(driver in row.drivers for row in same):
        return
    if same:
        drivers = ", ".join(version for row in same for version in row.drivers)
        seen = f"the table has {drivers} on it ({table.cited(same[0])})"
    else:
        kernels = ", ".join(f"{row.kernel} with {' and '.join(row.drivers)}" for row in here)
        seen = f"for {arch} the table has {kernels}" if here else f"the table has no kernel for {arch}"
    yield remark(
        f"whether driver {driver} builds on kernel {bare} ({arch}) is not known: {seen}; try it on one node first"
    )


def _on_gpus(driver: str, version: Version, gpu_models: Sequence[str], table: Table) -> Iterator[Finding]:
    known, unknown = models_by_generation(gpu_models, table)
    for model, generation in known:
        last, first = generation.last_branch, generation.first
        if last and version[0] > last.branch:
            yield refused(
                f"driver {driver} does not drive {model} ({generation.name}): branch {last.branch} is the last that"
                f" does ({table.cited(last)}); set nvidia_driver_version to one of {last.branch} or earlier"
            )
        if first and first.driver and version < driver_version(first.driver):
            yield refused(
                f"driver {driver} does not drive {model} ({generation.name}), which needs {first.driver} or later"
                f" ({table.cited(first)}); set nvidia_driver_version"
            )
    for model in unknown:
        yield unknown_model(model, f"driver {driver} drives it")
