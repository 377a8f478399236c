"""Check expectations against the vocabulary: one finding for each fault, with its field and what would be right.

Works on plain data, before anything is templated: a text with {{ in it may become any type and is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hal_cluster.expect.vocabulary import (
    ENTRY_FIELDS,
    FLAG,
    FLAG_WORDS,
    MATCHERS,
    NUMBER,
    NUMBER_TEXT,
    NUMBERS,
    READERS,
    SERVICE_READS,
    TEXT,
    TEXTS,
    Field,
)

#: (path of keys to the faulty field, what is wrong)
Problem = tuple[tuple[str | int, ...], str]


def is_template(value: object) -> bool:
    """Say whether Ansible would evaluate this value."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def problems_of_entry(entry: object) -> list[Problem]:
    """Return everything that is wrong with one entry, in a fixed order. An empty list means it can be evaluated."""
    if not isinstance(entry, Mapping):
        return [((), "an entry has to be a mapping with id, why, a reader and a matcher")]
    return [
        *_fields(entry),
        *_choice(entry, "reader", READERS),
        *_choice(entry, "matcher", MATCHERS),
        *_reader(entry),
        *_matcher(entry),
    ]


def problems_of_list(entries: object) -> list[Problem]:
    """Return everything that is wrong with the content of a file, ids that occur twice included."""
    if not isinstance(entries, list) or not entries:
        return [((), "has to be a list of expectations that is not empty")]
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for position, entry in enumerate(entries):
        problems.extend(((position, *where), what) for where, what in problems_of_entry(entry))
        name = entry.get("id") if isinstance(entry, Mapping) else None
        if isinstance(name, str):
            if name in seen:
                problems.append(((position, "id"), f'"{name}" is used twice; an id names one entry'))
            seen[name] = position
    return problems


def _fields(entry: Mapping[str, Any]) -> Iterator[Problem]:
    known = {*ENTRY_FIELDS, *READERS, *MATCHERS}
    for name in entry:
        if name not in known:
            words = f"readers: {_names(READERS)}; matchers: {_names(MATCHERS)}"
            yield (name,), f"is not a field, reader or matcher; {words}"
    yield from _values(entry, ENTRY_FIELDS, ())
    for name in ("id", "why"):
        if is_template(entry.get(name)):
            yield (name,), "cannot be a template: it is the same on every node"
    if "health" in entry and str(entry.get("secret", False)).lower() not in ("false", "no", "off"):
        yield ("health",), "a secret would be in a file on the node, and its value in the reason of a drain"


def _choice(entry: Mapping[str, Any], kind: str, words: Mapping[str, object]) -> Iterator[Problem]:
    chosen = [name for name in entry if name in words]
    if len(chosen) != 1:
        have = " and ".join(str(name) for name in chosen) or "none"
        yield (), f"needs exactly one {kind} ({_names(words)}), has {have}"


def _values(mapping: Mapping[str, Any], fields: Mapping[str, Field], where: tuple[str | int, ...]) -> Iterator[Problem]:
    for name, (kind, allowed, required) in fields.items():
        if name not in mapping:
            if required:
                yield where, f"needs {name}"
            continue
        value = mapping[name]
        if is_template(value):
            continue
        fault = _type_fault(value, kind)
        if fault:
            yield (*where, name), fault
        elif allowed and value not in allowed:
            yield (*where, name), f'"{value}" has to be one of {", ".join(allowed)}'


def _type_fault(value: object, kind: str) -> str:
    if kind == TEXT and (not isinstance(value, str) or not value.strip()):
        return "has to be a text that is not empty (a number needs quotes)"
    if kind == NUMBER and not _is_number(value):
        return "has to be a number"
    if kind == FLAG and not (isinstance(value, bool) or str(value).lower() in FLAG_WORDS):
        return "has to be true or false"
    items = value if isinstance(value, list) else []
    if kind == TEXTS and not (items and all(isinstance(item, str | int | float) for item in items)):
        return "has to be a list of texts that is not empty"
    if kind == NUMBERS and not (items and all(_is_number(item) or is_template(item) for item in items)):
        return "has to be a list of numbers that is not empty"
    return ""


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or bool(re.fullmatch(NUMBER_TEXT, str(value)))


def _reader(entry: Mapping[str, Any]) -> Iterator[Problem]:
    for name in entry:
        if name not in READERS:
            continue
        request = entry[name]
        if not isinstance(request, Mapping):
            yield (name,), "has to be a mapping: {" + ", ".join(READERS[name]) + "}"
            continue
        for field in request:
            if field not in READERS[name]:
                yield (name, field), f"is not a field of {name}; it has {', '.join(READERS[name])}"
        yield from _values(request, READERS[name], (name,))
        yield from _combination(name, request)


def _combination(name: str, request: Mapping[str, Any]) -> Iterator[Problem]:
    select = request.get("select")
    if isinstance(select, str) and not is_template(select):
        yield from _regex(select, (name, "select"))
    if "path" in request and not is_template(request["path"]) and not str(request["path"]).startswith("/"):
        yield (name, "path"), "has to be an absolute path"
    if select is not None and name == "file" and request.get("read", "content") not in ("content", "lines"):
        yield (name, "select"), "keeps lines, so it goes with read: content or lines"
    if name == "command" and len({"lines", "json", "exit"}.intersection(request)) > 1:
        yield (name,), "takes one of lines, json and exit"
    if name == "kernel-module" and "read" in request and "parameter" in request:
        yield (name,), "reads one thing: take read or parameter"
    read = request.get("read")
    if (
        name == "service"
        and isinstance(read, str)
        and not is_template(read)
        and read not in SERVICE_READS
        and not re.fullmatch("[A-Z][A-Za-z0-9]*", read)
    ):
        yield (name, "read"), f'"{read}" has to be one of {", ".join(SERVICE_READS)}, or a systemd property'


def _matcher(entry: Mapping[str, Any]) -> Iterator[Problem]:
    for name in entry:
        if name not in MATCHERS:
            continue
        wanted = entry[name]
        if wanted is None:
            yield (name,), "has no value"
        elif is_template(wanted):
            continue
        elif name == "absent":
            if _type_fault(wanted, FLAG):
                yield (name,), "has to be true or false"
        elif name == "one_of":
            if not isinstance(wanted, list) or not wanted:
                yield (name,), "has to be a list that is not empty"
        elif name in ("contain", "match") and wanted == []:
            yield (name,), "is an empty list: nothing would be checked"
        elif name == "match":
            for pattern in wanted if isinstance(wanted, list) else [wanted]:
                if not is_template(pattern):
                    yield from _regex(pattern, (name,))
        elif name == "count":
            yield from _count(wanted)
        elif name == "equal" and _reads_mode(entry) and not isinstance(wanted, str):
            yield (name,), 'a file mode needs quotes: "0644"; without them YAML makes it the number 420'
        elif name in ("at_least", "at_most") and not (isinstance(wanted, str) or _is_number(wanted)):
            yield (name,), "has to be a number, or a version in quotes"


def _reads_mode(entry: Mapping[str, Any]) -> bool:
    request = entry.get("file")
    return isinstance(request, Mapping) and request.get("read") == "mode"


def _count(wanted: object) -> Iterator[Problem]:
    if isinstance(wanted, Mapping):
        if not wanted or set(wanted) - {"at_least", "at_most"}:
            yield ("count",), "is a number, or {at_least: n, at_most: m}"
        for name, value in wanted.items():
            if not is_template(value) and not _is_number(value):
                yield ("count", name), "has to be a number"
    elif not _is_number(wanted):
        yield ("count",), "is a number, or {at_least: n, at_most: m}"


def _regex(pattern: Any, where: tuple[str | int, ...]) -> Iterator[Problem]:
    if not isinstance(pattern, str):
        yield where, "has to be a regular expression, as a text"
        return
    try:
        re.compile(pattern)
    except re.error as error:
        yield where, f"is not a regular expression: {error}"


def _names(words: Mapping[str, object]) -> str:
    return ", ".join(words)
