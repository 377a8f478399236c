"""The table itself: what it may contain, and a fault of it is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal_cluster.rules.cuda.table import TABLE, TableError, load
from hal_cluster.rules.cuda.versions import driver_version, order

TEXT = TABLE.read_text()


def faults(folder: Path, old: str, new: str) -> list[str]:
    assert TEXT.count(old) >= 1
    path = folder / "table.yml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(TableError) as caught:
        load(path)
    return [finding.message for finding in caught.value.findings]


def test_a_later_toolkit_needs_no_older_driver() -> None:
    table = load()
    drivers = [driver_version(one.driver) for row in table.toolkits for one in row.updates if one.driver]
    assert len(drivers) > 50
    assert drivers == sorted(drivers)


def test_what_a_major_version_runs_on_is_no_more_than_its_last_toolkit_needs() -> None:
    table = load()
    for family in table.families:
        needs = [
            driver_version(one.driver)
            for row in table.toolkits
            for one in row.updates
            if order(row.release)[0] == family.major and one.driver
        ]
        assert needs
        assert driver_version(family.driver) <= max(needs)


@pytest.mark.parametrize(
    ("model", "generation"),
    [
        ("Tesla K80", "Kepler"),
        ("Tesla K40m", "Kepler"),
        ("GeForce GTX 680", "Kepler GK104"),
        ("GeForce GTX 970", "Maxwell"),
        ("GeForce GTX TITAN X", "Maxwell"),
        ("Tesla M40 24GB", "Maxwell"),
        ("GeForce GTX 1080 Ti", "Pascal"),
        ("Titan Xp", "Pascal"),
        ("Tesla P100-SXM2-16GB", "Pascal"),
        ("Tesla V100-SXM2-16GB", "Volta"),
        ("Tesla V100S-PCIE-32GB", "Volta"),
        ("TITAN V", "Volta"),
        ("GeForce RTX 2080", "Turing"),
        ("GeForce GTX 1660 SUPER", "Turing"),
        ("Tesla T4", "Turing"),
        ("NVIDIA A100-SXM4-80GB", "Ampere"),
        ("NVIDIA GeForce RTX 3090", "Ampere"),
        ("NVIDIA RTX A6000", "Ampere"),
        ("NVIDIA L40S", "Ada"),
        ("NVIDIA RTX 6000 Ada Generation", "Ada"),
        ("NVIDIA H100 80GB HBM3", "Hopper"),
        ("NVIDIA GH200 480GB", "Hopper"),
        ("NVIDIA B200", "Blackwell"),
        ("NVIDIA GeForce RTX 5090", "Blackwell"),
    ],
)
def test_a_model_is_of_its_generation_and_of_no_other(model: str, generation: str) -> None:
    found = load().generation(model)
    assert found is not None
    assert found.name == generation


@pytest.mark.parametrize("model", ["", "GPU", "Radeon VII", "Tesla C2075", "XV100X"])
def test_a_model_that_nobody_entered_is_of_none(model: str) -> None:
    assert load().generation(model) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('release: "9.0"', "release: 9.0", "must be text, not the number 9.0; put it in quotes"),
        ('driver: "384.81"}]', 'driver: "384"}]', '"384" is not a version of a driver; write one such as 440.33.01'),
        ('version: "10.2.89"', 'version: "10.2"', '"10.2" is a release; write an exact version such as 10.2.89'),
        ('version: "10.2.89"', 'version: "10.1.89"', "10.1.89 is not an update of 10.2"),
        ("source: rhel7_ppc64le", "source: rhel7_ppc64", 'there is no source "rhel7_ppc64"; add it under sources'),
        ('{release: "9.1",', '{release: "8.1",', "releases have to be in order, each once"),
        ('toolkit: "13.4"', 'toolkit: "13.3"', "the last toolkit is 13.4"),
        ("last_branch:", "last_brunch:", "unknown field; hal_cluster/rules/cuda/table.py has the fields"),
        (r"'\bL(4|", r"'\bL((4|", "is not a regular expression"),
        ("format: 1", "format: 2", "not 2"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert any(message in one for one in faults(tmp_path, old, new))


def test_a_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "table.yml"
    path.write_text(TEXT.replace('release: "9.0"', "release: 9.0", 1))
    line = 1 + TEXT[: TEXT.index('release: "9.0"')].count("\n")
    with pytest.raises(TableError, match=rf"table\.yml:{line}: toolkits\[0\]\.release: "):
        load(path)
