"""What a role says of its variables is what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.contract.project import Finding, Map, load_map, roles, rule, strings

GIVEN = ("inventory/*/group_vars/**/*.yml", "molecule/*/group_vars/**/*.yml")
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "path": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (Map,),
}
NUMBERS = ("int", "float")


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

    It may be left out there when it is a template, which Ansible would evaluate once more at each validation, and when
    the option can be null (see null_is_let_through).
    """
    for role in roles(root):
        path = role / "defaults" / "main.yml"
        defaults, options = load_map(path), _options(role)
        for name, value in defaults.items():
            option, line = options.get(name), defaults.at(name)
            if not isinstance(option, Map):
                yield Finding(path, line, f"{name} is not in meta/argument_specs.yml; add it with this default")
            elif "default" not in option:
                if value is not None and not _templated(value) and not _nullable(option):
                    yield Finding(
                        path, line, f"{name}: meta/argument_specs.yml has no default, here is {_short(value)}"
                    )
            elif not _same(option["default"], value):
                here, there = _short(value), _short(option["default"])
                yield Finding(path, line, f"{name}: {here} here, {there} in meta/argument_specs.yml; make them equal")


@rule
def values_are_of_their_type(root: Path) -> Iterator[Finding]:
    """What defaults and group variables give an option is of its type, as written: Ansible makes a list of "a, b"."""
    given = sorted(path for place in GIVEN for path in root.glob(place))
    for role in roles(root):
        options = _options(role)
        for path in (role / "defaults" / "main.yml", *given):
            values = load_map(path)
            for name in values.keys() & options.keys() if isinstance(values, Map) else ():
                for fault in _other_type(options[name], values[name], name):
                    yield Finding(path, values.at(name), fault)


def _other_type(option: Any, value: Any, where: str) -> Iterator[str]:
    kind = str(option.get("type")) if isinstance(option, Map) else ""
    if kind not in TYPES or value is None or (isinstance(value, str) and "{{" in value):
        return
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind in NUMBERS):
        yield f"{where} is {_short(value)}, and {kind} in meta/argument_specs.yml; make them agree"
    elif isinstance(value, list) and option.get("elements"):
        one = Map({**option, "type": option["elements"]})
        for at, item in enumerate(value):
            yield from _other_type(one, item, f"{where}[{at}]")
    elif isinstance(value, Map) and isinstance(option.get("options"), Map):
        for name in value.keys() & option["options"].keys():
            yield from _other_type(option["options"][name], value[name], f"{where}.{name}")


@rule
def null_is_let_through(root: Path) -> Iterator[Finding]:
    """An option whose description says what null does can be null: Ansible has to let it through."""
    for role in roles(root):
        path, options = role / "meta" / "argument_specs.yml", _options(role)
        for name, option in options.items():
            if not (isinstance(option, Map) and _nullable(option)):
                continue
            if option.get("default") is not None:
                yield Finding(
                    path, options.at(name), f"{name} can be null, refused beside a default; leave the default out"
                )
            if "choices" in option and None not in option["choices"]:
                yield Finding(path, options.at(name), f"{name} can be null, not one of its choices; add null there")


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


def _nullable(option: Map) -> bool:
    """Whether an option itself, not something inside it, can be null, by its description."""
    return (
        option.get("type") not in ("dict", "list")
        and re.search(r"\bnull\b", str(option.get("description"))) is not None
    )
