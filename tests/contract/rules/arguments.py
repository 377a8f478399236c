"""What a role says of its variables is what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.contract.project import Finding, Map, load_map, roles, rule, strings


def _options(role: Path) -> Map:
    """The options of the role's main entry point."""
    node: Any = load_map(role / "meta" / "argument_specs.yml")
    for key in ("argument_specs", "main", "options"):
        node = node.get(key) if isinstance(node, Map) else None
    return node if isinstance(node, Map) else load_map(Path("/nonexistent"))


def _undescribed(path: Path, options: Map, where: str = "") -> Iterator[Finding]:
    for name, option in options.items():
        if not isinstance(option, Map):
            yield Finding(path, options.at(name), f"{where}{name} is no mapping; give it type and description")
            continue
        for field in ("type", "description"):
            if not option.get(field):
                yield Finding(
                    path, options.at(name), f"{where}{name} has no {field}; say what it may be and what it means"
                )
        if isinstance(option.get("options"), Map):
            yield from _undescribed(path, option["options"], f"{where}{name}.")


@rule
def every_argument_is_described(root: Path) -> Iterator[Finding]:
    """Each option, nested ones too, in every entry point, has a type and a description."""
    for role in roles(root):
        path = role / "meta" / "argument_specs.yml"
        for entry in (load_map(path).get("argument_specs") or {}).values():
            if isinstance(entry, Map) and isinstance(entry.get("options"), Map):
                yield from _undescribed(path, entry["options"])


@rule
def defaults_are_in_the_specification(root: Path) -> Iterator[Finding]:
    """Each default is an option of entry point main, with the same default.

    A default that is a template may be left out there: Ansible would template it a second time at each validation.
    """
    for role in roles(root):
        path = role / "defaults" / "main.yml"
        defaults, options = load_map(path), _options(role)
        for name, value in defaults.items():
            option, line = options.get(name), defaults.at(name)
            if not isinstance(option, Map):
                yield Finding(path, line, f"{name} is not in meta/argument_specs.yml; add it with this default")
            elif "default" not in option:
                if value is not None and not _templated(value):
                    yield Finding(
                        path, line, f"{name}: meta/argument_specs.yml has no default, here is {_short(value)}"
                    )
            elif not _same(option["default"], value):
                here, there = _short(value), _short(option["default"])
                yield Finding(path, line, f"{name}: {here} here, {there} in meta/argument_specs.yml; make them equal")


@rule
def the_specification_is_in_the_defaults(root: Path) -> Iterator[Finding]:
    """Each option of entry point main has a default in defaults/main.yml, or is required."""
    for role in roles(root):
        defaults, options = load_map(role / "defaults" / "main.yml"), _options(role)
        path = role / "meta" / "argument_specs.yml"
        for name, option in options.items():
            required = isinstance(option, Map) and option.get("required") is True
            if name in defaults and required:
                yield Finding(
                    path,
                    options.at(name),
                    f"{name} is required and has a default in defaults/main.yml; keep one of the two",
                )
            if name not in defaults and not required:
                yield Finding(
                    path, options.at(name), f"{name} is not in defaults/main.yml; give it a default or required: true"
                )


def _same(left: Any, right: Any) -> bool:
    """Equal in value and type: to a role, 1 is not true and "1" is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return left.strip() == right.strip()
    return bool(left == right)


def _templated(value: Any) -> bool:
    return any("{{" in text for text in strings(value))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
