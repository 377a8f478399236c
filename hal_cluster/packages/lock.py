"""The lock file: for each repository and architecture exactly the packages that nodes may install from it.

docs/packages.md describes the format; ``hal-packages schema`` prints it as JSON Schema.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hal_cluster.packages.errors import LockFileError
from hal_inventory.errors import ClusterFileError
from hal_inventory.reader import Document, display_name, parse, read_bytes

# What a node of an architecture can run.
RUNS = {"ppc64le": frozenset({"ppc64le", "noarch"}), "x86_64": frozenset({"x86_64", "i686", "noarch"})}
HEAD = """\
# The packages that nodes may install, by repository and architecture. Written by hal-packages lock; docs/packages.md.
# Names under "unverified" are declared; nobody has read their release, checksum and signature from the repository yet.
---
"""


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or path.suffix != ".rpm":
        raise ValueError("must be the path of an .rpm below the repository's address")
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="sha256, 64 hex digits in lower case")]
Fingerprint = Annotated[str, Field(pattern=r"^[0-9A-F]{40}$", description="40 hex digits in upper case, no blanks")]
KeyId = Annotated[str, Field(pattern=r"^[0-9A-F]{16}$", description="the last 16 digits of a fingerprint")]
Version = Annotated[str, Field(pattern=r"^[0-9]+:[^\s:-]+-[^\s:-]+$", description="epoch:version-release")]
Arch = Literal["ppc64le", "x86_64"]


class Strict(BaseModel):
    """An unknown field is an error: a misspelt one would do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Package(Strict):
    """One file of a repository."""

    version: Version
    arch: Literal["noarch", "ppc64le", "x86_64", "i686"]
    file: Annotated[str, AfterValidator(_inside)] = Field(description="path below the repository's address")
    size: int = Field(ge=1, description="bytes")
    sha256: Sha256
    key: KeyId = Field(description="the key that signed it")
    also: tuple[str, ...] = Field(default=(), description="declared names that this package provides")


class Tree(Strict):
    """A repository for one architecture."""

    url: str = Field(pattern=r"^(https?|ftp|file)://\S+$", description="where the mirror gets it")
    signed_by: Mapping[str, Fingerprint] = Field(description="ids of repositories_keys and their fingerprints")
    metadata: Sha256 | None = Field(default=None, description="sha256 of the repomd.xml that this was made from")
    packages: Mapping[Name, Package] = Field(default_factory=dict)
    unverified: tuple[Name, ...] = Field(default=(), description="declared, but not read from the repository yet")


class Lock(Strict):
    """The whole file."""

    format: Literal[1]
    given: tuple[str, ...] = Field(default=(), description="what nodes have before the first package is installed")
    repositories: Mapping[str, Mapping[Arch, Tree]]

    def tree(self, repository: str, arch: str) -> Tree | None:
        """Return a tree, or None."""
        trees: Mapping[Any, Tree] = self.repositories.get(repository, {})
        return trees.get(arch)

    def trees(self) -> Iterator[tuple[str, str, Tree]]:
        """Give repository, architecture and tree, in the order of names."""
        for repository in sorted(self.repositories):
            for arch in sorted(self.repositories[repository]):
                yield repository, arch, self.repositories[repository][arch]

    def unverified(self) -> list[str]:
        """Return every unverified name as repository/arch/name."""
        return [f"{repository}/{arch}/{name}" for repository, arch, tree in self.trees() for name in tree.unverified]

    def digest(self) -> str:
        """Return 16 hex digits that change when a file in the mirror would."""
        lines = [
            f"{package.sha256} {repository}/{arch}/{PurePosixPath(package.file).name}"
            for repository, arch, tree in self.trees()
            for package in tree.packages.values()
        ]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LockFile:
    """A lock with the file it is from, so that findings can name the line."""

    lock: Lock
    document: Document

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.document.file

    def line(self, *path: str | int) -> int:
        """Return the line of a field, or of the nearest one around it."""
        return self.document.line(path)


def load(path: Path) -> LockFile:
    """Return the lock in a file; LockFileError with every fault otherwise."""
    try:
        document = parse(read_bytes(path), display_name(path))
    except ClusterFileError as error:
        raise LockFileError(error.findings) from None
    lock = None
    try:
        lock = Lock.model_validate(document.plain())
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            document.add(tuple(step for step in fault["loc"] if step != "[key]"), _words(fault))
    if lock is not None:
        _check(document, lock)
    if document.findings or lock is None:
        raise LockFileError(document.findings)
    return LockFile(lock, document)


def load_once(path: Path) -> LockFile:
    """As load; a file that did not change is read once in a process."""
    try:
        status = path.stat()
    except OSError:
        return load(path)  # it says what is wrong
    return _loaded(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _loaded(path: Path, _changed: int, _size: int) -> LockFile:
    return load(path)


def _check(document: Document, lock: Lock) -> None:
    """Note what a field alone does not show."""
    for repository, arch, tree in lock.trees():
        where = ("repositories", repository, arch)
        known = {fingerprint[-16:] for fingerprint in tree.signed_by.values()}
        for index, name in enumerate(tree.unverified):
            if name in tree.packages:
                document.add((*where, "unverified", index), f"{name} is also under packages; take it away here")
        for name, package in tree.packages.items():
            at = (*where, "packages", name)
            if package.arch not in RUNS[arch]:
                document.add((*at, "arch"), f"{package.arch} does not run on {arch}")
            release = package.version.partition(":")[2]
            if not package.file.endswith(f"{name}-{release}.{package.arch}.rpm"):
                document.add((*at, "file"), f"is not the file of {name}-{release}.{package.arch}")
            if package.key not in known:
                signers = ", ".join(f"{key} {value}" for key, value in tree.signed_by.items()) or "no key"
                document.add((*at, "key"), f"{package.key} is none of the repository's keys (signed_by: {signers})")


def _words(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "unknown field; docs/packages.md has the fields"
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    if fault["type"] == "string_pattern_mismatch":
        return f"{fault['input']!r} does not look like one: {fault['ctx']['pattern']}"
    return f"{fault['msg'][:1].lower()}{fault['msg'][1:]}, not {fault['input']!r}"


def dump(lock: Lock) -> str:
    """Return the text of the file. Same lock, same text: everything is sorted, empty fields are left out."""
    content = lock.model_dump(mode="json", exclude_defaults=True)
    content["repositories"] = {
        repository: {
            arch: {
                **tree,
                **({"packages": dict(sorted(tree["packages"].items()))} if "packages" in tree else {}),
            }
            for arch, tree in sorted(trees.items())
        }
        for repository, trees in sorted(content["repositories"].items())
    }
    return HEAD + yaml.dump({"format": lock.format, **content}, Dumper=_Indented, sort_keys=False, width=120)


class _Indented(yaml.SafeDumper):
    """Lists are indented below their key, as elsewhere in the project."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Never indentless."""
        super().increase_indent(flow, False)
