"""Each refusal of a role has been seen: tests/contract/refused/<role>.yml has the values, and what it says then.

    - given: {time_max_offset_seconds: 0}        # the last value that is refused
      says: time_max_offset_seconds is 0
    - given: {time_max_offset_seconds: 0.001}    # the first one that is not: nothing more is refused than without it
    - host: hal-mgmt1                            # the role's first host unless it is said
      files: [ca/host_ca, ca/user_ca]            # in a new folder; its path is the variable `made`
      first: {ssh_authority_dir: "{{ made }}/ca"}    # where the project's own site would be refused already
      given: {ssh_authority_dir: "{{ made }}"}
      says: host_ca is missing

`first`, and above it `given`, are above everything, also above what the role works out. An assert ends at its first
condition that does not hold. With `says` one condition is that which was not before; without, the assert of the entry
above holds, or less is refused than before. A name that the role does not have is an error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.project import PROJECT, Map, load, load_map, roles
from tests.contract.refusing import Condition, Refusal, Site

FOLDER = PROJECT / "tests/contract/refused"
ROLES = [role.name for role in roles(PROJECT) if (role / "tasks/validate.yml").is_file()]
FIELDS = {"host", "files", "first", "given", "says"}


def entries(role: str) -> list[Map]:
    path = FOLDER / f"{role}.yml"
    return load(path) or [] if path.is_file() else []


CASES = [(role, one) for role in ROLES for one in entries(role)]


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(PROJECT)


def asked(site: Site, role: str, one: Map) -> tuple[list[Refusal], list[Refusal]]:
    """What is refused without an entry's values, and with them."""
    host = one.get("host") or site.hosts(role)[0]
    with tempfile.TemporaryDirectory() as made:
        for name in one.get("files", ()):
            path = Path(made, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        first = {"made": made, **one.get("first", {})}
        return site.refusals(role, host, first), site.refusals(role, host, {**first, **one["given"]})


def more(some: list[Refusal], others: list[Refusal]) -> list[Refusal]:
    """Those of some that are not among the others: another condition, or for another item."""
    known = {(one.condition, one.item) for one in others}
    return [one for one in some if (one.condition, one.item) not in known]


def new(site: Site, role: str, one: Map) -> list[Refusal]:
    """What is refused with an entry's values, and is not without."""
    before, now = asked(site, role, one)
    return more(now, before)


def still_refused(site: Site, role: str, one: Map, now: list[Refusal]) -> list[Refusal]:
    """What an accepted entry is still refused by, in the assert of the nearest refused entry above it (or below)."""
    refused = [each for each in entries(role) if "says" in each]
    nearest = min(refused, key=lambda each: (each.line > one.line, abs(each.line - one.line)))
    tasks = {each.condition[:2] for each in new(site, role, nearest)}
    return [each for each in now if each.condition[:2] in tasks]


@pytest.mark.parametrize(
    ("role", "one"), CASES, ids=[f"{role}: {one.get('says', 'accepted')} ({one.line})" for role, one in CASES]
)
def test_what_is_given_is_refused_in_these_words(site: Site, role: str, one: Map) -> None:
    assert {"given"} <= set(one) <= FIELDS
    assert site.unread(role, [*one.get("first", {}), *one["given"]]) == [], "the role does not know these"
    before, now = asked(site, role, one)
    found = more(now, before)
    if "says" not in one:
        assert found == []
        assert more(before, now) or still_refused(site, role, one, now) == [], (
            "as much as without it: this shows nothing"
        )
        return
    assert len({refusal.condition for refusal in found}) == 1, found
    assert one["says"] in found[0].says


@pytest.mark.parametrize("role", ROLES)
def test_every_condition_was_seen_to_refuse(site: Site, role: str) -> None:
    seen = {refusal.condition for one in entries(role) if "says" in one for refusal in new(site, role, one)}
    assert [_told(one) for one in sorted(site.conditions(role) - seen)] == []


@pytest.mark.parametrize("role", ROLES)
def test_numbers_may_come_as_text(site: Site, role: str) -> None:
    """As `-e name=30` gives them: they are not refused for that, and promises are the same."""
    defaults = load_map(PROJECT / "roles" / role / "defaults/main.yml")
    texts = {
        name: str(one) for name, one in defaults.items() if isinstance(one, (int, float)) and not isinstance(one, bool)
    }
    host = site.hosts(role)[0]
    before = {one.condition for one in site.refusals(role, host, {})}
    assert [one for one in site.refusals(role, host, texts) if one.condition not in before] == []
    pairs = zip(asked_for(site, role, host, {}), asked_for(site, role, host, texts), strict=True)
    assert [(number, text) for number, text in pairs if number.replace("'", "") != text.replace("'", "")] == []


def asked_for(site: Site, role: str, host: str, given: Mapping[str, Any]) -> list[str]:
    return [f"{one.id}: {one.expected} {one.status} {one.reason}" for one in site.promises(role, host, given)]


def _told(condition: Condition) -> str:
    path, line, text = condition
    return f"{Path(path).relative_to(PROJECT)}:{line}: no entry of tests/contract/refused is refused by: {text}"


def test_there_are_no_lists_of_roles_that_refuse_nothing() -> None:
    assert {path.stem for path in FOLDER.glob("*.yml")} <= set(ROLES)
