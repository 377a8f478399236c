"""A change of what the reference site's nodes get is seen, and looked at by who makes it: tests/contract/written."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest

from tests.contract import declared, written
from tests.contract.project import NO_STATE, PROJECT, Map, load, otherwise, roles
from tests.contract.refusing import Site

ROLES = sorted(role.name for role in roles(PROJECT))


@pytest.mark.parametrize("role", ROLES)
def test_nodes_get_what_stands_there(role: str) -> None:
    path = written.FOLDER / f"{role}.txt"
    before = path.read_text() if path.is_file() else ""
    lines = difflib.unified_diff(
        before.splitlines(), written.of_project().get(role, "").splitlines(), "before", "now", lineterm="", n=2
    )
    said = "\n".join(lines)
    assert not said, f"HAL's nodes get other texts from {role}; if you mean that: make written\n{said}"


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(PROJECT)


CASES = [(role, one) for role in ROLES for one in otherwise(role)]


@pytest.mark.parametrize(("role", "one"), CASES, ids=[f"{role} ({one.line})" for role, one in CASES])
def test_other_values_are_known_and_come_to_something(site: Site, role: str, one: Map) -> None:
    assert set(one) <= {"host", "given"}
    assert site.unread(role, one["given"]) == [], "the role does not know these"
    place = f"with {json.dumps(one['given'])} on {one.get('host') or site.hosts(role)[0]}:"
    lines = written.of_project()[role].splitlines()
    assert lines[lines.index(place) + 1].startswith(("+ ", "- ", "==> ")), "nothing is other"


@pytest.mark.parametrize(("role", "one"), CASES, ids=[f"{role} ({one.line})" for role, one in CASES])
def test_other_values_are_not_refused(site: Site, role: str, one: Map) -> None:
    """What a role refuses no run comes to."""
    host = one.get("host") or site.hosts(role)[0]
    before = {(each.condition, each.item) for each in site.refusals(role, host, {})}
    now = site.refusals(role, host, one["given"])
    # Files of the site's state are nowhere here.
    assert [
        each.says for each in now if (each.condition, each.item) not in before and f"{NO_STATE}/" not in each.says
    ] == []


@pytest.mark.parametrize("role", ROLES)
def test_each_promise_is_asked_and_is_left_out_somewhere(site: Site, role: str) -> None:
    """At HAL or with other values: a `when` that is lost or turned round shows."""
    seen: dict[int, set[bool]] = {}
    for one in declared.promised(PROJECT):
        if one.path.parent.name == role:
            seen.setdefault(one.line, set()).add(one.skipped)
    for other in otherwise(role):
        for promise in site.promises(role, other.get("host") or site.hosts(role)[0], other["given"]):
            seen.setdefault(int(promise.source), set()).add(promise.status == "skipped")
    path = PROJECT / "roles" / role / "expect.yml"
    conditional = [entry for entry in load(path) if "when" in entry] if path.is_file() else []
    assert [
        f"{entry['id']}: nowhere {'left out' if False in seen[entry.line] else 'asked'}: add values with which it is"
        for entry in conditional
        if len(seen[entry.line]) < 2
    ] == []


def test_there_are_no_texts_and_values_of_roles_that_are_gone() -> None:
    assert {path.stem for path in Path(written.FOLDER).glob("*.txt")} <= set(ROLES)
    assert {path.stem for path in (PROJECT / "tests/contract/otherwise").glob("*.yml")} <= set(ROLES)


def test_all_templates_are_there() -> None:
    """Whatever is not rendered is not compared."""
    templates = {path.name for path in PROJECT.glob("roles/*/templates/*")}
    lines = "".join(written.of_project().values()).splitlines()
    there = "".join(line for line in lines if line.startswith("==> "))
    missing = {name for name in templates if f"/templates/{name}" not in there}
    assert missing == set()
