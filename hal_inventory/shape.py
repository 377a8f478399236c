"""From a document to typed declarations: every fault of shape becomes a finding in our own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hal_inventory.declared import ClusterFile
from hal_inventory.errors import RangeError
from hal_inventory.ranges import expand_list
from hal_inventory.reader import Document, Path_
from hal_inventory.suggest import did_you_mean

Kind = TypeVar("Kind", bound=BaseModel)

_STAND_INS: dict[str, Any] = {"format": 1, "name": "unnamed", "domain": "unnamed"}


@dataclass
class LeftOut:
    """What was at fault and is therefore not in the declarations. That it is missing is not a second fault.

    ``names`` of nodes, profiles and so on. With ``sections`` so much is missing that no name can be called unknown.
    """

    names: set[str] = field(default_factory=set)
    sections: bool = False

    @property
    def nothing(self) -> bool:
        """Whether everything is there."""
        return not self.names and not self.sections


def declarations(document: Document) -> tuple[ClusterFile | None, LeftOut]:
    """Return the declarations of a cluster.yml, and what was left out of them; faults are added to the document."""
    return shaped(ClusterFile, _STAND_INS, document)


def shaped(kind: type[Kind], stand_ins: Mapping[str, Any], document: Document) -> tuple[Kind | None, LeftOut]:
    """Return what a document declares as ``kind``, and what was left out of it; faults are added to the document.

    What is at fault is left out, so that the rest can be checked in the same run; None if too little is left.
    ``stand_ins`` are values for fields that must be there.
    """
    data: dict[str, Any] = document.plain()
    known = {(finding.line, finding.field) for finding in document.findings}
    try:
        return kind.model_validate(data), LeftOut()
    except ValidationError as error:
        faults = error.errors(include_url=False)
    noted = len(document.findings)
    for fault in faults:
        path = _path_of(fault)
        document.add(path, _words(fault, kind))
    document.findings[noted:] = [
        finding for finding in document.findings[noted:] if (finding.line, finding.field) not in known
    ]
    left_out = LeftOut()
    for fault in faults:
        _leave_out(data, fault, stand_ins, left_out)
    for name, value in stand_ins.items():
        data.setdefault(name, value)
    try:
        return kind.model_validate(data), left_out
    except ValidationError:
        return None, left_out


def _path_of(fault: ErrorDetails) -> Path_:
    return tuple(step for step in fault["loc"] if step != "[key]")


def _leave_out(data: dict[str, Any], fault: ErrorDetails, stand_ins: Mapping[str, Any], left_out: LeftOut) -> None:
    """Remove what is at fault: an unknown field alone, else the whole entry of its section, else the section."""
    *above, last = fault["loc"]
    if fault["type"] == "extra_forbidden":
        here: Any = data
        for step in above:
            here = here.get(step, {}) if isinstance(here, dict) else here[step] if isinstance(step, int) else {}
        here.pop(last, None)
        return
    section = str(fault["loc"][0])
    entries = data.get(section)
    if len(fault["loc"]) > 1 and isinstance(entries, dict) and section != "fabric":
        name = str(fault["loc"][1])
        entries.pop(name, None)
        try:
            left_out.names.update(expand_list(name))
        except RangeError:
            left_out.sections = True
    else:
        data.pop(section, None)
        left_out.sections = left_out.sections or section not in stand_ins


def fields_at(loc: tuple[int | str, ...], kind: type[BaseModel] = ClusterFile) -> dict[str, Any] | None:
    """Return the known fields of the mapping that holds the field at ``loc``; None where names are free."""
    name_follows = False
    for step in loc[:-1]:
        if name_follows or isinstance(step, int):  # a name in a mapping of things, a place in a list of them
            name_follows = False
            continue
        if step not in kind.model_fields:
            return None
        annotation = kind.model_fields[step].annotation
        inner = _inner(annotation)
        if inner is None:
            return None
        kind, name_follows = inner, _is_mapping(annotation)
    return dict(kind.model_fields)


def _is_mapping(annotation: Any) -> bool:
    return isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Mapping)


def _inner(annotation: Any) -> type[BaseModel] | None:
    """Return the model class that an annotation such as ``Mapping[str, Switch]`` or ``Fabric | None`` is about."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(_inner, get_args(annotation)) if model is not None), None)


def _seen(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
    return "a list" if isinstance(value, tuple) else "a mapping of fields"


def _unknown(fault: ErrorDetails, kind: type[BaseModel]) -> str:
    known = fields_at(fault["loc"], kind) or {}
    return f"unknown field{did_you_mean(str(fault['loc'][-1]), known, kind='fields')}"


def _wanted(what: str) -> Callable[[ErrorDetails], str]:
    return lambda fault: f"must be {what}, not {_seen(fault['input'])}"


def _text(fault: ErrorDetails) -> str:
    value = fault["input"]
    quote = "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
    what = "the number " if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
    return f"must be text, not {what}{_seen(value)}{quote}"


def _number(what: str) -> Callable[[ErrorDetails], str]:
    def words(fault: ErrorDetails) -> str:
        value = fault["input"]
        unquote = "; take the quotes away" if isinstance(value, str) and value.strip().isdigit() else ""
        return f"must be {what}, not {_seen(value)}{unquote}"

    return words


def _bound(what: str, limit: str) -> Callable[[ErrorDetails], str]:
    return lambda fault: f"must be {what} {fault['ctx'][limit]}, not {_seen(fault['input'])}"


def _choice(fault: ErrorDetails) -> str:
    return f"must be {fault['ctx']['expected'].replace(chr(39), '')}, not {_seen(fault['input'])}"


def _short(fault: ErrorDetails) -> str:
    return "must not be empty"


_WORDS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda fault: "is missing",
    "string_type": _text,
    "int_type": _number("a whole number"),
    "int_from_float": _number("a whole number"),
    "float_type": _number("a number"),
    "bool_type": _wanted("true or false"),
    "tuple_type": _wanted("a list"),
    "mapping_type": _wanted("a mapping of fields"),
    "dict_type": _wanted("a mapping of fields"),
    "model_type": _wanted("a mapping of fields"),
    "literal_error": _choice,
    "greater_than": _bound("more than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("less than", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "string_too_short": _short,
    "too_short": _short,
    "value_error": lambda fault: str(fault["ctx"]["error"]),
}


def _words(fault: ErrorDetails, kind: type[BaseModel]) -> str:
    if fault["type"] == "extra_forbidden":
        return _unknown(fault, kind)
    words = _WORDS.get(fault["type"])
    return words(fault) if words else fault["msg"]
