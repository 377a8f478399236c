"""The JSON Schema of expect.yml, built from the vocabulary, for editors. expect.schema.json is its text."""

from __future__ import annotations

import json
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

TEMPLATE = {"type": "string", "pattern": r"\{\{|\{%"}
FLAG_VALUE: dict[str, Any] = {"anyOf": [{"type": "boolean"}, {"enum": list(FLAG_WORDS)}]}
NUMBER_VALUE: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{NUMBER_TEXT}$"}]}
TYPES: dict[str, dict[str, Any]] = {
    TEXT: {"type": "string", "pattern": r"\S"},
    NUMBER: NUMBER_VALUE,
    FLAG: FLAG_VALUE,
    TEXTS: {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}},
    NUMBERS: {"type": "array", "minItems": 1, "items": {"anyOf": [NUMBER_VALUE, TEMPLATE]}},
}
FALSE = [False, "false", "no", "off"]
NOT_EMPTY: dict[str, Any] = {"not": {"enum": [None, []]}}
WANTED: dict[str, dict[str, Any]] = {
    "equal": {"not": {"type": "null"}},
    "contain": NOT_EMPTY,
    "match": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]},
    "count": {
        "anyOf": [
            NUMBER_VALUE,
            TEMPLATE,
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {name: {"anyOf": [NUMBER_VALUE, TEMPLATE]} for name in ("at_least", "at_most")},
            },
        ]
    },
    "at_least": {"type": ["number", "string"]},
    "at_most": {"type": ["number", "string"]},
    "one_of": {"anyOf": [{"type": "array", "minItems": 1}, TEMPLATE]},
    "absent": {"anyOf": [FLAG_VALUE, TEMPLATE]},
}


def build() -> dict[str, Any]:
    """Return the schema. Same vocabulary, same document."""
    entry = _object(ENTRY_FIELDS)
    for name in ("id", "why"):
        entry["properties"][name] = {"type": "string", "pattern": r"\S", "not": TEMPLATE}
    entry["properties"].update({name: _reader(name) for name in READERS})
    entry["properties"].update({name: WANTED[name] for name in MATCHERS})
    entry["allOf"] = [{"oneOf": [{"required": [name]} for name in words]} for words in (READERS, MATCHERS)]
    # A secret has no place in the node's health check: see hal_cluster/expect/check.py.
    entry["not"] = {"required": ["secret", "health"], "properties": {"secret": {"not": {"enum": FALSE}}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "expect.yml: what a role promises",
        "description": "See docs/expectations.md. Every value of a reader or matcher may be a template.",
        "type": "array",
        "minItems": 1,
        "items": entry,
    }


def text() -> str:
    """Return the schema as the committed file has it."""
    return json.dumps(build(), indent=2) + "\n"


def _reader(name: str) -> dict[str, Any]:
    schema = _object(READERS[name])
    if name == "service":
        schema["properties"]["read"] = {
            "anyOf": [{"enum": list(SERVICE_READS)}, {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$"}, TEMPLATE]
        }
    if name == "command":
        pairs = (["lines", "json"], ["lines", "exit"], ["json", "exit"])
        schema["not"] = {"anyOf": [{"required": pair} for pair in pairs]}
    if name == "kernel-module":
        schema["not"] = {"required": ["read", "parameter"]}
    return schema


def _object(fields: dict[str, Field]) -> dict[str, Any]:
    properties = {}
    for name, (kind, allowed, _required) in fields.items():
        value = {"enum": list(allowed)} if allowed else TYPES.get(kind)
        properties[name] = {"anyOf": [value, TEMPLATE]} if value else {}
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": [name for name, (_kind, _allowed, required) in fields.items() if required],
    }
