"""Rows of nvidia-smi that are not as declared, and udev rules without memory in both of their forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.errors import RuleError
from hal_cluster.rules.nvidia_driver import MARK, at_least, at_most, rows_unlike, udev_without_memory

PROJECT = Path(__file__).resolve().parents[4]
CAPTURES = PROJECT / "tests/unit/roles/nvidia_driver/captures"
FIELDS = ["index", "name", "memory.total", "temperature.gpu"]


@given(st.integers(1, 200_000), st.integers(-2_000, 2_000))
def test_the_patterns_of_numbers_agree_with_numbers(limit: int, further: int) -> None:
    number = abs(limit + further)
    assert bool(re.fullmatch(at_least(limit), str(number))) == (number >= limit)
    assert bool(re.fullmatch(at_most(limit), str(number))) == (number <= limit)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"temperature.gpu": {"at_most": 86}}, ["1, Tesla V100-SXM2-32GB, 32480, 87"]),
        (
            {"temperature.gpu": {"at_most": 32}},
            ["0, Tesla V100-SXM2-16GB, 16130, 33", "1, Tesla V100-SXM2-32GB, 32480, 87"],
        ),
        ({"name": "Tesla V100-SXM2-16GB"}, ["1, Tesla V100-SXM2-32GB, 32480, 87"]),
        (
            {"name": "Tesla V100-SXM2-16G."},
            ["0, Tesla V100-SXM2-16GB, 16130, 33", "1, Tesla V100-SXM2-32GB, 32480, 87"],
        ),
        ({"memory.total": {"at_least": 16131}}, ["0, Tesla V100-SXM2-16GB, 16130, 33"]),
        ({"index": [0, 1]}, []),
        ({}, []),
    ],
)
def test_rows_that_are_not_as_declared_are_found(wanted: dict[str, object], found: list[str]) -> None:
    lines = [
        "0, Tesla V100-SXM2-16GB, 16130, 33",
        "1, Tesla V100-SXM2-32GB, 32480, 87",
        "Unable to determine the device handle for GPU 0004:05:00.0: GPU is lost.",
    ]
    pattern = rows_unlike(FIELDS, [wanted])
    assert [line for line in lines if re.fullmatch(pattern, line)] == found


def test_a_value_that_is_no_number_is_not_within_limits() -> None:
    pattern = rows_unlike(["index", "temperature.gpu"], [{"temperature.gpu": {"at_most": 86}}])
    assert re.fullmatch(pattern, "0, [Unknown Error]")


def test_each_row_may_be_any_of_those_declared() -> None:
    pattern = rows_unlike(["index", "name"], [{"index": 0, "name": "a"}, {"index": 1, "name": "b"}])
    assert [row for row in ("0, a", "1, b", "0, b", "2, a") if re.fullmatch(pattern, row)] == ["0, b", "2, a"]


def test_a_field_that_is_not_asked_is_refused() -> None:
    with pytest.raises(RuleError, match=r"power\.draw is not among the fields that are asked: index"):
        rows_unlike(["index"], [{"power.draw": 1}])


@pytest.mark.parametrize(("release", "lines"), [("7.5", 1), ("7.7", 7)])
def test_the_memory_rule_becomes_a_comment_and_nothing_else_changes(release: str, lines: int) -> None:
    text = (CAPTURES / f"40-redhat.rules.{release}").read_text()
    made = udev_without_memory(text)
    changed = [new for old, new in zip(text.splitlines(), made.splitlines(), strict=True) if old != new]
    assert len(changed) == lines
    assert all(line.startswith(MARK) for line in changed)
    assert 'SUBSYSTEM=="cpu"' in made
    assert not [line for line in made.splitlines() if '"memory"' in line and not line.startswith("#")]
    assert made.replace(MARK, "") == text
    # A jump to a label that is a comment would be an error of the whole file.
    labels = set(re.findall(r'^LABEL="(\w+)"', made, re.MULTILINE))
    assert set(re.findall(r'^[^#\n]*GOTO="(\w+)"', made, re.MULTILINE)) <= labels


def test_the_block_of_one_line_that_powerai_describes_is_known_as_well() -> None:
    text = 'SUBSYSTEM!="memory", ACTION!="add", GOTO="x_end"\nENV{.state}="online"\n\nLABEL="x_end"\nKERNEL=="x"\n'
    assert udev_without_memory(text).splitlines()[-1] == 'KERNEL=="x"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('SUBSYSTEM=="cpu"\n', "has no rule for memory as Enterprise Linux 7 has it"),
        ('SUBSYSTEM!="memory", GOTO="end"\n', 'jumps to LABEL="end", which does not follow'),
        ('# SUBSYSTEM=="memory"\n', "has no rule for memory"),
    ],
)
def test_a_form_that_nobody_knows_is_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        udev_without_memory(text)
