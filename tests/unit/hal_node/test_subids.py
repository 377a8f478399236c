"""/etc/subuid: ours first, those of others as they were, and no id twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_inventory.users import RANGE, User, start_of

ALICE, BOB, CAROL = (
    {"name": user.name, **user.as_dict()}
    for user in (User("alice", 5001, 0), User("bob", 5002, 1, "disabled"), User("carol", 5003, 2, retired=True))
)
DECLARED = "5001:4294836224:65536\n!5002:4294770688:65536\n!5003:4294705152:65536\n"


@pytest.fixture(scope="module")
def plan(lines: Any) -> Any:
    """A function: text of the file, enable_ok -> (its new text, who stays disabled)."""
    return lambda text, enable_ok=False: lines.planned(lines.parse(text), [ALICE, BOB, CAROL], enable_ok)


def test_everybody_with_a_slot_has_a_line_and_only_the_enabled_may_use_it(plan: Any) -> None:
    assert plan("") == (DECLARED, [])
    assert plan(DECLARED) == (DECLARED, []), "a second time changes nothing"


@pytest.mark.parametrize(
    "others",
    [
        "alice:100000:65536\nbob:165536:65536\n",  # what useradd gave
        "# a comment\n\nalice:100000\n",
        "dora:4294967295:0\nerin:x:y\n",  # what nobody can use
        "!dora:300000:65536\n",
        "dora:4294000000:1000",  # without an end of line
    ],
)
def test_lines_of_others_follow_as_they_were(plan: Any, lines: Any, others: str) -> None:
    assert plan(others)[0] == DECLARED + others.rstrip("\n") + "\n"
    assert plan(others + "\n" + DECLARED if not others.endswith("\n") else others + DECLARED)[0].startswith(DECLARED)
    assert lines.problems("/etc/subuid", lines.parse(others), [ALICE, BOB, CAROL]) == []


def test_ours_count_as_ours_whoever_wrote_them(plan: Any, lines: Any) -> None:
    """singularity config fakeroot --add writes the uid, people write names."""
    text = "alice:4294836224:65536\n5002:4294770688:65536\n"
    assert lines.problems("/etc/subuid", lines.parse(text), [ALICE, BOB, CAROL]) == []
    assert plan(text) == (DECLARED, [])


def test_who_was_disabled_by_hand_stays_so_until_it_is_allowed(plan: Any) -> None:
    by_hand = DECLARED.replace("5001", "!5001", 1)
    assert plan(by_hand) == (by_hand, ["alice"])
    assert plan(by_hand, True) == (DECLARED, [])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "mallory:4294836224:65535",
            "mallory has ids 4294836224 to 4294901758, and slot 0 of alice is 4294836224 to 429490175",
        ),
        ("5009:4294836224:65536", "slot 0 was given to 5009 and is never given again; alice needs another"),
        ("!5009:4294836224:65536", "slot 0 was given to 5009 and is never given again; alice needs another"),
        ("mallory:4294901759:1", "slot 0 of alice"),
        ("mallory:4294836223:1", "slot 1 of bob"),
        ("!mallory:4294705152:10", "slot 2 of carol"),
        ("5001:4294836225:65536", "5001 has ids 4294836225 to 4294901760"),
        ("alice:4294836224:131072", "alice has ids 4294836224 to 4294967295"),
    ],
)
def test_an_id_of_somebody_else_s_line_in_a_range_is_refused(lines: Any, line: str, words: str) -> None:
    found = lines.problems("/etc/subuid", lines.parse("# first\n" + line + "\n"), [ALICE, BOB, CAROL])
    assert found
    assert found[0].startswith("/etc/subuid:2: ")
    assert any(words in one for one in found)


@pytest.mark.parametrize("line", ["5002:4294705152:65536", "!bob:4294705152:65536"])
def test_a_user_who_has_another_slot_keeps_it(lines: Any, line: str) -> None:
    """Another checkout gave it, or Singularity's own command before the site had users.yml."""
    (found,) = lines.problems("/etc/subuid", lines.parse(DECLARED + line + "\n"), [ALICE, BOB])
    assert "bob has slot 2, and users.yml says 1" in found
    assert "say 2 there" in found


def test_a_range_that_covers_all_is_a_fault_of_each(lines: Any) -> None:
    entries = lines.parse("mallory:4000000000:294967295\n")
    assert len(lines.problems("/etc/subgid", entries, [ALICE, BOB, CAROL])) == 3


def test_of_several_ranges_of_a_user_the_first_counts(lines: Any) -> None:
    entries = lines.parse("alice:100000:65536\n" + DECLARED)
    assert lines.shadowed("/etc/subuid", entries, [ALICE, BOB]) == [
        "/etc/subuid:1: this line of alice comes before the declared one, and Singularity takes the first"
    ]
    assert lines.shadowed("/etc/subuid", lines.parse("alice:100000:1000\n" + DECLARED), [ALICE, BOB]) == []
    assert lines.shadowed("/etc/subuid", lines.parse(DECLARED + "alice:100000:65536\n"), [ALICE, BOB]) == []


def test_an_account_in_a_range_is_refused(lines: Any) -> None:
    passwd = "root:x:0:0::/root:/bin/sh\nbroken\nghost:x:4294836300:100::/:/bin/sh\n"
    (found,) = lines.taken_ids("/etc/passwd", passwd, [ALICE, BOB])
    assert found == (
        "/etc/passwd:3: ghost has number 4294836300, which is in slot 0 of alice (4294836224 to 4294901759):"
        " give one of them another"
    )


line = st.one_of(
    st.tuples(
        st.sampled_from(["alice", "5001", "!5001", "bob", "x", "!y"]), st.integers(0, 2**32), st.integers(0, 2**17)
    ).map(lambda parts: ":".join(map(str, parts))),
    st.sampled_from(["", "# words", "a:b", "a:b:c", ":::", DECLARED.splitlines()[0], DECLARED.splitlines()[1]]),
)


@given(st.lists(line))
def test_a_plan_is_settled_at_once_and_loses_no_line(lines: Any, plan: Any, text: list[str]) -> None:
    once, disabled = plan("".join(f"{one}\n" for one in text))
    assert plan(once) == (once, disabled)
    own = {
        f"{mark}{who}:{start_of(slot)}:{RANGE}"
        for slot, names in enumerate((("alice", "5001"), ("bob", "5002"), ("carol", "5003")))
        for who in names
        for mark in ("", "!")
    }
    assert [one for one in once.splitlines() if one not in own] == [one for one in text if one not in own]
    assert (
        sum(
            one.lstrip("!").endswith(f":{start_of(0)}:{RANGE}") and one.lstrip("!").startswith("5001:")
            for one in once.splitlines()
        )
        == 1
    )


@given(st.lists(st.binary(max_size=12).filter(lambda one: b"\n" not in one), max_size=6))
def test_bytes_of_others_stay_as_they_are(lines: Any, plan: Any, others: list[bytes]) -> None:
    """Whatever the encoding: some bytes of UTF-8 end a line for splitlines(), and not every file is UTF-8."""
    content = b"".join(one + b"\n" for one in [b"gr\xc3\xb6\xc3\x85e:100000:1", b"\xff\x1c:5:5", *others])
    text, _ = plan(lines.decoded(content))
    assert lines.encoded(text) == DECLARED.encode() + content
    assert lines.encoded(plan(text)[0]) == DECLARED.encode() + content


def test_a_name_beyond_ascii_is_readable_in_what_is_said(lines: Any) -> None:
    entries = lines.parse(lines.decoded("größe:4294836300:1\n".encode()))
    assert lines.problems("/etc/subuid", entries, [ALICE])[0].startswith("/etc/subuid:1: größe has ids 4294836300")
    (found,) = lines.taken_ids("/etc/passwd", lines.decoded("größe:x:4294836300:::\n".encode()), [ALICE])
    assert "größe has number" in found


@pytest.mark.parametrize("line", ["alice:\xb2:65536", "alice:1:\xb9", "x:y:\xb3"])
def test_a_digit_that_is_none_is_no_range(lines: Any, line: str) -> None:
    assert lines.parse(line)[0]["start"] is None
    assert lines.taken_ids("/etc/passwd", line, [ALICE]) == []
