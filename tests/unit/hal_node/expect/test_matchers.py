"""What each matcher lets pass, and what it only may call unknown."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.expect.matchers import JUDGES, judge
from ansible.module_utils.hal_node.expect.values import Reading, Unreadable, missing, present
from hypothesis import given
from hypothesis import strategies as st

LINES = ["PermitRootLogin no", "# Port 22", "MaxSessions\t10"]
TEXT = present("\n".join(LINES), LINES)
NOTHING = missing("/etc/x does not exist")
STATE = missing("package x is not installed", value=False)
NOT_SELECTED = Reading(exists=False, has_value=False, items=[], note="no line matches")
VERSIONS = present(["4.18.0-80.7.1.el7", "4.18.0-80.7.2.el7"], scale="version")


@pytest.mark.parametrize(
    ("reading", "matcher", "wanted", "complaint"),
    [
        (present("160"), "equal", 160, ""),
        (present("1048576"), "equal", "10485760", "differs"),
        (present("32768 60999"), "equal", "32768   60999", ""),
        (present("32768 60999", ["32768", "60999"]), "equal", [32768, 60999], ""),
        (present("32768 60999", ["32768", "60999"]), "equal", [60999, 32768], "differs"),
        (present(["one line"]), "equal", "one line", ""),
        (present(["one line", "two"]), "equal", "one line", "differs"),
        (present("root", also=[0]), "equal", 0, ""),
        (present("root", also=[0]), "equal", 1, "differs"),
        (present("0644", scale="mode"), "equal", "644", ""),
        (present("0644", scale="mode"), "equal", "0640", "differs"),
        (present("4755", scale="mode"), "equal", "0755", "differs"),
        (TEXT, "contain", "PermitRootLogin no", ""),
        (TEXT, "contain", "MaxSessions 10", ""),
        (TEXT, "contain", "PermitRootLogin", 'lacks "PermitRootLogin"'),
        (TEXT, "contain", "Port 22", 'lacks "Port 22"'),
        (TEXT, "contain", ["PermitRootLogin no", "a", "b"], 'lacks "a", "b"'),
        (TEXT, "match", r"PermitRootLogin\s+(no|prohibit-password)", ""),
        (TEXT, "match", "Port", 'nothing matches "Port"'),
        (TEXT, "match", r".*Port.*", ""),
        (TEXT, "match", r"(?i)permitrootlogin NO", ""),
        (TEXT, "match", "PermitRootLogin|x", 'nothing matches "PermitRootLogin|x"'),
        (TEXT, "count", 3, ""),
        (TEXT, "count", "3", ""),
        (TEXT, "count", 4, "there are 3"),
        (TEXT, "count", {"at_least": 3}, ""),
        (TEXT, "count", {"at_least": 1, "at_most": 2}, "there are 3"),
        (NOT_SELECTED, "count", 0, ""),
        (NOT_SELECTED, "equal", "x", "no line matches"),
        (NOT_SELECTED, "absent", True, ""),
        (present("240000"), "at_least", 240000, ""),
        (present("239999"), "at_least", 240000, "is less"),
        (present("-1"), "at_least", 0, "is less"),
        (present("10"), "at_least", "9", ""),
        (present("10"), "at_most", 9, "is more"),
        (present("N/A"), "at_least", 0, "is not a number"),
        (present(True), "at_least", 0, "is not a number"),
        (present("22.05.10-1.el7", scale="version"), "at_least", "22.05.8", ""),
        (present("22.05.8-1.el7", scale="version"), "at_least", "22.05.10", "is less"),
        (present("22.05.8-1.el7", scale="version"), "at_most", "22.05.8", ""),
        (present("22.05.8-1.el7", scale="version"), "at_least", "22.05.8-2.el7", "is less"),
        (VERSIONS, "at_least", "4.18.0-80.7.1.el7", ""),
        (VERSIONS, "at_least", "4.18.0-80.7.2.el7", "is less"),
        (VERSIONS, "contain", "4.18.0-80.7.2.el7", ""),
        (VERSIONS, "count", 1, "there are 2"),
        (present("yes"), "one_of", [True, "maybe"], ""),
        (present("x"), "one_of", ["xx", "y"], "is not one of them"),
        (NOTHING, "absent", True, ""),
        (NOTHING, "absent", "yes", ""),
        (NOTHING, "absent", False, "/etc/x does not exist"),
        (present("x"), "absent", True, "is there"),
        (present("x"), "absent", False, ""),
        (STATE, "equal", False, ""),
        (STATE, "equal", True, "package x is not installed"),
        (STATE, "absent", True, ""),
    ],
)
def test_decided_cases(reading: Reading, matcher: str, wanted: Any, complaint: str) -> None:
    assert judge(reading, matcher, wanted) == complaint


@pytest.mark.parametrize("matcher", sorted(set(JUDGES) - {"absent"}))
def test_nothing_passes_a_value_matcher_when_the_thing_is_not_there(matcher: str) -> None:
    for wanted in ("", 0, "x", [""], False, ".*", {"at_least": 0}):
        assert judge(NOTHING, matcher, wanted) == "/etc/x does not exist"


@pytest.mark.parametrize(
    ("reading", "matcher", "wanted", "words"),
    [
        (TEXT, "equals", "x", 'there is no matcher "equals"'),
        (TEXT, "equal", None, "equal is empty"),
        (TEXT, "match", "(", "not a regular expression"),
        (TEXT, "match", 5, "has to be a text"),
        (TEXT, "match", [], "nothing would be checked"),
        (TEXT, "contain", [], "nothing would be checked"),
        (TEXT, "one_of", [], "has to be a list"),
        (TEXT, "one_of", "x", "has to be a list"),
        (TEXT, "count", "many", "has to be a number"),
        (TEXT, "count", {"more": 1}, "count is a number"),
        (TEXT, "count", {}, "count is a number"),
        (TEXT, "absent", "maybe", "true or false"),
        (present("5"), "at_least", "x", "has to be a number"),
        (present("0644", scale="mode"), "equal", 420, "octal digits in quotes"),
        (present("1.2", scale="version"), "at_least", 1.1, "write it in quotes"),
    ],
)
def test_an_expectation_that_cannot_be_judged_is_no_pass(
    reading: Reading, matcher: str, wanted: Any, words: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        judge(reading, matcher, wanted)
    assert words in caught.value.reason


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_contain_never_passes_on_a_part_of_a_line(line: str, more: str) -> None:
    whole = f"a{line}{more}b"
    assert judge(present(whole, [whole]), "contain", f"a{line}") != ""


@given(st.integers(), st.integers())
def test_at_least_and_at_most_agree_with_arithmetic(seen: int, wanted: int) -> None:
    assert (judge(present(str(seen)), "at_least", wanted) == "") is (seen >= wanted)
    assert (judge(present(str(seen)), "at_most", wanted) == "") is (seen <= wanted)
