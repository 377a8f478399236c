"""Text and bytes of what runs on nodes: words for people, and names of files as each Python takes them."""

from __future__ import annotations

import pytest

from tests.unit.alike import alike

alike("hal_node.text", only=["in_words"])  # the others give what one Python alone has

from ansible.module_utils.hal_node.text import in_words, mapped, name_of, native, raw_of, text  # noqa: E402


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (1_000_000, "1.0 MB"),
        (999_900_000, "999.9 MB"), (1_500_000_000, "1.5 GB"), (999_900_000_000, "999.9 GB"),
        (1_000_000_000_000, "1.0 TB"),
    ],
)  # fmt: skip
def test_a_size_is_told_in_the_largest_unit_that_it_fills(size: int, words: str) -> None:
    assert in_words(size) == words


def test_names_that_are_no_utf_8_can_be_said_and_come_back_as_they_were() -> None:
    name = name_of(b"a\xff")
    assert (raw_of(name), raw_of(b"a\xff"), text(name), text(b"\xff")) == (b"a\xff", b"a\xff", "a�", "�")
    assert (text(7), text("a\udcff")) == ("7", "a�")


def test_what_json_gave_is_the_same_here_with_its_keys() -> None:
    content = {"größe": ["ü", 1, True, None, {"a": []}]}
    assert native(content) == content
    assert mapped({"a": ["b", ("c",)]}, str.upper) == {"A": ["B", ["C"]]}
