"""Values that are not secrets: those that everybody tries first, and those that test sites have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

PROJECT = Path(__file__).resolve().parents[2]
DEFAULTS = frozenset(
    {
        "0penbmc",
        "admin",
        "calvin",
        "changeme",
        "change_me",
        "default",
        "example",
        "grafana",
        "guest",
        "hal",
        "influxdb",
        "letmein",
        "munge",
        "mysql",
        "none",
        "null",
        "pass",
        "passw0rd",
        "password",
        "placeholder",
        "qwerty",
        "root",
        "secret",
        "slurm",
        "slurmpass",
        "test",
        "todo",
        "xxx",
    }
)
SHORTEST = 12
FEWEST_CHARACTERS = 6


def problems(values: Mapping[str, object], values_of_tests: Iterable[str]) -> list[str]:
    """Return a line for each value that is not a secret: its name and why, never its value."""
    tests = {value.strip() for value in values_of_tests}
    faults = ((name, _problem(value, tests)) for name, value in sorted(values.items()))
    return [f"{name} {why}" for name, why in faults if why]


def site_problems(values: Mapping[str, object]) -> list[str]:
    """Return a line for each value that is not a secret: its variable and why, never the value.

    What the test sites of this checkout have is not a secret, either.
    """
    return problems(values, values_of_tests(PROJECT))


def _problem(value: object, tests: set[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        return "is empty"
    text = value.strip()
    if text in tests:
        return "is that of a test site"
    if re.sub(r"[\W\d_]+$", "", text.lower()) in DEFAULTS or text.lower() in DEFAULTS:
        return "is a well-known default"
    if len(text) < SHORTEST:
        return f"has fewer than {SHORTEST} characters"
    if len(set(text)) < FEWEST_CHARACTERS:
        return f"has fewer than {FEWEST_CHARACTERS} different characters"
    return ""


def values_of_tests(root: Path) -> Iterator[str]:
    """Yield what the virtual site made for itself, and what scenarios and the virtual site have written down."""
    for path in sorted((root / ".state" / "virtual" / "secrets").glob("*")):
        yield path.read_text(encoding="utf-8", errors="replace").split(" salt=")[0].strip()
    for path in sorted(
        [*(root / "molecule").rglob("vault*.yml"), *(root / "inventory" / "virtual").rglob("vault*.yml")]
    ):
        text = path.read_text(encoding="utf-8")
        if text.startswith("$ANSIBLE_VAULT"):
            continue
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        yield from (value for value in (values or {}).values() if isinstance(value, str) and "{{" not in value)
