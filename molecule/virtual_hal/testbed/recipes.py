"""Read recipes.yml, which declares the packages of the repository; an error names file, line and field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from testbed.errors import VirtualNodesError

AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\s]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Suite = Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]
UnitName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9@._-]+\.(service|timer|socket|target)$")]
Octal = Annotated[str, StringConstraints(pattern=r"^0[0-7]{3,4}$")]
LocationLines = dict[tuple[str | int, ...], int]


class RecipeError(VirtualNodesError):
    """recipes.yml cannot be used; one finding a line."""


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt one would otherwise silently do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Group(Strict):
    """A group that the package makes before it is unpacked."""

    name: Name
    gid: int | None = None


class User(Strict):
    """A system user that the package makes before it is unpacked, with a group of its own name."""

    name: Name
    uid: int | None = None
    home: AbsolutePath = "/"
    shell: AbsolutePath = "/sbin/nologin"
    comment: str = ""


class Mode(Strict):
    """Owner and permissions of one path; mode None means what the file has."""

    mode: Octal | None = None
    owner: Name = "root"
    group: Name = "root"


class Recipe(Strict):
    """One package, as recipes.yml declares it; the comment at the head of that file explains the fields."""

    summary: str
    arches: tuple[Literal["x86_64", "ppc64le"], ...] = ("x86_64", "ppc64le")
    payload: tuple[Name, ...] = ()
    libraries: tuple[Name, ...] = ()
    suites: dict[Name, Suite] = Field(default_factory=dict)
    private: tuple[Name, ...] = ()
    keep: tuple[AbsolutePath, ...] = ()
    move: dict[AbsolutePath, AbsolutePath] = Field(default_factory=dict)
    links: dict[AbsolutePath, str] = Field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    users: tuple[User, ...] = ()
    folders: dict[AbsolutePath, Mode] = Field(default_factory=dict)
    modes: dict[AbsolutePath, Mode] = Field(default_factory=dict)
    units: tuple[UnitName, ...] = ()
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before_removal: tuple[str, ...] = ()
    version: str | None = None
    stand_in: bool = False


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with the file."""

    line: int
    field: str
    text: str


def load(path: Path) -> dict[str, Recipe]:
    """Return the recipes by package name; raise RecipeError with every finding."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read: {error}") from None
    data, lines, findings = _parse(path, text)
    recipes: dict[str, Recipe] = {}
    for name, body in data.items():
        try:
            recipes[name] = Recipe.model_validate(body)
        except ValidationError as error:
            for problem in error.errors():
                where = (name, *problem["loc"])
                findings.append(Finding(_line(lines, where), ".".join(map(str, where)), _explain(problem)))
    findings += _cross_check(recipes, lines, path.parent / "files")
    if findings:
        findings.sort(key=lambda finding: finding.line)
        raise RecipeError("\n".join(f"{path}:{finding.line}: {finding.field}: {finding.text}" for finding in findings))
    return recipes


def _explain(problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown field; the fields are {', '.join(Recipe.model_fields)}"
    if problem["type"] == "missing":
        return "is required"
    return f"{problem['msg']}, got {problem['input']!r}"


def _cross_check(recipes: dict[str, Recipe], lines: LocationLines, files: Path) -> list[Finding]:
    """Find what a single field cannot show: references to packages, owners and files that do not exist."""
    findings = []

    def add(text: str, *where: str | int) -> None:
        findings.append(Finding(_line(lines, where), ".".join(map(str, where)), text))

    for name, recipe in recipes.items():
        own = [path for path in (files / name).rglob("*") if path.is_file()]
        if recipe.stand_in and not recipe.version:
            add("a stand-in has no Debian package to take its version from: give one", name, "version")
        if not recipe.payload and not own:
            add(f"no payload, and no files in files/{name}/: the package would be empty", name, "payload")
        if not recipe.payload and recipe.version is None and not recipe.stand_in:
            add("without payload a version is needed", name, "version")
        for package in recipe.suites:
            if package not in (*recipe.payload, *recipe.libraries, *recipe.private):
                add(f"{package!r} is in none of payload, libraries and private", name, "suites", package)
        if recipe.private and not recipe.payload:
            add("no payload whose programs would run with them", name, "private")
        for index, other in enumerate(recipe.requires):
            if other not in recipes:
                add(f"no recipe makes {other!r}", name, "requires", index)
        owners = {"root", *(user.name for user in recipe.users), *_users_of(recipe.requires, recipes)}
        groups = {"root", *owners, *(group.name for group in recipe.groups)}
        for field in ("folders", "modes"):
            for path, mode in getattr(recipe, field).items():
                if mode.owner not in owners:
                    add(f"owner {mode.owner!r} is made by no package that this one requires", name, field, path)
                if mode.group not in groups:
                    add(f"group {mode.group!r} is made by no package that this one requires", name, field, path)
        if not recipe.payload:
            shipped = {path.name for path in own}
            for index, unit in enumerate(recipe.units):
                if unit not in shipped:
                    add(f"no file {unit} in files/{name}/usr/lib/systemd/system/", name, "units", index)
    return findings


def _users_of(names: tuple[str, ...], recipes: dict[str, Recipe]) -> set[str]:
    return {user.name for name in names if name in recipes for user in recipes[name].users}


def _line(lines: LocationLines, where: tuple[str | int, ...]) -> int:
    """Return the line of the innermost part of a place that is in the file."""
    for length in range(len(where), 0, -1):
        if where[:length] in lines:
            return lines[where[:length]]
    return 1


def _parse(path: Path, text: str) -> tuple[dict[str, Any], LocationLines, list[Finding]]:
    """Return the file's mapping, the line of every place in it, and findings about keys given twice."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise RecipeError(f"{path}:{line}: not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(root, yaml.MappingNode) or not isinstance(data, dict):
        raise RecipeError(f"{path}:1: must be a mapping of package names to recipes")
    lines: LocationLines = {}
    findings: list[Finding] = []

    def walk(node: yaml.Node, where: tuple[str | int, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*where, key.value)
                if inner in lines:
                    findings.append(
                        Finding(
                            key.start_mark.line + 1,
                            ".".join(map(str, inner)),
                            f"is there twice, first in line {lines[inner]}",
                        )
                    )
                    continue
                lines[inner] = key.start_mark.line + 1
                walk(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                inner = (*where, index)
                lines[inner] = item.start_mark.line + 1
                walk(item, inner)

    walk(root, ())
    return data, lines, findings
