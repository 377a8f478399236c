"""What a field of the table may contain: each border from both sides, and each refusal with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hal_cluster.rules.cuda.table import TABLE, Table, TableError, load

TEXT = TABLE.read_text()
IN_ORDER = "updates have to be in order, and so have their drivers"


def changed(folder: Path, old: str, new: str) -> Path:
    assert old in TEXT
    path = folder / "table.yml"
    path.write_text(TEXT.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        (
            'release: "9.0"',
            'release: "9.0.1"',
            "toolkits[0].release",
            '"9.0.1" is an exact version; write the release 9.0',
        ),
        (
            'release: "9.0"',
            "release: nine",
            "toolkits[0].release",
            '"nine" is not a release of CUDA; write one such as 10.2 or 10.2.89',
        ),
        (
            'version: "9.2.88"',
            "version: nine",
            "toolkits[2].updates[0].version",
            '"nine" is not a release of CUDA; write one such as 10.2 or 10.2.89',
        ),
        ("branch: 610", "branch: 99", "reaches.branch", "input should be greater than or equal to 100, not 99"),
        ("branch: 610", "branch: 10000", "reaches.branch", "input should be less than or equal to 9999, not 10000"),
        ("major: 11", "major: 10", "families[0].major", "input should be greater than or equal to 11, not 10"),
        ("name: Kepler GK104", "name: ''", "generations[0].name", "string should have at least 1 character, not ''"),
        (
            r"models: ['GTX 6[0-9]0\b', 'GTX 7[67]0\b', '\bK10\b', 'GRID K[12]\b']",
            "models: []",
            "generations[0].models",
            "tuple should have at least 1 item after validation, not 0, not ()",
        ),
        (
            'updates: [{version: "9.0.176", driver: "384.81"}]',
            "updates: []",
            "toolkits[0].updates",
            "tuple should have at least 1 item after validation, not 0, not ()",
        ),
        (
            'driver: "450.80.02", source: minor_versions',
            'driver: "450.80.02", source: []',
            "families[0].source",
            "value should have at least 1 item after validation, not 0, not ()",
        ),
        (
            'kernel: 3.10.0-1062.el7, drivers: ["440.33.01"]',
            'kernel: "", drivers: ["440.33.01"]',
            "kernels[2].kernel",
            "string should have at least 1 character, not ''",
        ),
        (
            'kernel: 3.10.0-1062.el7, drivers: ["440.33.01"]',
            "kernel: 3.10.0-1062.el7, drivers: []",
            "kernels[2].drivers",
            "tuple should have at least 1 item after validation, not 0, not ()",
        ),
        (
            "title: NVIDIA, CUDA 11.8 release notes",
            "title: ''",
            "sources.release_notes_11_8.title",
            "string should have at least 1 character, not ''",
        ),
        ('driver: "450.80.02", ', "", "families[0].driver", "is missing"),
        ('version: "9.1.85"', 'version: "9.0.85"', "toolkits[1].updates[0].version", "9.0.85 is not an update of 9.1"),
        ('toolkit: "13.4"', 'toolkit: "13.3"', "reaches.toolkit", "the last toolkit is 13.4"),
    ],
)
def test_a_fault_is_said_at_its_place_and_nothing_else(
    tmp_path: Path, old: str, new: str, where: str, message: str
) -> None:
    with pytest.raises(TableError) as caught:
        load(changed(tmp_path, old, new))
    (finding,) = caught.value.findings
    assert str(finding).endswith(f": {where}: {message}")


@pytest.mark.parametrize(
    "updates",
    [
        '{version: "9.2.148", driver: "396.26"}, {version: "9.2.88", driver: "396.37"}',
        '{version: "9.2.88", driver: "396.37"}, {version: "9.2.148", driver: "396.26"}',
        '{version: "9.2.88", driver: "396.26"}, {version: "9.2.88", driver: "396.26"}',
        '{version: "9.2.88", driver: "396.26"}, {version: "9.2.88", driver: null}, {version: "9.2.148", driver: null}',
    ],
)
def test_updates_and_their_drivers_are_in_order(tmp_path: Path, updates: str) -> None:
    old = '{version: "9.2.88", driver: "396.26"}, {version: "9.2.148", driver: "396.37"}'
    with pytest.raises(TableError) as caught:
        load(changed(tmp_path, old, updates))
    (finding,) = caught.value.findings
    assert (finding.field, finding.message) == ("toolkits[2].updates", IN_ORDER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{release: "9.1", updates: [{version: "9.1.85"', '{release: "9.0", updates: [{version: "9.0.85"'),
        ('{release: "9.0", updates: [{version: "9.0.176"', '{release: "9.2", updates: [{version: "9.2.176"'),
    ],
)
def test_releases_are_in_order_and_each_is_there_once(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(TableError) as caught:
        load(changed(tmp_path, old, new))
    (finding,) = caught.value.findings
    assert (finding.field, finding.message) == ("toolkits", "releases have to be in order, each once")


@pytest.mark.parametrize(("old", "new"), [("branch: 610", "branch: 100"), ("branch: 610", "branch: 9999")])
def test_the_first_and_the_last_branch_are_taken(tmp_path: Path, old: str, new: str) -> None:
    assert load(changed(tmp_path, old, new)).reaches.branch == int(new.split()[-1])


def test_all_faults_of_the_file_are_said(tmp_path: Path) -> None:
    path = tmp_path / "table.yml"
    path.write_text(TEXT.replace('toolkit: "13.4"', 'toolkit: "13.3"').replace('"9.1.85"', '"9.0.85"'))
    with pytest.raises(TableError) as caught:
        load(path)
    assert [finding.message for finding in caught.value.findings] == [
        "the last toolkit is 13.4",
        "9.0.85 is not an update of 9.1",
    ]


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.yml"
    path.write_text("toolkits: [")
    with pytest.raises(TableError, match=r"table\.yml:"):
        load(path)


def places(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict) and "source" in value:
        yield where
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*where, step))


def test_whatever_has_a_source_is_a_row() -> None:
    """A row that is left out could name a source that does not exist."""
    rows = dict(load().rows())
    assert sorted(rows, key=str) == sorted(places(yaml.safe_load(TEXT)), key=str)
    assert rows["forward_compatibility", "branches", 1].source == ("forward", "forward_modules")


def test_the_table_is_read_once_and_stays_as_it_was_read() -> None:
    table = load()
    assert load() is table
    for part in (table, table.toolkits[0], table.forward_compatibility.branches[0]):
        with pytest.raises(ValidationError, match="frozen"):
            part.__setattr__(next(iter(type(part).model_fields)), None)


def test_an_unknown_field_is_refused_in_a_branch_of_cuda_compat_too(tmp_path: Path) -> None:
    with pytest.raises(
        TableError, match=r"branches\[0\]\.until: unknown field; hal_cluster/rules/cuda/table\.py has the fields"
    ):
        load(changed(tmp_path, '"418.40.04", last:', '"418.40.04", until:'))


def test_a_generation_is_known_by_its_first_model_whatever_the_case() -> None:
    found = Table.generation(load(), "tesla v100-sxm2-16gb")
    assert found is not None
    assert found.name == "Volta"
