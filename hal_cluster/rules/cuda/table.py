"""The table compatibility.yml: its types, and the one place that reads it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hal_cluster.rules.cuda.versions import HalCudaError, VersionError, driver_version, order, toolkit_release
from hal_inventory.errors import ClusterFileError, FindingsError
from hal_inventory.reader import Document, display_name, parse, read_bytes

TABLE = Path(__file__).with_name("compatibility.yml")


class TableError(FindingsError, HalCudaError):
    """A table that cannot be used: file, line and field of every fault."""


def _driver(value: str) -> str:
    try:
        driver_version(value)
    except VersionError as error:
        raise ValueError(str(error)) from None
    return value


def _release(value: str) -> str:
    try:
        release, exact = toolkit_release(value)
    except VersionError as error:
        raise ValueError(str(error)) from None
    if exact:
        raise ValueError(f'"{value}" is an exact version; write the release {release}')
    return value


def _exact(value: str) -> str:
    try:
        _, exact = toolkit_release(value)
    except VersionError as error:
        raise ValueError(str(error)) from None
    if not exact:
        raise ValueError(f'"{value}" is a release; write an exact version such as 10.2.89')
    return value


def _expression(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f'"{value}" is not a regular expression: {error}') from None
    return value


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Driver = Annotated[str, AfterValidator(_driver), Field(description="a driver, e.g. 440.33.01")]
Release = Annotated[str, AfterValidator(_release), Field(description="a release of CUDA, e.g. 10.2")]
Exact = Annotated[str, AfterValidator(_exact), Field(description="an update of a release, e.g. 10.2.89")]
Expression = Annotated[str, AfterValidator(_expression), Field(description="a regular expression")]
Branch = Annotated[int, Field(ge=100, le=9999, description="the first number of a driver's version")]
SourceIds = Annotated[tuple[str, ...], BeforeValidator(_several), Field(min_length=1)]


class Strict(BaseModel):
    """An unknown field is an error: a misspelt one would do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Strict):
    """Where something was read."""

    title: str = Field(min_length=1)
    url: str = Field(pattern=r"^https://\S+$")


class Row(Strict):
    """Something that was read somewhere."""

    source: SourceIds


class Reaches(Strict):
    """The newest that the table was compared with."""

    toolkit: Release
    branch: Branch
    compared: str = Field(pattern=r"^\d{4}-\d{2}$")


class Update(Strict):
    """One update of a toolkit and the least driver that has all it needs."""

    version: Exact
    driver: Driver | None


class Toolkit(Row):
    """A release of CUDA."""

    release: Release
    updates: tuple[Update, ...] = Field(min_length=1)

    def update(self, exact: str | None) -> Update | None:
        """Return the update of that version; without one the latest, which is what a repository installs."""
        if exact is None:
            return self.updates[-1]
        return next((update for update in self.updates if update.version == exact), None)


class Family(Row):
    """Toolkits of a major version run on any driver from this one on."""

    major: int = Field(ge=11)
    driver: Driver


class LastToolkit(Row):
    """No later toolkit is for this."""

    release: Release


class LastBranch(Row):
    """No later branch of drivers is for this."""

    branch: Branch


class Architecture(Row):
    """A kind of processor."""

    name: Literal["x86_64", "ppc64le"]
    last_toolkit: LastToolkit | None = None
    last_branch: LastBranch | None = None


class Repository(Row):
    """The toolkits that NVIDIA has packages of."""

    distribution: str = Field(pattern=r"^[a-z]+\d+$")
    arch: Literal["x86_64", "ppc64le"]
    first: Release
    last: Release


class First(Row):
    """The first toolkit and the first driver for this."""

    toolkit: Release
    driver: Driver | None = None


class Generation(Strict):
    """GPUs of one design."""

    name: str = Field(min_length=1)
    models: tuple[Expression, ...] = Field(min_length=1)
    first: First | None = None
    last_toolkit: LastToolkit | None = None
    last_branch: LastBranch | None = None


class Kernel(Row):
    """Drivers whose module is known to have been built on a kernel."""

    arch: Literal["x86_64", "ppc64le"]
    kernel: str = Field(min_length=1)
    drivers: tuple[Driver, ...] = Field(min_length=1)


class Base(Row):
    """A branch that packages cuda-compat are made for."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    branch: Branch
    first: Driver = Field(alias="from")
    last: Release | None = None


class ForwardCompatibility(Row):
    """What cuda-compat can do."""

    first: Release
    not_for: tuple[Expression, ...]
    branches: tuple[Base, ...]


class DriverPackages(Row):
    """Packages that bring a driver."""

    names: tuple[Expression, ...]


class Table(Strict):
    """The whole file."""

    format: Literal[1]
    reaches: Reaches
    sources: Mapping[str, Source]
    toolkits: tuple[Toolkit, ...]
    families: tuple[Family, ...]
    architectures: tuple[Architecture, ...]
    repositories: tuple[Repository, ...]
    generations: tuple[Generation, ...]
    kernels: tuple[Kernel, ...]
    forward_compatibility: ForwardCompatibility
    driver_packages: DriverPackages

    def toolkit(self, release: str) -> Toolkit | None:
        """Return a release of CUDA."""
        return next((row for row in self.toolkits if row.release == release), None)

    def family(self, release: str) -> Family | None:
        """Return the row of a release's major version."""
        return next((row for row in self.families if row.major == order(release)[0]), None)

    def architecture(self, name: str) -> Architecture | None:
        """Return a kind of processor."""
        return next((row for row in self.architectures if row.name == name), None)

    def repository(self, distribution: str, arch: str) -> Repository | None:
        """Return what NVIDIA has for a distribution."""
        rows = (row for row in self.repositories if (row.distribution, row.arch) == (distribution, arch))
        return next(rows, None)

    def generation(self, model: str) -> Generation | None:
        """Return the generation of a GPU by its model's name, "Tesla V100-SXM2-16GB"."""
        for row in self.generations:
            if any(re.search(expression, model, re.IGNORECASE) for expression in row.models):
                return row
        return None

    def cited(self, row: Row) -> str:
        """Return a row's sources as text for a sentence."""
        return "; ".join(self.sources[source].title for source in row.source)

    def rows(self) -> Iterator[tuple[tuple[str | int, ...], Row]]:
        """Give every row with its place in the file."""
        for name in ("toolkits", "families", "architectures", "repositories", "kernels"):
            for index, row in enumerate(getattr(self, name)):
                yield (name, index), row
        for section, entries in (("architectures", self.architectures), ("generations", self.generations)):
            for index, entry in enumerate(entries):
                for limit in ("first", "last_toolkit", "last_branch"):
                    if (row := getattr(entry, limit, None)) is not None:
                        yield (section, index, limit), row
        yield ("forward_compatibility",), self.forward_compatibility
        for index, base in enumerate(self.forward_compatibility.branches):
            yield ("forward_compatibility", "branches", index), base
        yield ("driver_packages",), self.driver_packages


@functools.cache
def load(path: Path = TABLE) -> Table:
    """Return the table, read once in a process; TableError with every fault of the file."""
    try:
        document = parse(read_bytes(path), display_name(path))
    except ClusterFileError as error:
        raise TableError(error.findings) from None
    table = None
    try:
        table = Table.model_validate(document.plain())
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            document.add(tuple(step for step in fault["loc"] if step != "[key]"), _words(fault))
    if table is not None:
        _check(document, table)
    if document.findings or table is None:
        raise TableError(document.findings)
    return table


def _check(document: Document, table: Table) -> None:
    """Note what a field alone does not show."""
    for where, row in table.rows():
        for source in row.source:
            if source not in table.sources:
                document.add((*where, "source"), f'there is no source "{source}"; add it under sources')
    releases = [row.release for row in table.toolkits]
    if releases != sorted(set(releases), key=order):
        document.add(("toolkits",), "releases have to be in order, each once")
    for index, toolkit in enumerate(table.toolkits):
        for at, update in enumerate(toolkit.updates):
            if toolkit_release(update.version)[0] != toolkit.release:
                words = f"{update.version} is not an update of {toolkit.release}"
                document.add(("toolkits", index, "updates", at, "version"), words)
        drivers = [driver_version(update.driver) for update in toolkit.updates if update.driver]
        versions = [order(update.version) for update in toolkit.updates]
        if drivers != sorted(drivers) or versions != sorted(set(versions)):
            document.add(("toolkits", index, "updates"), "updates have to be in order, and so have their drivers")
    if releases and releases[-1] != table.reaches.toolkit:
        document.add(("reaches", "toolkit"), f"the last toolkit is {releases[-1]}")


def _words(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "unknown field; hal_cluster/rules/cuda/table.py has the fields"
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    if fault["type"] == "string_type" and isinstance(fault["input"], (int, float)):
        return f"must be text, not the number {fault['input']}; put it in quotes"
    return f"{fault['msg'][:1].lower()}{fault['msg'][1:]}, not {fault['input']!r}"
