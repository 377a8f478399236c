"""When two values are the same, for every value hypothesis can think of."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.expect.values import as_flag, compare_versions, same, shown, squeeze
from hypothesis import given
from hypothesis import strategies as st

BLANKS = st.text(alphabet=" \t", min_size=1, max_size=4)
WORDS = st.text(alphabet=st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
LEAVES = st.one_of(st.booleans(), st.integers(), WORDS)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))
VERSIONS = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(VALUES)
def test_a_value_equals_itself(value: object) -> None:
    assert same(value, value)


@given(VALUES, VALUES)
def test_the_order_of_the_two_does_not_matter(one: object, other: object) -> None:
    assert same(one, other) == same(other, one)


@given(st.integers(), st.integers())
def test_a_number_equals_its_text_and_no_other_number(one: int, other: int) -> None:
    assert same(one, str(one))
    assert same(one, other) == same(one, str(other)) == same(str(one), str(other)) == (one == other)


@given(st.integers(1, 10**9))
def test_a_number_is_not_found_inside_a_longer_one(number: int) -> None:
    assert not same(number, f"{number}0")
    assert not same(str(number), f"1{number}")


@given(st.booleans(), st.sampled_from(["true", "yes", "on"]), st.sampled_from(["false", "no", "off"]), st.data())
def test_booleans_equal_their_words_in_any_case(flag: bool, yes: str, no: str, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from([str.lower, str.upper, str.title]))
    assert same(flag, change(yes)) is flag
    assert same(flag, change(no)) is not flag
    assert not same(change(yes), change(no))


@given(st.lists(WORDS, min_size=1, max_size=5), BLANKS, BLANKS, BLANKS)
def test_runs_of_blanks_are_one_blank(words: list[str], gap: str, before: str, after: str) -> None:
    assert same(" ".join(words), before + gap.join(words) + after)


@given(st.lists(WORDS, min_size=2, max_size=5))
def test_words_do_not_run_together_and_lines_stay_lines(words: list[str]) -> None:
    assert not same(" ".join(words), "".join(words))
    assert not same(" ".join(words), "\n".join(words))


@given(st.lists(LEAVES, min_size=1, max_size=4), LEAVES)
def test_a_list_equals_no_longer_list(items: list[object], more: object) -> None:
    assert not same(items, [*items, more])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("1.10", "1.1", False),  # two texts may be versions
        ("0644", "644", False),
        (1.5, "1.50", True),
        (160, "160\n", True),
        (16, "0x10", False),
        (1000, "1e3", False),
        (True, 1, False),
        (True, "1", False),
        ("y", "yes", False),
        (None, "", False),
        (["1"], "1", False),
        ({"a": 1}, {"a": "1"}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("Yes", "no", False),
    ],
)
def test_decided_cases(one: object, other: object, expected: bool) -> None:
    assert same(one, other) is expected


@given(VERSIONS, VERSIONS)
def test_versions_order_by_their_numbers(one: str, other: str) -> None:
    keys = [[int(part) for part in version.split(".")] for version in (one, other)]
    assert compare_versions(one, other) == (keys[0] > keys[1]) - (keys[0] < keys[1])


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("22.05.8", "22.05.10"),
        ("1.0~rc1", "1.0"),
        ("1.0", "1.0^git1"),
        ("1.0^git1", "1.0.1"),
        ("1.0a", "1.0b"),
        ("1.0a", "1.0.1"),
        ("80.7.1.el7", "80.7.2.el7"),
        ("3.4", "3.4.1"),
    ],
)
def test_versions_order_as_rpm_orders_them(smaller: str, larger: str) -> None:
    assert (compare_versions(smaller, larger), compare_versions(larger, smaller)) == (-1, 1)


@given(st.text())
def test_squeezing_twice_changes_nothing_more(text: str) -> None:
    assert squeeze(squeeze(text)) == squeeze(text)


@given(WORDS)
def test_only_six_words_are_booleans(word: str) -> None:
    assert (as_flag(word) is not None) == (word.lower() in {"true", "yes", "on", "false", "no", "off"})


def test_what_is_cut_says_so() -> None:
    assert shown("x" * 500) == "x" * 400 + "... 100 characters more"
    assert shown(list(range(25)))[-1] == "... 5 more"
    assert shown({str(i): i for i in range(25)})["..."] == "5 more"
