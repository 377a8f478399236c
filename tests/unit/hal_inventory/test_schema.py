"""The printed JSON Schema and the reader agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hal_inventory.declared import ClusterFile
from hal_inventory.reader import parse


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return ClusterFile.model_json_schema()


def plain(value: Any) -> Any:
    """Return data with lists for tuples, as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_sites_are_valid(schema: dict[str, Any], root: Path) -> None:
    sites = [*(root / "inventory").glob("*/cluster.yml"), *(root / "tests" / "sites").glob("*/cluster.yml")]
    assert len(sites) >= 3
    for site in sites:
        jsonschema.validate(plain(parse(site.read_bytes(), site.name).plain()), schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [("role: login", "role: king"), ("drives: 12", "drives: 0"), ("format: 1", "format: 2"), ("services:", "servces:")],
)
def test_what_the_reader_refuses_is_invalid(schema: dict[str, Any], small: str, old: str, new: str) -> None:
    data = plain(parse(small.replace(old, new, 1).encode(), "cluster.yml").plain())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)
