"""Planted violations of a lock, and what is said of each. What cannot be checked is never passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.packages.check import Report, against_declared, against_files, against_metadata
from hal_cluster.packages.lock import Lock
from hal_cluster.packages.metadata import AtHand
from tests.unit.hal_cluster.packages.conftest import World

TREE = ("repositories", "base", "x86_64")


def checked(
    world: World,
    folder: Path,
    names: list[str],
    change: Callable[[dict[str, Any]], None] | None = None,
    arch: str = "x86_64",
) -> Report:
    """Lock `tool`, change the lock, and hold it against a site that installs `names`."""
    data = world.lock(world.site("tool"), folder).model_dump(mode="json")
    if change:
        change(data["repositories"]["base"]["x86_64"])
    file = world.lock_file(Lock.model_validate(data), folder)
    site = world.site(*names, arch=arch)
    report = against_declared(file, site)
    report.extend(against_metadata(file, site, world.metadata(site, folder)))
    return report


def texts(report: Report) -> list[str]:
    return [f"{finding.field}: {finding.message}" for finding in sorted(report.findings)]


def test_a_lock_that_holds_has_no_finding_and_nothing_is_left_out(world: World, tmp_path: Path) -> None:
    report = checked(world, tmp_path, ["tool"])
    assert texts(report) == []
    assert report.not_checked == []


def test_a_name_that_is_not_locked_is_found_where_it_is_declared(world: World, tmp_path: Path) -> None:
    (finding, *_) = sorted(
        checked(world, tmp_path, ["tool", "tmux"]).findings, key=lambda one: one.file != "roles/tool/tasks/install.yml"
    )
    assert str(finding).startswith(
        "roles/tool/tasks/install.yml:2: tmux: no package of that name for hal[01-02] (x86_64): "
    )
    assert "does not have it; run hal-packages lock" in str(finding)


def test_a_package_of_another_architecture_is_not_the_one(world: World, tmp_path: Path) -> None:
    found = texts(checked(world, tmp_path, ["tool"], arch="ppc64le"))
    assert any("for hal[01-02] (ppc64le)" in one and "has it only for base/x86_64" in one for one in found), found
    assert any(one.startswith("repositories.base.ppc64le: ppc64le is not there") for one in found), found


@pytest.mark.parametrize("name", ["tool", "tool-1.2", "tool-1.2-1.el7", "tool.x86_64"])
def test_a_name_may_have_a_version_as_yum_takes_it(world: World, tmp_path: Path, name: str) -> None:
    assert texts(checked(world, tmp_path, [name])) == []


def test_another_version_than_the_declared_one_is_found(world: World, tmp_path: Path) -> None:
    assert any("tool-1.3: no package of that name" in one for one in texts(checked(world, tmp_path, ["tool-1.3"])))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("sha256", "0" * 64, "packages.tool.sha256: is 0000"),
        ("size", 1, "packages.tool.size: is 1, the repository has "),
        ("version", "7:1.2-1.el7", "packages.tool.version: is 7:1.2-1.el7, the repository has 0:1.2-1.el7"),
        ("file", "old/tool-1.2-1.el7.x86_64.rpm", "old/tool-1.2-1.el7.x86_64.rpm is not in the repository"),
    ],
)
def test_an_entry_that_is_not_what_the_repository_has_is_found(
    world: World, tmp_path: Path, field: str, value: object, words: str
) -> None:
    found = texts(checked(world, tmp_path, ["tool"], lambda tree: tree["packages"]["tool"].update({field: value})))
    assert any(words in one for one in found), found


def test_keys_and_addresses_that_are_not_the_declared_ones_are_found(world: World, tmp_path: Path) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["signed_by"] = {"site": "F" * 24 + world.key.fingerprint[-16:]}
        tree["url"] = "http://other.example/base"

    found = texts(checked(world, tmp_path, ["tool"], change))
    assert any(one.startswith("repositories.base.x86_64.signed_by: the keys are site FFFF") for one in found), found
    assert any("url: is http://other.example/base, declared is http://archive.example/base" in one for one in found)


def test_a_dependency_that_is_not_locked_is_found(world: World, tmp_path: Path) -> None:
    found = texts(checked(world, tmp_path, ["tool"], lambda tree: tree["packages"].pop("tool-libs")))
    assert [one.removeprefix("hal[01-02] (x86_64): ") for one in found] == [
        "package tool-1.2-1.el7.x86_64 requires tool-libs, but none of the providers can be installed",
        "package tool-libs-1.0-1.el7.x86_64 is not locked",
    ]


def test_a_conflict_between_locked_packages_is_found(world: World, tmp_path: Path) -> None:
    def change(tree: dict[str, Any]) -> None:
        entry = world.lock(world.site("rival"), tmp_path).model_dump(mode="json")
        tree["packages"]["rival"] = entry["repositories"]["base"]["x86_64"]["packages"]["rival"]

    found = texts(checked(world, tmp_path, ["tool", "rival"], change))
    assert any("rival-1.0-1.el7.x86_64 conflicts with tool" in one for one in found), found


def test_without_metadata_nothing_is_said_to_hold(world: World, tmp_path: Path) -> None:
    site = world.site("tool")
    file = world.lock_file(world.lock(site, tmp_path), tmp_path)
    report = against_metadata(file, site, AtHand({}, {("base", "x86_64"): "its metadata was not given (--from)"}))
    assert report.findings == []
    assert report.not_checked == [
        "base/x86_64: releases, checksums, closure and conflicts: its metadata was not given (--from)"
    ]


def test_an_unverified_name_is_known_and_said_to_be_unchecked(world: World, tmp_path: Path) -> None:
    report = checked(world, tmp_path, ["tool", "tmux"], lambda tree: tree.update(unverified=["tmux"]))
    assert texts(report) == []
    assert "base/x86_64: release, checksum and signature of tmux (unverified)" in report.not_checked
    assert "closure and conflicts of hal[01-02] without what is unverified" in report.not_checked


def test_a_file_with_another_checksum_is_found_and_so_is_a_missing_one(world: World, tmp_path: Path) -> None:
    file = world.lock_file(world.lock(world.site("tool"), tmp_path), tmp_path)
    mirror = tmp_path / "mirror/base/x86_64/Packages"
    mirror.mkdir(parents=True)
    name = file.lock.repositories["base"]["x86_64"].packages["tool"].file
    (mirror / name).write_bytes((world.folder / "base" / name).read_bytes() + b"x")
    found = texts(against_files(file, tmp_path / "mirror"))
    assert any("packages.tool.sha256:" in one and "has another checksum" in one for one in found), found
    assert any("packages.tool-libs.file: no such file below" in one for one in found), found
