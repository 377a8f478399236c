"""Programs of a newer Debian: where they come from, and that their libraries are theirs alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from testbed import debian, elf, repository
from testbed.errors import VirtualNodesError
from testbed.recipes import Recipe


class Mirror:
    """A private apt that remembers what it was asked for."""

    asked: dict[str, list[str]]
    broken: str = ""

    def __init__(self, folder: Path, arch: str, suite: str = debian.SUITE) -> None:
        self.suite = suite

    def update(self, log: Path) -> None:
        if self.suite == Mirror.broken:
            raise VirtualNodesError("reading Debian's package lists: exit status 100; see the log")

    def download(self, packages: Iterable[str], log: Path) -> dict[str, Path]:
        Mirror.asked.setdefault(self.suite, []).extend(sorted(packages))
        return {name: Path(f"/{self.suite}/{name}.deb") for name in packages}


RECIPES = {
    "munge": Recipe(summary="x", payload=("munge",)),
    "singularity": Recipe(
        summary="x", payload=("apptainer", "uidmap"), suites={"apptainer": "sid", "libc6": "sid"}, private=("libc6",)
    ),
}


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Mirror.asked, Mirror.broken = {}, ""
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(debian, "Apt", Mirror)


def test_each_package_comes_from_its_suite(tmp_path: Path) -> None:
    debs = repository._download(RECIPES, "x86_64", tmp_path / "log")
    assert Mirror.asked == {"bookworm": ["munge", "uidmap", "patchelf"], "sid": ["apptainer", "libc6"]}
    assert debs["libc6"] == Path("/sid/libc6.deb")


def test_without_such_a_package_nothing_else_is_asked_for(tmp_path: Path) -> None:
    repository._download({"munge": RECIPES["munge"]}, "x86_64", tmp_path / "log")
    assert Mirror.asked == {"bookworm": ["munge"]}


def test_a_suite_that_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    Mirror.broken = "sid"
    with pytest.raises(VirtualNodesError) as caught:
        repository._download(RECIPES, "x86_64", tmp_path / "log")
    assert str(caught.value) == (
        "Debian sid cannot be read, which has what package singularity is made of:"
        " reading Debian's package lists: exit status 100; see the log"
    )


def test_a_package_of_two_suites_is_refused(tmp_path: Path) -> None:
    both = {**RECIPES, "tools": Recipe(summary="x", payload=("apptainer",))}
    with pytest.raises(VirtualNodesError, match="apptainer is wanted from sid and from another suite"):
        repository._download(both, "x86_64", tmp_path / "log")


def test_a_suite_that_rolls_has_no_updates() -> None:
    assert [line.split()[-2:] for line in debian.sources("sid")] == [["sid", "main"]]
    assert len(debian.sources("bookworm")) == 3


def header(kinds: Iterable[int]) -> bytes:
    """An ELF file of 64 bits, little endian, that has only its table of segments."""
    table = b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)
    head = bytearray(64)
    head[:4] = elf.MAGIC
    head[32:40] = (64).to_bytes(8, "little")
    head[54:56] = (56).to_bytes(2, "little")
    head[56:58] = (len(table) // 56).to_bytes(2, "little")
    return bytes(head) + table


def test_only_programs_get_another_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(elf, "capture", lambda command: calls.append([str(word) for word in command]))
    for name, content in (("program", header([6, 3, 1])), ("library", header([1, 2])), ("script", b"#!/bin/sh\n")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to("program")
    elf.lead_to("tool", "x86_64", sorted(tmp_path.iterdir()), Path("/patchelf"))
    common = ["/patchelf", "--force-rpath", "--set-rpath", "/usr/libexec/tool-libraries"]
    assert calls == [
        [*common, str(tmp_path / "library")],
        [*common, "--set-interpreter", "/usr/libexec/tool-libraries/ld-linux-x86-64.so.2", str(tmp_path / "program")],
    ]


def test_without_a_loader_among_them_the_libraries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack(command: list[Any]) -> None:
        place = Path(command[-1]) / "usr/lib/x86_64-linux-gnu"
        place.mkdir(parents=True)
        (place / "libm.so.6").write_bytes(elf.MAGIC)

    monkeypatch.setattr(elf, "capture", unpack)
    (tmp_path / "root").mkdir()
    with pytest.raises(VirtualNodesError, match=r"tool: private: these packages bring no ld-linux-x86-64\.so\.2"):
        elf.own_libraries("tool", "x86_64", [Path("libm.deb")], tmp_path / "root", tmp_path / "work")
    assert (tmp_path / "root/usr/libexec/tool-libraries/libm.so.6").is_file()
