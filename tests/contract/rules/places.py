"""Places, accounts and units are those of CentOS 7.7's packages: in roles, and in the stand-in packages."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.contract import declared
from tests.contract.el7.selinux import HERE
from tests.contract.project import Finding, Map, load_map, rule

TABLE = "tests/contract/el7/packages.yml"
RECIPES = "molecule/virtual_hal/packages/recipes.yml"
# What a stand-in has in these folders a role could rely on; programs and libraries are Debian's.
WATCHED = ("/etc/", "/var/", "/usr/lib/systemd/", "/usr/lib/tmpfiles.d/")
UNIT_FOLDERS = ("/etc/systemd/system/", "/usr/lib/systemd/system/")


@rule
def roles_write_into_folders_that_are_there(root: Path) -> Iterator[Finding]:
    """The folder of each file that a role writes is made by a package of CentOS 7.7, or by a role."""
    resources = declared.of_project(root).resources
    files = [one for one in resources if one.kind == "file" and not one.absent]
    made = [Path(one.key) for one in files if one.declared.get("type") == "directory"]
    there = folders() | {str(each) for path in made for each in (path, *path.parents)}
    for one in files:
        folder = str(Path(one.key).parent)
        # Modules make the folders above a folder.
        if folder not in there and one.declared.get("type") != "directory":
            yield one.finding(
                f"{one.key}: no package of CentOS 7.7 and no role makes {folder}; {TABLE} has those that do"
            )


@rule
def roles_run_units_that_are_there(root: Path) -> Iterator[Finding]:
    """Each unit that a role runs comes with a package of CentOS 7.7, or a role writes it."""
    resources = declared.of_project(root).resources
    written = {
        one.key.removeprefix(folder)
        for one in resources
        for folder in UNIT_FOLDERS
        if one.kind == "file" and one.key.startswith(folder)
    }
    for one in resources:
        if one.kind != "service" or one.absent or one.declared.get("state") != "started":
            continue
        if one.key not in written | {unit for entry in table().values() for unit in entry.get("units", [])}:
            yield one.finding(
                f"{one.key}: no package of CentOS 7.7 brings this unit and no role writes it; see {TABLE}"
            )


@rule
def owners_are_there(root: Path) -> Iterator[Finding]:
    """Each owner and group that a role gives a file is made by a package of CentOS 7.7, or by a role."""
    resources = declared.of_project(root).resources
    users = {name for entry in table().values() for name in entry.get("users", {})}
    groups = users | {name for entry in table().values() for name in entry.get("groups", {})}
    users |= {one.key for one in resources if one.kind == "user"}
    groups |= {one.key for one in resources if one.kind in ("user", "group")}
    for one in resources:
        for what, known in (("owner", users), ("group", groups)):
            name = one.declared.get(what)
            if one.kind == "file" and name is not None and name not in known:
                yield one.finding(
                    f"{one.key}: {what} {name}: no package of CentOS 7.7 and no role makes it; see {TABLE}"
                )


@rule
def stand_ins_are_as_the_packages_they_stand_for(root: Path) -> Iterator[Finding]:
    """Users, units, folders and files of a recipe are those of the table, or the table says why they differ."""
    path = root / RECIPES
    recipes = load_map(path)
    for name, recipe in recipes.items():
        own = root / "molecule/virtual_hal/packages/files" / name
        files = [f"/{one.relative_to(own)}" for one in sorted(own.rglob("*")) if one.is_file()]
        line = recipes.at(name)
        entry = table().get(name)
        if entry is None:
            if recipe.get("users") or (recipe.get("units") and not recipe.get("stand_in")):
                yield Finding(path, line, f"{name} has users or units; say in {TABLE} which the real package has")
            continue
        for text in (*_users(recipe, entry), *_units(recipe, entry), *_places(recipe, entry, files)):
            yield Finding(path, line, f"{name}: {text}")


def _users(recipe: Map, entry: Mapping[str, Any]) -> Iterator[str]:
    found = {one["name"]: one for one in recipe.get("users") or []}
    for name, real in entry.get("users", {}).items():
        if name not in found:
            yield f"the real package makes the user {name}"
            continue
        for key in ("uid", "home", "shell"):
            if found[name].get(key) != real.get(key):
                yield f"{key} of {name} is {found[name].get(key)}, the real package has {real.get(key)}"
    for name in found:
        if name not in entry.get("users", {}):
            yield f"the real package makes no user {name}"


def _units(recipe: Map, entry: Mapping[str, Any]) -> Iterator[str]:
    for unit in recipe.get("units") or []:
        if unit not in entry.get("units", []) and unit not in entry.get("differs", {}):
            yield f"the real package has no {unit}"


def _places(recipe: Map, entry: Mapping[str, Any], files: list[str]) -> Iterator[str]:
    folders_ = {f"{path}/": attributes for path, attributes in (recipe.get("folders") or {}).items()}
    links = {path: {"type": "link"} for path in recipe.get("links") or {}}
    modes = recipe.get("modes") or {}
    for path, attributes in {**{one: modes.get(one, {}) for one in files}, **links, **folders_}.items():
        if path.startswith(WATCHED) and not path.startswith(UNIT_FOLDERS):
            yield from differences(entry, path, attributes or {})


def differences(entry: Mapping[str, Any], path: str, found: Mapping[str, Any]) -> Iterator[str]:
    """How a place of a stand-in differs from the real package's, if the table gives no reason."""
    if path in entry.get("differs", {}):
        return
    real = entry["files"].get(path)
    if real is None:
        yield f"the real package has no {path}"
        return
    if found.get("type") == "link" or real.get("type") == "link":
        # A program may have another name behind a link.
        if found.get("type") != real.get("type") and path.startswith(WATCHED):
            yield f"{path} is a {real.get('type', 'file')} in the real package"
        return
    for key, default in (("mode", "0755" if path.endswith("/") else "0644"), ("owner", "root"), ("group", "root")):
        if found.get(key, default) != real.get(key, default):
            yield f"{key} of {path} is {found.get(key, default)}, in the real package {real.get(key, default)}"


def folders() -> frozenset[str]:
    """Every folder that a package of the table brings, and those above them."""
    named = [path.rstrip("/") for entry in table().values() for path in entry["files"] if path.endswith("/")]
    return frozenset(str(each) for path in named for each in (Path(path or "/"), *Path(path or "/").parents))


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """What each package brings."""
    data: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "packages.yml").read_text())
    return data
