"""Ranges in and out."""

from __future__ import annotations

import pytest

from hal_inventory.errors import RangeError
from hal_inventory.ranges import MAX_NAMES, expand, expand_list, fold, fold_in_order


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("hal05", ["hal05"]),
        ("hal[01-03]", ["hal01", "hal02", "hal03"]),
        ("hal[9-11]", ["hal9", "hal10", "hal11"]),
        ("10.64.0.[101-102]", ["10.64.0.101", "10.64.0.102"]),
        ("n[1,3,5-6]", ["n1", "n3", "n5", "n6"]),
        ("n[0-8/4]", ["n0", "n4", "n8"]),
        ("r[1-2]n[1-2]x", ["r1n1x", "r1n2x", "r2n1x", "r2n2x"]),
        ("n[3,1,2]", ["n3", "n1", "n2"]),
        ("n[ 1 , 2 ]", ["n1", "n2"]),
    ],
)
def test_a_range_expands_in_the_order_written(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n[5-1]", "expands to nothing"),
        ("n[]", "expands to nothing"),
        ("n[1-1000000]", f"stands for more than {MAX_NAMES} values"),
        ("n[1-999999999]", f"stands for more than {MAX_NAMES} values"),
        ("n[1-300]x[1-300]", f"stands for more than {MAX_NAMES} values"),
        ("n[1-010]", "[1-010] has numbers of two widths; write [001-010] or [1-10]"),
        ("n[08-9]", "[08-9] has numbers of two widths; write [08-09] or [8-9]"),
        ("n[٣-٤]", "is not a range"),
        ("n[1-99999999999999999999]", "is not a range"),
        ("n[1-5/0]", "a step of 0"),
        ("n[1", "brackets do not match"),
        ("n1]", "brackets do not match"),
        ("n[[1-2]]", "brackets do not match"),
        ("n[-3]", "is not a range"),
        ("n[1--3]", "is not a range"),
        ("n[1,,3]", "is not a range"),
        ("n[a]", "is not a range"),
    ],
)
def test_a_range_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(RangeError) as caught:
        expand(text)
    assert says in str(caught.value)
    assert text in str(caught.value)


def test_folding_is_clustershells() -> None:
    assert fold(["hal02", "hal-mgmt2", "hal01", "hal-mgmt1", "hal03", "hal07"]) == "hal[01-03,07],hal-mgmt[1-2]"
    assert fold([]) == ""


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a1", "a2", "a3"], "a[1-3]"),
        (["a3", "a2", "a1"], "a[3,2,1]"),
        (["a09", "a10"], "a[09-10]"),
        (["a9", "a10"], "a[9-10]"),
        (["a99", "a100"], "a[99-100]"),
        (["a01", "a2"], "a[01,2]"),
        (["x", "a1", "y"], "x,a1,y"),
        (["10.0.0.254", "10.0.1.1"], "10.0.0.254,10.0.1.1"),
        ([], ""),
    ],
)
def test_folding_in_order_keeps_the_order(names: list[str], text: str) -> None:
    assert fold_in_order(names) == text
    assert (expand_list(text) if text else []) == names


def test_the_limit_is_exact() -> None:
    assert len(expand(f"n[1-{MAX_NAMES}]")) == MAX_NAMES
    with pytest.raises(RangeError, match=f"stands for more than {MAX_NAMES} values"):
        expand(f"n[0-{MAX_NAMES}]")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["n2", "n1", "n3"], "n[2,1,3]"),
        (["n1x", "n2x"], "n1x,n2x"),
        (["@all", "b"], "@all,b"),  # as a name, not as a group of the machine that reads the model
        (["x[", "y"], "x[,y"),
        (["a&b", "a!b", "c1", "c2"], "a&b,a!b,c[1-2]"),
    ],
)
def test_names_are_folded_for_a_message_whatever_they_are(names: list[str], said: str) -> None:
    assert fold_in_order(names) == said
