"""What a value without quotes is: a number in decimal, true, false and nothing; all else is text as written."""

from __future__ import annotations

import pytest

from hal_inventory.load import load_bytes
from hal_inventory.reader import Plain, parse


def value(written: str) -> Plain:
    return parse(f"a: {written}\n".encode(), "x.yml").plain()["a"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0", 0),
        ("-0", 0),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("123456789012345678", 123456789012345678),
        ("1234567890123456789", "1234567890123456789"),
        ("07", "07"),
        ("0x10", "0x10"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("24:00:00", "24:00:00"),
        ("02:48:41:4c:00:10", "02:48:41:4c:00:10"),
        ("12:34:56:12:34:56", "12:34:56:12:34:56"),
        ("2026-11-24", "2026-11-24"),
        ("0.5", 0.5),
        ("-1.25", -1.25),
        ("+1.0", 1.0),
        ("01.5", "01.5"),
        ("1.", "1."),
        (".5", ".5"),
        ("1e3", "1e3"),
        ("1.5.2", "1.5.2"),
        (".inf", ".inf"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", "Null"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("''", ""),
        ("[]", ()),
        ("{}", {}),
        ("[1, '1', [~]]", (1, "1", (None,))),
        ("{1: 2, b: {c: d}}", {"1": 2, "b": {"c": "d"}}),
    ],
)
def test_a_value_is_what_it_looks_like(written: str, meant: Plain) -> None:
    found = value(written)
    assert (found, type(found)) == (meant, type(meant))


def test_blocks_of_text_are_text() -> None:
    assert parse(b"a: >-\n  7\nb: |-\n  true\n", "x.yml").plain() == {"a": "7", "b": "true"}


def test_marked_values_are_found_in_the_order_of_the_file() -> None:
    text = "a: !placeholder 1\nb:\n  - x\n  - !placeholder y\n  - {c: !placeholder z}\nd: {e: !placeholder ''}\n"
    document = parse(text.encode(), "x.yml")
    assert list(document.placeholders()) == [
        (("a",), 1, "1"),
        (("b", 1), 4, "y"),
        (("b", 2, "c"), 5, "z"),
        (("d", "e"), 6, ""),
    ]
    marked = [("a",), ("b",), ("b", 1), ("d",), ("d", "e"), ("x",), ("a", "b"), ()]
    assert [path for path in marked if document.is_placeholder(path)] == [("a",), ("b",), ("d", "e")]


def test_a_field_that_is_not_there_has_the_line_of_what_would_hold_it() -> None:
    document = parse(b"\na: 1\nb:\n  - x\n  - c:\n      d: 1\n    e: 2\n", "x.yml")
    lines = {
        (): 2,
        ("a",): 2,
        ("a", "x"): 2,
        ("b",): 3,
        ("b", 0): 4,
        ("b", 1): 5,
        ("b", 2): 3,
        ("b", "1"): 3,
        ("b", 1, "e"): 7,
        ("b", 1, "c", "d"): 6,
        ("b", 1, "c", "x"): 5,
        ("x", "y"): 2,
    }
    assert {path: document.line(path) for path in lines} == lines


def test_a_node_knows_which_of_its_fields_are_marked(small: str) -> None:
    marked = small
    for old in ("S-FRONT", "10.1.1.[101-104]", '"02:00:00:00:01:[01-04]"'):
        assert old in marked
        marked = marked.replace(old, f"!placeholder {old}", 1)
    nodes = load_bytes(marked.encode(), "cluster.yml").nodes
    assert nodes["front"].placeholders == {"serial"}
    assert nodes["worker3"].placeholders == {"addresses.bmc", "macs.management"}
