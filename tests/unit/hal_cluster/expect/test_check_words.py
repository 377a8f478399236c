"""What is wrong with an entry, in all its words, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.expect.check import is_template, problems_of_entry, problems_of_list
from hal_cluster.expect.vocabulary import MATCHERS, READERS, SERVICE_READS

GOOD: dict[str, Any] = {"id": "a", "why": "w", "sysctl": {"name": "a"}, "equal": 1}
READER_NAMES, MATCHER_NAMES = ", ".join(READERS), ", ".join(MATCHERS)
TEXT = "has to be a text that is not empty (a number needs quotes)"
TEXTS = "has to be a list of texts that is not empty"
NUMBERS = "has to be a list of numbers that is not empty"
COUNT = "is a number, or {at_least: n, at_most: m}"
SERVICE = f"has to be one of {', '.join(SERVICE_READS)}, or a systemd property"

ARGUMENTS: list[Any] = [[], "a", ["a", []], {}]
GOOD_COUNTS: list[Any] = [5, "5", "{{ a }}", {"at_least": 1}, {"at_most": "{{ a }}"}]
BAD_COUNTS: list[Any] = ["x", True, {}]


def reading(reader: str, request: Any, **more: Any) -> dict[str, Any]:
    """An entry with this reader."""
    return {"id": "a", "why": "w", reader: request, **(more or {"equal": "1"})}


def judged(**matcher: Any) -> dict[str, Any]:
    """An entry with this matcher."""
    return {"id": "a", "why": "w", "sysctl": {"name": "a"}, **matcher}


@pytest.mark.parametrize(
    ("entry", "problems"),
    [
        (GOOD, []),
        (5, [((), "an entry has to be a mapping with id, why, a reader and a matcher")]),
        (
            {},
            [
                *[((), "needs id"), ((), "needs why"), ((), f"needs exactly one reader ({READER_NAMES}), has none")],
                ((), f"needs exactly one matcher ({MATCHER_NAMES}), has none"),
            ],
        ),
        (
            {**GOOD, "mount": {"path": "/"}, "count": 1},
            [
                ((), f"needs exactly one reader ({READER_NAMES}), has sysctl and mount"),
                ((), f"needs exactly one matcher ({MATCHER_NAMES}), has equal and count"),
            ],
        ),
        (
            {**GOOD, "x": 1},
            [(("x",), f"is not a field, reader or matcher; readers: {READER_NAMES}; matchers: {MATCHER_NAMES}")],
        ),
        ({**GOOD, "why": "{% x %}"}, [(("why",), "cannot be a template: it is the same on every node")]),
        ({**GOOD, "id": " "}, [(("id",), TEXT)]),
        ({**GOOD, "health": "x", "secret": "No"}, []),
        ({**GOOD, "health": "x", "secret": "off"}, []),
        (
            {**GOOD, "health": "x", "secret": "{{ a }}"},
            [(("health",), "a secret would be in a file on the node, and its value in the reason of a drain")],
        ),
        ({**GOOD, "finding": "x"}, [(("finding",), '"x" has to be one of not-effective, hardware')]),
        ({**GOOD, "secret": 1}, [(("secret",), "has to be true or false")]),
        ({**GOOD, "secret": "YES"}, []),
        (reading("sysctl", "a"), [(("sysctl",), "has to be a mapping: {name}")]),
        (
            reading("kernel-module", {"name": "a", "x": 1, "read": "loaded", "parameter": "p"}),
            [
                (("kernel-module", "x"), "is not a field of kernel-module; it has name, read, parameter"),
                (("kernel-module",), "reads one thing: take read or parameter"),
            ],
        ),
        (reading("kernel-module", {"name": "a", "parameter": "p"}), []),
        (reading("file", {"path": "x"}), [(("file", "path"), "has to be an absolute path")]),
        (reading("file", {"path": "{{ x }}"}), []),
        (reading("file", {"path": "/x", "select": "{{ ("}), []),
        (reading("file", {"path": "/x", "select": "a", "read": "lines"}), []),
        (
            reading("file", {"path": "/x", "select": "a", "read": "size"}),
            [(("file", "select"), "keeps lines, so it goes with read: content or lines")],
        ),
        (
            reading("file", {"path": "/x", "select": "("}),
            [(("file", "select"), "is not a regular expression: missing ), unterminated subpattern at position 0")],
        ),
        (reading("command", {"argv": ["a"], "select": "x", "lines": True}), []),
        *(
            (reading("command", {"argv": ["a"], **dict.fromkeys(two, True)}), problem)
            for two, problem in (
                (("lines", "json"), [(("command",), "takes one of lines, json and exit")]),
                (("lines", "exit"), [(("command",), "takes one of lines, json and exit")]),
                (("json", "exit"), [(("command",), "takes one of lines, json and exit")]),
                (("json",), []),
            )
        ),
        *((reading("command", {"argv": argv}), [(("command", "argv"), TEXTS)]) for argv in ARGUMENTS),
        (reading("command", {"argv": ["a", 1, 1.5]}), []),
        *(
            (reading("command", {"argv": ["a"], "accept_exit": codes}), [(("command", "accept_exit"), NUMBERS)])
            for codes in ([], 0, [0, "x"], [True])
        ),
        (reading("command", {"argv": ["a"], "accept_exit": [0, "1", "{{ x }}"]}), []),
        (reading("port", {"port": True}), [(("port", "port"), "has to be a number")]),
        (reading("port", {"port": "22x"}), [(("port", "port"), "has to be a number")]),
        (reading("port", {"port": "22"}), []),
        (
            reading("port", {"port": 22, "protocol": "sctp"}),
            [(("port", "protocol"), '"sctp" has to be one of tcp, tcp4, tcp6, udp, udp4, udp6')],
        ),
        *((reading("service", {"name": "a", "read": read}), []) for read in ("running", "LimitNOFILE", "{{ x }}")),
        (reading("service", {"name": "a", "read": "x"}), [(("service", "read"), f'"x" {SERVICE}')]),
        (reading("service", {"name": "a", "read": "No-Such"}), [(("service", "read"), f'"No-Such" {SERVICE}')]),
        (reading("service", {"name": "a", "read": 5}), [(("service", "read"), TEXT)]),
        (judged(equal=None), [(("equal",), "has no value")]),
        (judged(absent="maybe"), [(("absent",), "has to be true or false")]),
        (judged(absent="no"), []),
        (judged(one_of=[]), [(("one_of",), "has to be a list that is not empty")]),
        (judged(one_of="a"), [(("one_of",), "has to be a list that is not empty")]),
        (judged(one_of="{{ a }}"), []),
        (judged(one_of=[1]), []),
        *(
            (judged(**{one: []}), [((one,), "is an empty list: nothing would be checked")])
            for one in ("contain", "match")
        ),
        (judged(equal=[]), []),
        (judged(contain=5), []),
        (judged(match=["a", "{{ ("]), []),
        (judged(match=["a", 5]), [(("match",), "has to be a regular expression, as a text")]),
        (judged(match="{{ ("), []),
        *((judged(count=one), []) for one in GOOD_COUNTS),
        *((judged(count=one), [(("count",), COUNT)]) for one in BAD_COUNTS),
        (judged(count={"more": 1}), [(("count",), COUNT)]),
        (judged(count={"at_least": "x"}), [(("count", "at_least"), "has to be a number")]),
        (judged(at_least=5), []),
        (judged(at_most="1.2"), []),
        *(
            (judged(**{one: True}), [((one,), "has to be a number, or a version in quotes")])
            for one in ("at_least", "at_most")
        ),
        (
            reading("file", {"path": "/x", "read": "mode"}, equal=420),
            [(("equal",), 'a file mode needs quotes: "0644"; without them YAML makes it the number 420')],
        ),
        (reading("file", {"path": "/x", "read": "size"}, equal=420), []),
    ],
)
def test_what_is_wrong_with_an_entry(entry: Any, problems: Any) -> None:
    assert problems_of_entry(entry) == problems


def test_what_is_wrong_with_a_file_has_the_place_of_its_entry() -> None:
    empty = [((), "has to be a list of expectations that is not empty")]
    assert problems_of_list({}) == problems_of_list([]) == empty
    assert problems_of_list([GOOD, {**GOOD, "id": "b"}]) == []
    words = '"a" is used twice; an id names one entry'
    assert problems_of_list([GOOD, 5, {**GOOD, "x": None}, GOOD])[::3] == [
        ((1,), "an entry has to be a mapping with id, why, a reader and a matcher"),
        ((3, "id"), words),
    ]


@pytest.mark.parametrize(("value", "yes"), [("{{ a }}", True), ("{% a %}", True), ("{ a }", False), (["{{"], False)])
def test_what_ansible_would_evaluate(value: Any, yes: bool) -> None:
    assert is_template(value) is yes
